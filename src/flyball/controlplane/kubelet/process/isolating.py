"""Under which user, limits and view of the machine a container runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from flyball.api import Quantity
from flyball.controlplane.kubelet.process.environment import expand
from flyball.controlplane.kubelet.process.images import Image
from flyball.controlplane.kubelet.process.launching import Launch, Mount
from flyball.controlplane.kubelet.process.lookup import ConfigError
from flyball.controlplane.kubelet.process.node import Node
from flyball.k8s.core.v1 import Container, Pod

__all__ = ["VOLUMES_ROOT", "launch_of", "message_file"]

VOLUMES_ROOT: Final = "VOLUMES_ROOT"
"""The variable below whose value every mount path can be reached, also where there is no mount namespace."""


def launch_of(
    node: Node,
    pod: Pod,
    container: Container,
    image: Image,
    env: Mapping[str, str],
    mounts: Sequence[Mount],
    folder: Path,
    address: str,
) -> Launch:
    """Return how a container is started. Raises ConfigError."""
    argv = image.argv(*([expand(word, env) for word in words or ()] for words in (container.command, container.args)))
    uid, gid, groups = _user(node, pod, container)
    isolated = node.isolation.namespaces
    root = "" if isolated else str(folder / "root")
    hostname = (pod.spec.hostname or pod.metadata.name)[:63]
    usual = {**image.env, "HOSTNAME": hostname, "HOME": root or "/", VOLUMES_ROOT: root}
    if container.tty:
        usual["TERM"] = "xterm"
    own = Mount(str(message_file(folder)), container.termination_message_path or "/dev/termination-log")
    everything = [*mounts, own]
    if isolated:
        everything += _network_files(pod, folder, hostname, address)
    else:
        _link(Path(root), everything)
    return Launch(
        argv=argv,
        env={**usual, **env},
        cwd=_working_dir(container.working_dir or image.working_dir, root, isolated=isolated),
        hostname=hostname,
        mounts=everything,
        visible=image.visible,
        uid=uid,
        gid=gid,
        groups=groups,
        tty=bool(container.tty),
        isolate=isolated,
        read_only_root=_read_only(pod, container, isolated=isolated),
        pids=node.limits.pids,
        memory=_memory(container),
        rlimits=_rlimits(node),
    )


def message_file(folder: Path) -> Path:
    """Where a container's termination message lies."""
    return folder / "termination-message"


def _security(pod: Pod, container: Container, name: str) -> Any:
    for holder in (container.security_context, pod.spec.security_context):
        value = getattr(holder, name, None)
        if value is not None:
            return value
    return None


def _read_only(pod: Pod, container: Container, *, isolated: bool) -> bool:
    wanted = _security(pod, container, "read_only_root_filesystem") is True
    if wanted and not isolated:
        raise ConfigError("readOnlyRootFilesystem: it cannot be kept here, where there are no mount namespaces")
    return wanted


def _user(node: Node, pod: Pod, container: Container) -> tuple[int | None, int | None, list[int]]:
    ours = os.geteuid()
    uid, gid = (_security(pod, container, name) for name in ("run_as_user", "run_as_group"))
    known = f'(pod: "{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})", container: {container.name})'
    if _security(pod, container, "run_as_non_root"):
        if uid is None and ours == 0:
            raise ConfigError(f"container has runAsNonRoot and image will run as root {known}")
        if uid == 0:
            raise ConfigError(f"container's runAsUser breaks non-root policy {known}")
    if uid not in (None, ours) and ours != 0 and not node.isolation.user:
        raise ConfigError(
            f"runAsUser {uid}: the cluster runs as user {ours} and cannot become another one here {known}"
        )
    context = pod.spec.security_context
    groups = [*((context.supplemental_groups if context else None) or ())]
    if context is not None and context.fs_group is not None:
        groups.append(context.fs_group)
    return uid, gid, groups


def _working_dir(wanted: str, root: str, *, isolated: bool) -> str:
    """Return the folder to start in; without a mount namespace one of the container's own when the host has none."""
    if isolated or (wanted != "/" and Path(wanted).is_dir()):
        return wanted
    place = Path(f"{root}/{wanted.lstrip('/')}")
    place.mkdir(parents=True, exist_ok=True)
    return str(place)


def _network_files(pod: Pod, folder: Path, hostname: str, address: str) -> list[Mount]:
    """Let the container find itself by its name."""
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback", f"{address}\t{hostname}"]
    for alias in pod.spec.host_aliases or ():
        lines.append(f"{alias.ip}\t{' '.join(alias.hostnames or ())}")
    files = {"hosts": "\n".join(lines) + "\n", "hostname": f"{hostname}\n"}
    mounts: list[Mount] = []
    for name, text in files.items():
        place = folder / name
        place.write_text(text)
        mounts.append(Mount(str(place), f"/etc/{name}", if_there=True))
    return mounts


def _link(root: Path, mounts: Sequence[Mount]) -> None:
    """Make the mount paths reachable below a folder."""
    for mount in mounts:
        place = root / mount.target.lstrip("/")
        if place.is_symlink():
            place.unlink()
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.symlink_to(mount.source)


def _memory(container: Container) -> int | None:
    limits = (container.resources.limits if container.resources else None) or {}
    return int(Quantity(str(limits["memory"])).value) if "memory" in limits else None


def _rlimits(node: Node) -> dict[str, int]:
    limits = {"RLIMIT_CORE": 0}
    if node.isolation.namespaces and node.isolation.user:
        limits["RLIMIT_NPROC"] = node.limits.pids  # counted in the container's own user namespace
    return limits

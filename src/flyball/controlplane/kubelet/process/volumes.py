"""The volumes of a Pod: folders of this machine, filled once, before its first container starts.

A ConfigMap or Secret that changes later does not change the files of Pods that run already; a token is not renewed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from flyball.controlplane.kubelet.process.environment import Surroundings, expand
from flyball.controlplane.kubelet.process.launching import Mount
from flyball.controlplane.kubelet.process.lookup import ConfigError, field, resource
from flyball.k8s.core.v1 import (
    Container,
    DownwardAPIVolumeFile,
    HostPathVolumeSource,
    KeyToPath,
    Pod,
    Volume,
    VolumeMount,
    VolumeProjection,
)

__all__ = ["Volumes", "mounts_of", "prepare"]

_MODE: Final = 0o644


class Volumes:
    """Prepares the volumes of one Pod."""

    def __init__(self, pod: Pod, folder: Path, around: Surroundings, pod_ip: str, host_paths: Sequence[Path]) -> None:
        """`folder` becomes the parent of what is made; `host_paths` are the folders of the host that Pods may use."""
        self._pod = pod
        self._folder = folder
        self._around = around
        self._pod_ip = pod_ip
        self._host_paths = host_paths

    async def prepare(self, volume: Volume) -> Path:
        """Make one volume; return where it lies. Raises ConfigError."""
        if volume.host_path is not None:
            return self._host_path(volume.host_path)
        place = self._folder / volume.name
        place.mkdir(parents=True, exist_ok=True)
        if volume.empty_dir is not None:
            place.chmod(0o777)
            return place
        for path, (content, mode) in (await self._files(volume)).items():
            _write(place, path, content, mode, self._group())
        return place

    def _group(self) -> int | None:
        """The group that shall be able to read what a Pod gets, where we can give something to a group."""
        context = self._pod.spec.security_context
        return context.fs_group if context is not None and os.geteuid() == 0 else None

    def _host_path(self, source: HostPathVolumeSource) -> Path:
        path = Path(os.path.realpath(source.path))
        if not any(path == one or one in path.parents for one in self._host_paths):
            raise ConfigError(
                f"hostPath {source.path}: not allowed here; start the cluster with --allow-host-path {source.path}"
            )
        kind = source.type or ""
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate":
            path.touch()
        wrong = (kind in ("Directory", "DirectoryOrCreate") and not path.is_dir()) or (
            kind in ("File", "FileOrCreate") and not path.is_file()
        )
        if wrong or not path.exists():
            wanted = kind.removesuffix("OrCreate").lower() or "file or directory"
            raise ConfigError(f"hostPath type check failed: {source.path} is not a {wanted}")
        return path

    async def _files(self, volume: Volume) -> dict[str, tuple[bytes, int]]:
        if volume.config_map is not None:
            source = volume.config_map
            return await self._config_map(source.name or "", source.items, source.default_mode, source.optional)
        if volume.secret is not None:
            secret = volume.secret
            return await self._secret(secret.secret_name or "", secret.items, secret.default_mode, secret.optional)
        if volume.downward_api is not None:
            return self._downward(volume.downward_api.items or (), volume.downward_api.default_mode)
        if volume.projected is not None:
            files: dict[str, tuple[bytes, int]] = {}
            for one in volume.projected.sources or ():
                files.update(await self._projected(one, volume.projected.default_mode))
            return files
        raise ConfigError(f"volume {volume.name}: volumes of this kind are not supported by Pods as processes")

    async def _projected(self, source: VolumeProjection, mode: int | None) -> dict[str, tuple[bytes, int]]:
        if source.config_map is not None:
            return await self._config_map(
                source.config_map.name or "", source.config_map.items, mode, source.config_map.optional
            )
        if source.secret is not None:
            return await self._secret(source.secret.name or "", source.secret.items, mode, source.secret.optional)
        if source.downward_api is not None:
            return self._downward(source.downward_api.items or (), mode)
        if source.service_account_token is not None:
            wanted = source.service_account_token
            token = await self._around.lookup.token(self._pod, wanted.audience, wanted.expiration_seconds)
            return {wanted.path: (token, _MODE if mode is None else mode)}
        raise ConfigError("this source of a projected volume is not supported by Pods as processes")

    async def _config_map(
        self, name: str, items: Sequence[KeyToPath] | None, mode: int | None, optional: bool | None
    ) -> dict[str, tuple[bytes, int]]:
        found = await self._around.lookup.config_map(self._pod.metadata.namespace or "", name)
        if found is None and not optional:
            raise ConfigError(f'configmap "{name}" not found')
        return _items(found or {}, items, mode, "configmap references non-existent config key: ", bool(optional))

    async def _secret(
        self, name: str, items: Sequence[KeyToPath] | None, mode: int | None, optional: bool | None
    ) -> dict[str, tuple[bytes, int]]:
        found = await self._around.lookup.secret(self._pod.metadata.namespace or "", name)
        if found is None and not optional:
            raise ConfigError(f'secret "{name}" not found')
        return _items(found or {}, items, mode, "references non-existent secret key: ", bool(optional))

    def _downward(self, items: Sequence[DownwardAPIVolumeFile], mode: int | None) -> dict[str, tuple[bytes, int]]:
        files: dict[str, tuple[bytes, int]] = {}
        for one in items:
            text = ""
            if one.field_ref is not None:
                text = field(self._pod, one.field_ref.field_path, node_ip=self._around.node_ip, pod_ip=self._pod_ip)
            elif one.resource_field_ref is not None:
                asked = one.resource_field_ref
                about = next((c for c in self._pod.spec.containers if c.name == asked.container_name), None)
                if about is None:
                    raise ConfigError(f"container {asked.container_name} not found")
                text = resource(about, asked.resource, asked.divisor, self._around.capacity)
            wanted = one.mode if one.mode is not None else mode
            files[one.path] = (text.encode(), _MODE if wanted is None else wanted)
        return files


def _items(
    values: Mapping[str, bytes], items: Sequence[KeyToPath] | None, mode: int | None, missing: str, optional: bool
) -> dict[str, tuple[bytes, int]]:
    usual = _MODE if mode is None else mode
    if not items:
        return {key: (value, usual) for key, value in values.items()}
    files: dict[str, tuple[bytes, int]] = {}
    for item in items:
        if item.key in values:
            files[item.path] = (values[item.key], usual if item.mode is None else item.mode)
        elif not optional:
            raise ConfigError(f"{missing}{item.key}")
    return files


def _write(place: Path, path: str, content: bytes, mode: int, group: int | None) -> None:
    target = _inside(place, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    if group is not None:
        os.chown(target, -1, group)
        mode |= 0o440
    target.chmod(mode & 0o777)


def _inside(place: Path, path: str) -> Path:
    """Return a path below a folder; one that leads out of it, by a link too, is refused."""
    target = place / path
    if Path(path).is_absolute() or not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(place)):
        raise ConfigError(f"path {path!r} leads out of its volume")
    return target


async def prepare(volumes: Volumes, volume: Volume) -> Path:
    """Make a volume; the error says which one it was, in the kubelet's words. Raises ConfigError."""
    try:
        return await volumes.prepare(volume)
    except ConfigError as error:
        raise ConfigError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from None
    except OSError as error:
        raise ConfigError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error.strerror or error}') from None


def mounts_of(container: Container, places: Mapping[str, Path], env: Mapping[str, str]) -> list[Mount]:
    """Return where a container wants its volumes. Raises ConfigError."""
    return [_mount(one, places[one.name], env) for one in container.volume_mounts or ()]


def _mount(mount: VolumeMount, place: Path, env: Mapping[str, str]) -> Mount:
    part = expand(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path or ""
    source = _inside(place, part) if part else place
    if not source.exists():
        source.mkdir(parents=True)
        source.chmod(0o777)
    return Mount(str(source), mount.mount_path, read_only=bool(mount.read_only))

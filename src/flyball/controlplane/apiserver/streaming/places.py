"""Which container of which Pod is meant, and who runs it; or why nobody can be asked, in upstream's words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from flyball.controlplane.apiserver.kubelets import Kubelet
from flyball.controlplane.apiserver.render import parse
from flyball.controlplane.apiserver.status import StatusError, bad_request, not_found
from flyball.controlplane.apiserver.writing import Target

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["Pod", "Running", "container_of", "container_status", "kubelet_of", "pod_of", "running"]

Pod = dict[str, Any]


class Running(NamedTuple):
    """A Pod, a container of it, and the kubelet of its node."""

    pod: Pod
    container: str
    kubelet: Kubelet


def pod_of(server: ApiServer, target: Target) -> Pod:
    """Return the Pod as it is stored. Raises NotFound."""
    entry = server.core.store.get(target.key)
    if entry is None:
        raise target.missing()
    return parse(target.kind, entry)


def container_of(pod: Pod, wanted: str) -> str:
    """Return the container that is meant: the wanted one, or the only one. Raises BadRequest."""
    name = pod["metadata"]["name"]
    names = list(_containers(pod))
    if wanted:
        if wanted not in names:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    own: list[Any] = pod["spec"].get("containers") or []
    if len(own) == 1:
        return str(own[0]["name"])
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")


def _containers(pod: Pod) -> Iterator[str]:
    spec = pod["spec"]
    for part in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(part) or ():
            yield container["name"]


def container_status(pod: Pod, container: str) -> dict[str, Any] | None:
    """Return what the Pod's status says of a container; None when it says nothing."""
    status = pod.get("status") or {}
    for part in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for one in status.get(part) or ():
            if one.get("name") == container:
                found: dict[str, Any] = one
                return found
    return None


def kubelet_of(server: ApiServer, pod: Pod) -> Kubelet:
    """Return who runs the Pods of the Pod's node; there is a node. Raises what a client of a dead node is told."""
    node = pod["spec"]["nodeName"]
    kubelet = server.kubelets.of(node)
    if kubelet is not None:
        return kubelet
    if server.core.store.get(Target(server.core.kinds.find("", "v1", "nodes"), "", node).key) is None:
        raise not_found("pods", "", node)  # upstream says "pods" of the node too
    told = f"error dialing backend: no kubelet answers for node {json.dumps(node)}; nothing runs its Pods"
    raise StatusError(500, "", told)


def running(server: ApiServer, target: Target, container: str) -> Running:
    """Return whom to ask about a container of a Pod. Raises the Status that a client gets instead."""
    pod = pod_of(server, target)
    found = container_of(pod, container)
    expect_node(pod)
    return Running(pod, found, kubelet_of(server, pod))


def expect_node(pod: Pod) -> None:
    """Refuse a Pod that runs nowhere yet."""
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")

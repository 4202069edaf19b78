"""What is there before anybody has written anything: namespaces, and the Service of the API with its endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from flyball.controlplane.apiserver.render import encode
from flyball.controlplane.apiserver.request import Request, User
from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["ADMIN", "bootstrap"]

Object = dict[str, Any]

ADMIN: Final = User("kubernetes-admin", ("system:masters", "system:authenticated"))
SYSTEM: Final = User("system:apiserver", ("system:masters", "system:authenticated"))

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


async def bootstrap(server: ApiServer, port: int) -> None:
    """Create what is missing; what is there already stays as it is."""
    for path, obj in _objects(port):
        request = Request("POST", path, (("fieldManager", "kube-apiserver"),), {}, encode(obj), SYSTEM)
        answer = await server.handle(request, SYSTEM)
        if answer.status not in (201, 409):
            raise RuntimeError(f"cannot create {obj['kind']} {obj['metadata']['name']}: {answer.body.decode()}")


def _objects(port: int) -> Iterator[tuple[str, Object]]:
    for name in NAMESPACES:
        yield "/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
    for name, value in (("system-node-critical", 2000001000), ("system-cluster-critical", 2000000000)):
        yield (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}, "value": value},
        )
    labels = {"component": "apiserver", "provider": "kubernetes"}
    service = {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            "type": "ClusterIP",
        },
    }
    yield "/api/v1/namespaces/default/services", service
    reached = [{"name": "https", "port": port, "protocol": "TCP"}]
    yield (
        "/api/v1/namespaces/default/endpoints",
        {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": reached}],
        },
    )
    yield (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
            "ports": reached,
        },
    )

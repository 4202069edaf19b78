"""kubectl with StatefulSets, Services and what is behind them, on a cluster whose workloads progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from flyball.testing import eventually

T = TypeVar("T")
Kubectl = Callable[..., str]

IMAGE = "jsonpath={.spec.template.spec.containers[0].image}"
WEB = """
apiVersion: v1
kind: Service
metadata: {name: members, labels: {app: web}}
spec: {clusterIP: None, selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: members
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", ports: [{name: http, containerPort: 8080}]}]}
"""


def until(probe: Callable[[], T], right: Callable[[T], object]) -> T:
    return asyncio.run(eventually(probe, right))


def rolled_out(kubectl: Kubectl) -> str:
    return kubectl("rollout", "status", "statefulset/web", "--timeout=30s").splitlines()[-1]


def rows(text: str) -> dict[str, list[str]]:
    """The rows of a table without a header, by their first column."""
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


@pytest.mark.capability("N2")
def test_a_statefulset_is_rolled_out_and_back(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    assert rolled_out(kubectl).startswith("partitioned roll out complete: 3 new pods have been updated")
    assert sorted(rows(kubectl("get", "pods", "--no-headers"))) == ["web-0", "web-1", "web-2"]
    assert rows(kubectl("get", "statefulset", "--no-headers"))["web"][0] == "3/3"
    kubectl("set", "image", "statefulset/web", "web=web:2")
    rolled_out(kubectl)
    history = kubectl("rollout", "history", "statefulset/web").splitlines()
    assert [line.split()[0] for line in history[2:]] == ["1", "2"]
    assert "web:1" in kubectl("rollout", "history", "statefulset/web", "--revision=1")
    kubectl("rollout", "undo", "statefulset/web")
    rolled_out(kubectl)
    assert kubectl("get", "statefulset", "web", "-o", IMAGE) == "web:1"
    assert {line.split()[-1] for line in kubectl("get", "pods", "-L", "controller-revision-hash").splitlines()[1:]} == {
        kubectl("get", "statefulset", "web", "-o", "jsonpath={.status.currentRevision}")
    }
    kubectl("rollout", "restart", "statefulset/web")
    rolled_out(kubectl)
    kubectl("scale", "statefulset/web", "--replicas=1")
    kubectl("wait", "--for=jsonpath={.status.replicas}=1", "statefulset/web", "--timeout=30s")
    assert list(rows(kubectl("get", "pods", "--no-headers"))) == ["web-0"]
    kubectl("delete", "statefulset", "web", "--cascade=foreground", "--timeout=30s")
    assert kubectl("get", "pods,controllerrevisions", "-o", "name") == ""


def test_pods_of_a_statefulset_may_stay_without_it(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    rolled_out(kubectl)
    before = kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
    kubectl("delete", "statefulset", "web", "--cascade=orphan")
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}") == before
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.ownerReferences}") == ""
    kubectl("apply", "-f", "-", stdin=WEB)
    rolled_out(kubectl)
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}") == before, "they were taken up again"


def test_a_statefulset_is_described(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    rolled_out(kubectl)

    def told() -> list[str]:
        return [line.split("  ")[-1] for line in kubectl("describe", "statefulset", "web").splitlines()]

    lines = until(told, lambda lines: sum("Create Pod" in line for line in lines) == 3)
    described = kubectl("describe", "statefulset", "web")
    assert [line for line in lines if "Create Pod" in line] == [
        f"Create Pod web-{number} in StatefulSet web successful" for number in range(3)
    ]
    for line in (
        "Replicas:           3 desired | 3 total",
        "Update Strategy:    RollingUpdate",
        "  Partition:        0",
    ):
        assert line in described
    assert "3 Running / 0 Waiting / 0 Succeeded / 0 Failed" in described


def test_a_deployment_is_exposed(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2", "--port=8080")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080", "--type=NodePort")
    type_, address, _, ports, *_ = rows(kubectl("get", "services", "--no-headers"))["web"]
    assert type_ == "NodePort"
    assert address.startswith("10.0.0.")
    number = int(ports.removeprefix("80:").removesuffix("/TCP"))
    assert 30000 <= number < 32768
    ips = sorted(kubectl("get", "pods", "-o", "jsonpath={.items[*].status.podIP}").split())

    def endpoints() -> list[str]:
        return sorted(kubectl("get", "endpoints", "web", "-o", "jsonpath={.subsets[*].addresses[*].ip}").split())

    until(endpoints, lambda found: found == ips)

    def slices() -> list[str]:
        return kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "--no-headers").split()

    name, family, port, addresses, _ = until(slices, lambda found: len(found) == 5 and "," in found[3])
    assert (name.startswith("web-"), family, port) == (True, "IPv4", "8080")
    assert sorted(addresses.split(",")) == ips
    described = kubectl("describe", "service", "web")
    for ip in ips:
        assert f"{ip}:8080" in described
    assert f"NodePort:                 <unset>  {number}/TCP" in described
    kubectl("scale", "deployment/web", "--replicas=0")
    until(endpoints, lambda found: not found)
    kubectl("delete", "service", "web")
    until(lambda: kubectl("get", "endpoints,endpointslices", "-l", "app=web", "-o", "name"), lambda left: not left)


def test_members_are_found_by_their_headless_service(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    rolled_out(kubectl)
    assert rows(kubectl("get", "services", "--no-headers"))["members"][1] == "None"
    names = "jsonpath={.items[*].endpoints[*].hostname}"
    found = until(
        lambda: sorted(kubectl("get", "endpointslices", "-l", "app=web", "-o", names).split()),
        lambda told: len(told) == 3,
    )
    assert found == ["web-0", "web-1", "web-2"]


def test_the_api_itself_is_a_service_with_an_endpoint(kubectl: Kubectl) -> None:
    address = kubectl("get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[0].addresses[0].ip}")
    assert address == "127.0.0.1"
    assert f"Endpoints:                {address}:" in kubectl("describe", "service", "kubernetes")
    names = "jsonpath={.items[*].metadata.name}"
    assert kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=kubernetes", "-o", names) == "kubernetes"

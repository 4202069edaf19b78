"""kubectl rolls Deployments out and back, and waits for Jobs, on a cluster whose workloads progress."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Kubectl = Callable[..., str]

IMAGE = "jsonpath={.spec.template.spec.containers[0].image}"


def rolled_out(kubectl: Kubectl) -> None:
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=30s")


@pytest.mark.capability("N2")
def test_a_deployment_is_rolled_out_and_back(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    rolled_out(kubectl)
    kubectl("set", "image", "deployment/web", "web=web:2")
    rolled_out(kubectl)
    history = kubectl("rollout", "history", "deployment/web").splitlines()
    assert [line.split()[0] for line in history[2:]] == ["1", "2"]
    kubectl("rollout", "undo", "deployment/web")
    rolled_out(kubectl)
    assert kubectl("get", "deployment", "web", "-o", IMAGE) == "web:1"
    kubectl("rollout", "restart", "deployment/web")
    rolled_out(kubectl)
    kubectl("scale", "deployment/web", "--replicas=5")
    rolled_out(kubectl)
    assert kubectl("get", "deployment", "web", "--no-headers").split()[1:4] == ["5/5", "5", "5"]
    kubectl("delete", "deployment", "web", "--cascade=foreground")
    assert kubectl("get", "replicasets", "-o", "name") == ""


@pytest.mark.capability("C74")
@pytest.mark.parametrize(
    ("cascade", "sets", "pods"), [("background", 0, 0), ("foreground", 0, 0), ("orphan", 1, 2)], ids=str
)
def test_what_a_deployment_leaves_behind(kubectl: Kubectl, cascade: str, sets: int, pods: int) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    rolled_out(kubectl)
    kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--timeout=30s")
    for resource, left in (("replicasets", sets), ("pods", pods)):
        if not left:
            kubectl("wait", "--for=delete", resource, "-l", "app=web", "--timeout=30s")
        assert len(kubectl("get", resource, "-l", "app=web", "-o", "name").split()) == left
    if cascade == "orphan":
        kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
        rolled_out(kubectl)
        assert len(kubectl("get", "pods", "-l", "app=web", "-o", "name").split()) == pods, "it has taken them over"


def test_while_it_is_paused_only_its_number_is_followed(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    rolled_out(kubectl)
    kubectl("rollout", "pause", "deployment/web")
    kubectl("set", "image", "deployment/web", "web=web:2")
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/web", "--timeout=30s")
    images = "jsonpath={.items[*].spec.containers[0].image}"
    assert kubectl("get", "pods", "-o", images).split() == ["web:1"] * 3
    kubectl("rollout", "resume", "deployment/web")
    rolled_out(kubectl)
    kubectl("wait", "--for=jsonpath={.status.replicas}=3", "deployment/web", "--timeout=30s")
    kubectl("wait", "--for=jsonpath={.status.terminatingReplicas}=0", "deployment/web", "--timeout=30s")
    assert kubectl("get", "pods", "-o", images).split() == ["web:2"] * 3


def test_a_job_is_waited_for(kubectl: Kubectl) -> None:
    kubectl("create", "job", "work", "--image=busybox", "--", "true")
    kubectl("wait", "--for=condition=complete", "job/work", "--timeout=30s")
    assert kubectl("get", "job", "work", "--no-headers").split()[1:3] == ["Complete", "1/1"]
    assert kubectl("get", "pods", "-l", "job-name=work", "--no-headers").split()[1:3] == ["0/1", "Completed"]


def test_a_pod_becomes_ready_on_a_node_and_goes(kubectl: Kubectl) -> None:
    kubectl("run", "one", "--image=web")
    kubectl("wait", "--for=condition=ready", "pod/one", "--timeout=30s")
    nodes = [line.split()[:2] for line in kubectl("get", "nodes", "--no-headers").splitlines()]
    assert nodes == [["node-1", "Ready"], ["node-2", "Ready"]]
    kubectl("delete", "pod", "one", "--timeout=30s")
    assert kubectl("get", "pods", "-o", "name") == ""

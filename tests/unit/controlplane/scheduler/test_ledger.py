"""What a Pod asks for, and what is used on a node: each counted once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from flyball.controlplane.scheduler.ledger import Ledger, Wish
from flyball.controlplane.scheduler.requests import requests_of
from flyball.controlplane.scheduler.seen import NodeSeen, PodSeen, read_node, read_pod


def pod(name: str = "p", cpu: str = "100m", node: str = "", phase: str = "Pending", **spec: Any) -> PodSeen:
    container = {"resources": {"requests": {"cpu": cpu}}}
    made = {"containers": [container], **({"nodeName": node} if node else {}), **spec}
    metadata = {"name": name, "namespace": "default"}
    return read_pod(msgspec.json.encode({"metadata": metadata, "spec": made, "status": {"phase": phase}}))


def node(cpu: str = "2") -> NodeSeen:
    return read_node(msgspec.json.encode({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu}}}))


def asks(**requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [asks(cpu="100m"), asks(cpu="0.2", memory="1Ki")]}, {"cpu": 300, "memory": 1024}),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3"), asks(cpu="2")]}, {"cpu": 3000}),
        ({"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
        ({"containers": [asks(cpu="1")], "resources": {"requests": {"cpu": "5"}}}, {"cpu": 5000}),
        (
            {
                "containers": [asks(cpu="1")],
                "initContainers": [{**asks(cpu="500m"), "restartPolicy": "Always"}, asks(cpu="2")],
            },
            {"cpu": 2500},
        ),
        ({"containers": [{}]}, {}),
        ({"containers": [asks(memory="1.5")]}, {"memory": 2}),
    ],
)
def test_what_a_pod_asks_for(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert requests_of(read_pod(msgspec.json.encode({"metadata": {"name": "p"}, "spec": spec}))) == expected


def test_a_pod_counts_from_its_placing_to_its_end_and_once() -> None:
    ledger, key = Ledger(), ("default", "p")
    ledger.node_seen("n", node())
    ledger.place(Wish.of(key, pod()), "n")
    freed = ledger.freed
    ledger.pod_seen(key, pod(node="n"))
    ledger.pod_seen(key, pod(node="n", phase="Running"))
    assert ledger.nodes["n"].used == {"cpu": 100}
    assert ledger.freed == freed, "nothing has changed that could help anybody"
    ledger.pod_seen(key, pod(node="n", phase="Failed"))
    ledger.pod_seen(key, None)
    assert ledger.nodes["n"].used == {"cpu": 0}
    assert ledger.freed == freed + 1


def test_a_pod_that_asks_for_less_gives_back_the_rest() -> None:
    ledger, key = Ledger(), ("default", "p")
    ledger.node_seen("n", node())
    ledger.pod_seen(key, pod(cpu="1", node="n"))
    freed = ledger.freed
    ledger.pod_seen(key, pod(cpu="500m", node="n"))
    assert ledger.nodes["n"].used == {"cpu": 500}
    assert ledger.freed > freed


def test_pods_of_a_node_that_is_not_there_yet_count_when_it_comes() -> None:
    ledger = Ledger()
    ledger.pod_seen(("default", "a"), pod("a", node="n"))
    assert not ledger.nodes
    ledger.node_seen("n", node())
    assert ledger.nodes["n"].used == {"cpu": 100}
    ledger.node_seen("n", None)
    ledger.node_seen("n", node())
    assert ledger.nodes["n"].used == {"cpu": 100}
    ledger.pod_seen(("default", "a"), None)
    assert len(ledger.nodes["n"].pods) == 0

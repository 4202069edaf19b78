"""Which Pods can be missed most easily."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flyball.controlplane.controllers.pods import available_at, is_available, is_terminating, ranked_for_deletion
from flyball.k8s.core.v1 import Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus
from flyball.k8s.meta.v1 import ObjectMeta

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86400


def pod(
    name: str,
    *,
    node: str | None = "n",
    phase: str = "Running",
    ready: int | None = None,
    cost: str = "",
    restarts: int = 0,
    age: int = 100,
    **metadata: Any,
) -> Pod:
    """A Pod; `ready` and `age` are seconds."""
    conditions = [PodCondition(type="Ready", status="False")]
    if ready is not None:
        since = NOW - timedelta(seconds=ready)
        conditions = [PodCondition(type="Ready", status="True", last_transition_time=since)]
    annotations = {"controller.kubernetes.io/pod-deletion-cost": cost} if cost else {}
    states = [ContainerStatus(name="c", image="i", image_id="", ready=False, restart_count=restarts)]
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            annotations=annotations,
            creation_timestamp=NOW - timedelta(seconds=age),
            **metadata,
        ),
        spec=PodSpec(containers=[Container(name="c")], node_name=node),
        status=PodStatus(phase=phase, conditions=conditions, container_statuses=states),
    )


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ({"node": None}, {"node": "n"}),
        ({"phase": "Pending"}, {"phase": "Unknown"}),
        ({"phase": "Unknown"}, {"phase": "Running"}),
        ({"ready": None}, {"ready": 5}),
        ({"cost": "-3"}, {}),
        ({"cost": "nonsense"}, {"cost": "1"}),
        ({"ready": 10}, {"ready": DAY}),
        ({"restarts": 2}, {"restarts": 1}),
        ({"age": 10}, {"age": DAY}),
        ({"node": None, "ready": None}, {"phase": "Pending", "node": "n"}),
    ],
)
@pytest.mark.parametrize("now", [NOW, None])
def test_the_first_can_be_missed_more_easily(first: dict[str, Any], last: dict[str, Any], now: datetime | None) -> None:
    ranked = ranked_for_deletion([pod("b", **last), pod("a", **first)], now=now)
    assert [one.metadata.name for one in ranked] == ["a", "b"]


def test_of_a_crowd_on_a_node_one_goes_first() -> None:
    pods = [pod("alone", node="m", ready=5), pod("one", node="n", ready=5), pod("two", node="n", ready=5)]
    assert ranked_for_deletion(pods, now=NOW, related=pods)[-1].metadata.name == "alone"


def test_of_pods_of_about_the_same_age_their_uids_decide() -> None:
    pods = [pod("b", ready=100), pod("a", ready=101)]
    assert [one.metadata.name for one in ranked_for_deletion(pods, now=NOW)] == ["a", "b"]
    assert [one.metadata.name for one in ranked_for_deletion(pods)] == ["b", "a"], (
        "to the second, the younger one first"
    )


def test_a_pod_is_available_from_a_moment_on() -> None:
    one = pod("a", ready=5)
    assert available_at(one, 8) == NOW + timedelta(seconds=3)
    assert (is_available(one, 5, NOW), is_available(one, 6, NOW)) == (True, False)
    assert available_at(pod("b"), 8) is None


def test_what_has_ended_does_not_terminate_any_more() -> None:
    assert is_terminating(pod("a", deletion_timestamp=NOW))
    assert not is_terminating(pod("a", deletion_timestamp=NOW, phase="Failed"))
    assert not is_terminating(pod("a"))

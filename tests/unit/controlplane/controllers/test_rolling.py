"""The arithmetic of rollouts: limits, and how a new number is shared out among sets that are at work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.controlplane.controllers.rolling import Limits, Size, share_out
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment
from flyball.k8s.core.v1 import PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector

START = datetime(2026, 1, 1, tzinfo=UTC)


def size(name: str, replicas: int, age: int, most: int | None) -> Size:
    return Size(name, replicas, START - timedelta(seconds=age), most)


def deployment(replicas: int, **strategy: object) -> Deployment:
    return Deployment(
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(),
            template=PodTemplateSpec(),
            strategy=DeploymentStrategy(**strategy),  # type: ignore[arg-type]
        )
    )


def test_what_is_made_anew_has_neither_surplus_nor_lack() -> None:
    assert Limits.of(deployment(3, type="Recreate")) == Limits(3, 0, 0)


def test_no_more_can_be_missing_than_are_wanted() -> None:
    rolling = RollingUpdateDeployment(max_surge=0, max_unavailable=9)
    limits = Limits.of(deployment(3, type="RollingUpdate", rolling_update=rolling))
    assert (limits.most, limits.least) == (3, 0)


@pytest.mark.parametrize(
    ("sets", "limits", "expected"),
    [
        ([("old", 3, 9, 5), ("new", 2, 1, 5)], Limits(8, 2, 2), {"old": 6, "new": 4}),
        ([("old", 6, 9, 10), ("new", 4, 1, 10)], Limits(3, 1, 0), {"old": 2, "new": 2}),
        ([("old", 5, 9, 10), ("new", 5, 1, 10)], Limits(0, 3, 0), {"old": 0, "new": 0}),
        ([("old", 2, 9, 4), ("new", 2, 1, 4)], Limits(4, 1, 0), {"old": 2, "new": 3}),
        ([("old", 3, 9, 6), ("new", 3, 1, 6)], Limits(4, 1, 0), {"old": 2, "new": 3}),
        ([("old", 2, 9, None), ("new", 2, 1, None)], Limits(6, 2, 0), {"old": 4, "new": 4}),
        ([("old", 2, 9, 4), ("new", 2, 1, 4)], Limits(3, 1, 0), {"old": 2, "new": 2}),
    ],
)
def test_a_new_number_is_shared_out_in_proportion(
    sets: list[tuple[str, int, int, int | None]], limits: Limits, expected: dict[str, int]
) -> None:
    assert share_out([size(*one) for one in sets], limits, present=4) == expected


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(0, 100), st.integers(0, 20), st.integers(0, 20)
)
def test_more_is_shared_out_whole_and_less_is_come_nearer_to(
    sizes: list[int], replicas: int, surge: int, extra: int
) -> None:
    sets = [size(f"s{number}", wanted, number, sum(sizes) + extra) for number, wanted in enumerate(sizes)]
    limits = Limits(replicas, surge, 0)
    shared = share_out(sets, limits, present=sum(sizes))
    assert all(one >= 0 for one in shared.values())
    wanted = limits.most if replicas else 0
    if wanted >= sum(sizes):
        assert sum(shared.values()) == wanted
    else:
        assert wanted <= sum(shared.values()) <= sum(sizes)

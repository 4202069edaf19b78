"""The kubelet of a cluster is chosen by a word; what makes no sense is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.controlplane.kubelet import fleet_for
from flyball.errors import ConfigError


def test_nobody_runs_pods_when_none_is_wanted() -> None:
    assert fleet_for("none", nodes=3) is None


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"pods": "docker"}, "pods 'docker' is not one of simulate, process, none"),
        ({"pods": "simulate", "nodes": -1}, "-1 simulated nodes"),
        ({"pods": "simulate", "speed": 0.0}, "speed 0"),
        ({"pods": "simulate", "speed": float("inf")}, "speed inf"),
    ],
)
def test_what_cannot_be_is_refused(wish: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        fleet_for(**wish)

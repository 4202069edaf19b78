"""Which kubelet runs the Pods of a cluster, chosen by a word: `--pods` of `flyball up`, `pods=` of a test's cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from flyball.controlplane.kubelet.fleet import MakeFleet
from flyball.errors import ConfigError

if TYPE_CHECKING:
    from flyball.controlplane.kubelet.process import Processes
    from flyball.controlplane.kubelet.simulated import Stage

__all__ = ["PODS", "PodsMode", "fleet_for"]

PodsMode = Literal["simulate", "process", "none"]
"""Pods are played, run as processes of this machine, or nobody runs them and there is no node."""

PODS: Final[tuple[PodsMode, ...]] = get_args(PodsMode)


def fleet_for(
    pods: PodsMode,
    *,
    nodes: int = 1,
    speed: float = 1.0,
    stages: Sequence[Stage | Path] = (),
    seed: int = 0,
    options: Processes | None = None,
) -> MakeFleet | None:
    """Return what makes the nodes of a cluster; None when it shall have none. Raises ConfigError.

    `speed`, `stages` and `seed` are of simulated Pods, `options` of Pods as processes.
    """
    if pods not in PODS:
        raise ConfigError(f"pods {pods!r} is not one of {', '.join(PODS)}")
    if stages and pods != "simulate":
        raise ConfigError(f"stages are for simulated pods; leave them out with pods {pods!r}")
    if pods == "none":
        return None
    if pods == "process":
        if os.name != "posix":
            raise ConfigError("Pods as processes need Linux or macOS; let them be simulated: --pods=simulate")
        from flyball.controlplane.kubelet.process import processes

        return processes(nodes=nodes, options=options)
    from flyball.controlplane.kubelet.simulated import simulated

    return simulated(nodes=nodes, speed=speed, stages=stages, seed=seed)

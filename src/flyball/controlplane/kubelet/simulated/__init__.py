"""The simulated kubelet: Pods live by the cluster's clock, and nothing is run.

nodes           what a simulated node is
heartbeats      its Lease, and what it says of itself
state           a Pod in one moment, as a stage sees and changes it
verdict         phase and conditions, which follow from the containers
wishes          how a Pod wants to live: its annotations
life            the usual life: what happens next, and when
stages          what happens instead, as data: Python functions,
stage_files     or YAML in the manner of kwok's Stage
diary           logs, and what else clients ask a kubelet
kubelet         looks at Pods and moves them on
fleet           all together, as a cluster takes them
"""

from __future__ import annotations

from flyball.controlplane.kubelet.simulated.fleet import SimulatedFleet, simulated
from flyball.controlplane.kubelet.simulated.nodes import NODE_LABEL
from flyball.controlplane.kubelet.simulated.stages import Match, Stage, stage
from flyball.controlplane.kubelet.simulated.state import SimulatedPod

__all__ = ["NODE_LABEL", "Match", "SimulatedFleet", "SimulatedPod", "Stage", "simulated", "stage"]

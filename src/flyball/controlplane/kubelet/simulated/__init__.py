"""The simulated kubelet: Pods live by the cluster's clock, and nothing is run.

nodes       what a simulated node is
pods        what happens to the Pods on it
fleet       both together, as a cluster takes them
"""

from __future__ import annotations

from flyball.controlplane.kubelet.simulated.fleet import SimulatedFleet, simulated
from flyball.controlplane.kubelet.simulated.nodes import NODE_LABEL

__all__ = ["NODE_LABEL", "SimulatedFleet", "simulated"]

"""What happens to Pods on the nodes of the embedded cluster.

fleet       what a cluster asks of its nodes
choice      which kind of them it gets
simulated   the default: Pods go through the stages of a life, and nothing is run
"""

from __future__ import annotations

from flyball.controlplane.kubelet.choice import PODS, PodsMode, fleet_for
from flyball.controlplane.kubelet.fleet import Fleet, MakeFleet, Setting

__all__ = ["PODS", "Fleet", "MakeFleet", "PodsMode", "Setting", "fleet_for"]

"""What happens to Pods on the nodes of the embedded cluster.

`simulated` is the default: Pods go through the stages of a life, and nothing is run.
"""

from __future__ import annotations

from flyball.controlplane.kubelet.simulated import NODE_LABEL, new_node, simulated_kubelet

__all__ = ["NODE_LABEL", "new_node", "simulated_kubelet"]

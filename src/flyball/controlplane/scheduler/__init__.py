"""The scheduler: small, honest and quick. It puts Pods onto nodes that take them, and says why none does.

    seen        what it reads of Pods and nodes
    requests    what a Pod asks for, in whole numbers
    affinity    node selectors, required and preferred node affinity
    tolerance   taints
    ledger      what is used on each node, kept by what the watches tell
    filters     whether a node takes a Pod, and why not
    waiting     the Pods that wait, in the order of their importance
    claims      whether the volumes of a Pod are there
    words       how it is told that no node takes a Pod
    scheduler   the work itself

What it promises: a Pod is bound to one node that takes it at that moment, the more important Pod first; what was placed
counts at once, so no node is given more than it has. When no node takes a Pod, its condition and an Event say so in
the words of kube-scheduler, and it is looked at again when something has changed that could help.

What it does not: affinity between Pods, spreading over topologies (a Pod that requires one of them is placed nowhere,
and is told so), preemption, volumes that are bound by the node. Among nodes that take a Pod it prefers those that the
Pod prefers, then the emptiest; on large clusters it compares only some of them, as kube-scheduler does.
"""

from __future__ import annotations

from flyball.controlplane.scheduler.scheduler import NAME, Scheduler

__all__ = ["NAME", "Scheduler"]

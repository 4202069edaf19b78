"""Pods as processes of this machine: the kubelet for whom nothing is simulated.

A container is a process with the Pod's command, environment, volumes, user and limits, in namespaces of its own where
the system has them. There are no images: a name stands for commands of this machine, and only names that were allowed
may be used. It is for tests and for people who try something out, on loopback; `docs/pods-as-processes.md` says what is
contained and what is not.

    fleet         the nodes, started and stopped with the cluster
    kubelet       takes Pods from the API server, answers for them
    lifecycle     the life of one Pod: what comes next, and its orderly end
    containers    the runs of one container: begin, output, end
    status        from what is known of containers to phase, conditions and statuses
    probes        questions to a container that runs: probes and hooks
    streaming     logs, exec, attach, port-forward
    logs          files of a bounded size, and readers that follow
    images        names that stand for commands; pulling: waiting for those that are not there
    environment   variables; lookup: what they and volumes refer to
    volumes       folders, filled once
    notices       what a Pod asks for in vain
    isolating     user, limits, view of the machine; launching: as the guard is told
    guarding      starts, signals and awaits processes through the guard
    _guard        a program of its own, which ends everything when the kubelet ends, however it ends;
                  _namespaces and _cgroups are parts of it
    output, waiting, node   descriptors in the event loop; pauses; what Pods of a node share

Promises: nothing that was started outlives the kubelet, kill -9 included. A Pod's files take no more room than said,
but for what it writes into its volumes. The server's environment is not inherited; no shell sees a word of a Pod.
"""

from __future__ import annotations

from flyball.controlplane.kubelet.process.fleet import Processes, ProcessFleet, processes
from flyball.controlplane.kubelet.process.images import Image, Images
from flyball.controlplane.kubelet.process.logs import Bounds
from flyball.controlplane.kubelet.process.node import Limits

__all__ = ["Bounds", "Image", "Images", "Limits", "ProcessFleet", "Processes", "processes"]

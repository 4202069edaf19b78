"""The small control loops of the embedded cluster.

    loop            what a loop is: the framework's work queue, with the cluster's commits in place of watches
    view            what they read: the objects that are stored, and who owns whom
    garbage         CP-1501: dependents go with their owners, stay as orphans, or go first
    namespaces      CP-1502: a namespace goes when everything in it has gone
    accounts        CP-1511: the ServiceAccount `default` and the root certificate in every namespace
    events          Events are forgotten after an hour
    running         starts and stops them together; the cluster tells it of each commit

and the controllers of workloads, which are ordinary Flyball code:

    replicasets, deployments, jobs, statefulsets    they make Pods; what happens to a Pod is its kubelet's business
    revisions, claims                   what a StatefulSet's Pods were made from, and the storage they ask for
    endpoints, endpointslices           where the Pods of a Service are reached
    mirroring                           slices for Endpoints that somebody writes himself
    backends                            what they both ask about Services and Pods
    protection      claims and volumes do not go while they are used
    pods            what they all ask about Pods
    catalogue       which there are, by the names of kube-controller-manager
    workloads       starts them on a cluster, with a scheduler and a kubelet

Promises: a loop is told of every commit and looks at the present state, never at what happened, so that nothing is lost
when it fails or starts late. It writes only through the API, as any operator does. Each can be switched off by its name
(`NAMES`), so that somebody's own can be tried. Loops have no clock of their own: with a manual clock only the pauses
after failures, and the age of events, wait for it.

Loops write by Flyball's client over the in-process transport, each as a user of its own.
"""

from __future__ import annotations

from flyball.controlplane.controllers.running import NAMES, Controllers

__all__ = ["NAMES", "Controllers"]

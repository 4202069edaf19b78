"""Jobs: Pods that run to an end, counted exactly once, until enough of them succeeded or too many failed.

    indexes        sets of completion indexes, as ranges
    policies       what a failed Pod means; whether enough indexes have succeeded
    pauses         when the next try may begin
    conditions     how the status says what has become of a Job
    pods           how Pods are made, and which of them have failed
    claims         whose Pod it is
    hands          how Pods are made and deleted
    controller     one look at a Job: this is where all of it comes together

Promises: what is counted is remembered before it can vanish, so a crash at any point neither loses nor doubles a Pod.
The statuses that follow each other are those that kube-controller-manager writes. It gathers the news of a second,
though; here a Job follows at once.

A Job with another `managedBy` is left alone altogether.
"""

from __future__ import annotations

from flyball.controlplane.controllers.jobs.controller import job_controllers

__all__ = ["job_controllers"]

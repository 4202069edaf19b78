"""The controller: the machine, and what wakes it."""

from __future__ import annotations

from flyball import Watches
from flyball.controller import instance_of
from flyball.fsm import fsm_controller
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod

from simplejob.api import SimpleJob
from simplejob.controller.statemachine import SimpleJobReconciler

__all__ = ["simplejob"]

simplejob = fsm_controller(
    SimpleJobReconciler,
    SimpleJob,
    owns=[Job],
    watches=[Watches(Pod, instance_of, labels={"app.kubernetes.io/name": "simplejob"})],
    error_condition="Progressing",
    conditions=["Progressing", "Complete", "Failed", "UpToDate"],
)

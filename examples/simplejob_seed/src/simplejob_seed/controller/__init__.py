"""The controller: it watches SimpleJobs only, and asks for their Jobs every three seconds."""

from __future__ import annotations

from flyball.fsm import fsm_controller

from simplejob_seed.api import SimpleJob
from simplejob_seed.controller.statemachine import SimpleJobReconciler

__all__ = ["simplejob"]

simplejob = fsm_controller(SimpleJobReconciler, SimpleJob, name="simplejob-seed")

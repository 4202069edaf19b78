"""How objects are reconciled: triggers fill a queue, workers take keys from it, a reconciler makes the world right.

    @controller(MyOwnShell, owns=[Deployment])
    async def reconcile(shell: MyOwnShell, ctx: Context) -> None:
        deployment = await ctx.apply(shell_deployment(shell))
        shell.status.ready = deployment.status.ready_replicas or 0

What the room promises.

- **Which, never what happened.** A reconciler gets an object as it is. It is called when something may have changed,
  and also when nothing has.
- **Never twice at once.** A key is worked on by one worker; what happens meanwhile brings one more pass afterwards.
- **Nothing is forgotten.** An error is retried with back-off, or told, or both; `failures` says which.
- **Only what is ours.** Children carry a complete controller reference; an object that is not ours is left alone; the
  spec belongs to its user; the status is written once, at the end, if it differs.
- **Stale reads are harmless.** Names are deterministic, deletes carry a uid, status writes a version.

Reading order: `request` (what a reconciler is told and may answer), `reconciler` and `definition` (what an author
writes), `sources` and `predicates` (what wakes it), `queue` (which key is next), `running` (workers), `passes` (one
pass), `context` (what it may do), `status`, `finalizers`, `failures` (what follows), `validity`, `ownership`, `naming`,
`children`, `drift`, `workspace`, `events`; `runtime` is what a process has to provide, `threads` serves plain
functions.
"""

from __future__ import annotations

from flyball.controller.children import Declared, Pruner
from flyball.controller.context import Context
from flyball.controller.definition import Controller, controller
from flyball.controller.drift import Ensured, changed_fields, ensure
from flyball.controller.events import EventRecorder
from flyball.controller.failures import ChildTerminating, InvalidSpec, PassOver
from flyball.controller.limits import RateLimit, TooOften, Window
from flyball.controller.logs import PassLogger, pass_fields
from flyball.controller.naming import (
    child_labels,
    child_name,
    instance_of,
    selector_labels,
    short_hash,
    spec_hash,
)
from flyball.controller.ownership import (
    AlreadyOwnedError,
    NameConflict,
    NotOwnable,
    controller_of,
    is_controlled_by,
    owner_reference,
    set_controller,
)
from flyball.controller.predicates import (
    Predicate,
    annotations_changed,
    condition_changed,
    deletion_changed,
    everything,
    finalizers_changed,
    generation_changed,
    labels_changed,
    predicate,
    resource_version_changed,
    status_changed,
)
from flyball.controller.queue import Backoff, Queue
from flyball.controller.reconciler import NotAReconciler, Reconciler
from flyball.controller.request import Done, Request, Result
from flyball.controller.running import RunningController
from flyball.controller.runtime import ControllerRuntime, DuplicateName
from flyball.controller.sources import Channel, For, Owns, Watches
from flyball.controller.status import bounded
from flyball.controller.threads import SyncContext
from flyball.controller.validity import expect_valid
from flyball.controller.workspace import Intent, Workspace, workspace_kind

__all__ = [
    "AlreadyOwnedError",
    "Backoff",
    "Channel",
    "ChildTerminating",
    "Context",
    "Controller",
    "ControllerRuntime",
    "Declared",
    "Done",
    "DuplicateName",
    "Ensured",
    "EventRecorder",
    "For",
    "Intent",
    "InvalidSpec",
    "NameConflict",
    "NotAReconciler",
    "NotOwnable",
    "Owns",
    "PassLogger",
    "PassOver",
    "Predicate",
    "Pruner",
    "Queue",
    "RateLimit",
    "Reconciler",
    "Request",
    "Result",
    "RunningController",
    "SyncContext",
    "TooOften",
    "Watches",
    "Window",
    "Workspace",
    "annotations_changed",
    "bounded",
    "changed_fields",
    "child_labels",
    "child_name",
    "condition_changed",
    "controller",
    "controller_of",
    "deletion_changed",
    "ensure",
    "everything",
    "expect_valid",
    "finalizers_changed",
    "generation_changed",
    "instance_of",
    "is_controlled_by",
    "labels_changed",
    "owner_reference",
    "pass_fields",
    "predicate",
    "resource_version_changed",
    "selector_labels",
    "set_controller",
    "short_hash",
    "spec_hash",
    "status_changed",
    "workspace_kind",
]

"""How one process runs it all: ordered start, one leader, probes, numbers, logs, and an orderly stop.

    run(reconcile)                                        # the last line of an operator
    await Manager(controllers=[reconcile]).run()           # in an event loop of your own

What the room promises.

- **Never two leaders.** Who does not hold the lease sends nothing, whatever wakes first after a pause (`election`,
  `fence`).
- **Warm before leading.** Every replica watches; only the leader reconciles, and it begins with everything listed.
- **A stop is bounded.** Passes under way may end, for so long; the lease is given back; the exit code tells how it was.
- **It says what is wrong.** A missing permission, a watch that is behind, a line of code that blocks the event loop,
  memory that grows: by name, in the log, in the numbers and at `/readyz`.
- **Everything can be said from outside**: by flag, environment or `pyproject.toml` (`options`).

Reading order: `manager` (the order of things), `fence`, `election`, `health`, `serving` and `probes`, `metrics`,
`logs`, `permissions`, `watchdog`, `options` and `flags`, `process` (signals and exit codes).
"""

from __future__ import annotations

from flyball.manager.election import Election, Elector, LeaseLost
from flyball.manager.fence import Fence, NotLeading
from flyball.manager.health import Check, Checks
from flyball.manager.logs import JsonFormatter, KeyValueFormatter
from flyball.manager.manager import Manager, ManagerError
from flyball.manager.metrics import Registry
from flyball.manager.options import Options, resolve
from flyball.manager.permissions import Permission, rbac, recorded
from flyball.manager.ports import PortTaken
from flyball.manager.process import run, run_controllers

__all__ = [
    "Check",
    "Checks",
    "Election",
    "Elector",
    "Fence",
    "JsonFormatter",
    "KeyValueFormatter",
    "LeaseLost",
    "Manager",
    "ManagerError",
    "NotLeading",
    "Options",
    "Permission",
    "PortTaken",
    "Registry",
    "rbac",
    "recorded",
    "resolve",
    "run",
    "run_controllers",
]

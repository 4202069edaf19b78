"""What the tests of a machine are made of: rehearsals of whole runs, and calls of single actions and guards.

A generated package has tests that need nothing but this:

- `rehearsals(text)` plans from a diagram's text one run for each transition, by the shortest way to it, and one for
  each action that can fail; `rehearse(machine, case)` runs one with forced guards and recorder actions, and gives
  back what happened, to be compared with `case.expected`;
- `diagram_of(text)` is the diagram itself, to be compared with a machine's table;
- `random_run(machine, seed)` runs with guards that answer at random, to see that every run ends;
- `run_action` and `ask_guard` call one function as the machine does and skip the test while it is a stub;
  `covers_action` and `covers_guard` tie a test to its function;
- `sample_of(Kind, name)` is an object made from a kind's schema, `EventLog` a recorder of events that keeps them,
  `cluster_or_skip(request)` the cluster of the tests;
- `ImaginedPass(object, children=...)` stands where a controller gives the pass: what actions read, and what they do.

Reading order: `events` (what is expected), `plan` (how the ways are found), `rehearse` (how they are run),
`marks`, `samples`, `imagined`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flyball.errors import FlyballError
from flyball.fsm.model import Diagram
from flyball.fsm.testing.events import Case, Record
from flyball.fsm.testing.marks import ask_guard, covers_action, covers_guard, is_stub, register_marks, run_action
from flyball.fsm.testing.plan import Plan, plan
from flyball.fsm.testing.rehearse import InjectedError, random_run, rehearse
from flyball.fsm.testing.samples import EventLog, cluster_or_skip, install_or_skip, sample_of

if TYPE_CHECKING:
    from flyball.fsm.testing.imagined import ImaginedPass

__all__ = [
    "Case",
    "EventLog",
    "ImaginedPass",
    "InjectedError",
    "Plan",
    "Record",
    "ask_guard",
    "cluster_or_skip",
    "covers_action",
    "covers_guard",
    "diagram_of",
    "install_or_skip",
    "is_stub",
    "plan",
    "random_run",
    "register_marks",
    "rehearsals",
    "rehearse",
    "run_action",
    "sample_of",
]


def __getattr__(name: str) -> Any:
    """What needs the controllers is imported when it is used."""
    if name == "ImaginedPass":
        from flyball.fsm.testing.imagined import ImaginedPass

        return ImaginedPass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def diagram_of(text: str) -> Diagram:
    """The diagram that a text means; a text with errors raises."""
    from flyball.fsm.parse import parse_text

    parsed = parse_text(text, "diagram")
    if len(parsed.diagrams) != 1:
        raise FlyballError(
            f"the text holds {len(parsed.diagrams)} diagrams, not one: {'; '.join(map(str, parsed.findings))}"
        )
    return parsed.diagrams[0]


def rehearsals(text: str) -> Plan:
    """All rehearsals of the diagram that a text means."""
    return plan(diagram_of(text).machine)

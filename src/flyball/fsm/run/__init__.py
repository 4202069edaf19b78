"""The engine: what a machine from a diagram does when it runs.

A machine has no events. One run starts in the initial pseudo state, moves on by itself as fast as its actions allow
and ends in the final state. The table of states is compiled once per class, at import; a run allocates next to
nothing per step.

How a generated module uses this package
----------------------------------------

::

    from flyball.fsm import run as fsm

    from . import actions, guards
    from .extended_state import Context, ExtendedState


    class State(StrEnum):
        Red = "Red"
        Yellow = "Yellow"


    class TrafficLight(fsm.Machine[Context, ExtendedState]):
        table = fsm.Table(
            "TrafficLight",
            initial=(fsm.to(State.Red),),
            initial_do=(),                                   # actions of the initial pseudo state
            states=(
                fsm.state(
                    State.Red,
                    do=(fsm.call("SwitchIn", "5"),),         # also entry=, exit=
                    transitions=(
                        fsm.to(fsm.FINAL, fsm.call("IsError")),
                        fsm.to("Box", fsm.all_of(fsm.call("A"), fsm.not_(fsm.call("B"))), do=(fsm.call("Note"),)),
                        fsm.to("Help", error=True),          # any error; error=("NotFound", "Conflict") for some
                        fsm.to(State.Yellow),
                    ),
                ),
                fsm.state("Box", initial=(fsm.to("Inner"),), states=(fsm.state("Inner", ...),)),   # a composite
                fsm.state("Waiting", poll=True, ...),        # <<poll>>
            ),
            actions={"SwitchIn": actions.switch_in},         # a missing function fails here, and for type checkers
            guards={"IsError": guards.is_error, ...},
        )


    Machine = TrafficLight                                   # the fixed alias that user files import

States are given in declaration order, transitions in the order written; every name that is used must be bound, and
every bound name must be used. `Table` raises `TableError` at import when a function is missing, carries another
marker, is an async guard, or cannot take the parameters of the diagram (number, and text by annotation).
`Table.of(diagram.title, diagram.machine, actions=..., guards=...)` is the same from a parsed diagram;
`load(path, functions...)` does all of it at run time.

User files say ``from flyball.fsm.run import action, guard`` and::

    @action("SwitchIn")
    async def switch_in(m: Machine, after: timedelta) -> None: ...

    @guard("IsError")
    def is_error(m: Machine, *params: str) -> bool:
        return m.has_error(*params)

    @dataclass(slots=True)
    class ExtendedState(AppState): ...                       # in an operator: OperatorState[Kind]

    @dataclass(slots=True)
    class Context(AppContext): ...                           # in an operator: OperatorContext

`m.context` and `m.state` are theirs, `m.state.error` is the stored error, `m.clear_error()` clears it, `m.current`
is the path of the present state. ``await TrafficLight().run()`` runs one; `run_sync()` where all actions are plain
functions; `settle()` and `settle_sync()` are the same without raising; `outcome()` afterwards has result, error and
trace.

Reading order: `words` (a table as Python), `markers`, `values` and `binding` (functions to calls), `compiled`
(nodes and edges), `core` (the rules), `machine` (the object), `trace`, `readonly` (what guards see), `loading`, `logs`.
"""

from __future__ import annotations

from flyball.fsm.run.compiled import Edge, Node
from flyball.fsm.run.errors import (
    BusyError,
    DeadlineError,
    Ending,
    GuardError,
    MachineError,
    Permanent,
    Requeue,
    StepLimitError,
    Stop,
    StuckError,
    TableError,
    error_is,
)
from flyball.fsm.run.loading import bound, load, read_diagram
from flyball.fsm.run.logs import app_logger
from flyball.fsm.run.machine import Machine, OnNoTransition, TransitionHook, machine_type
from flyball.fsm.run.markers import Marker, action, guard, marker_of
from flyball.fsm.run.state import AppContext, AppState, ResultState
from flyball.fsm.run.table import Table
from flyball.fsm.run.trace import Outcome, Trace
from flyball.fsm.run.words import FINAL, all_of, any_of, call, not_, state, to

__all__ = [
    "FINAL",
    "AppContext",
    "AppState",
    "BusyError",
    "DeadlineError",
    "Edge",
    "Ending",
    "GuardError",
    "Machine",
    "MachineError",
    "Marker",
    "Node",
    "OnNoTransition",
    "Outcome",
    "Permanent",
    "Requeue",
    "ResultState",
    "StepLimitError",
    "Stop",
    "StuckError",
    "Table",
    "TableError",
    "Trace",
    "TransitionHook",
    "action",
    "all_of",
    "any_of",
    "app_logger",
    "bound",
    "call",
    "error_is",
    "guard",
    "load",
    "machine_type",
    "marker_of",
    "not_",
    "read_diagram",
    "state",
    "to",
]

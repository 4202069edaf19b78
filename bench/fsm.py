"""Steps of a state machine per second, and objects made: `python -m bench.fsm`.

One machine for all: four states in a ring; in each a no-op action runs, then a guard is asked, is false, and the
default leads on. Ours makes one run of many steps; the others, which live on events, are sent one event per step.
The peers come from the package registry into an environment of their own, `.cache/bench-fsm-venv`; each measurement
has a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from bench.common import CACHE, ROOT, table

VENV: Final = CACHE / "bench-fsm-venv"
PEERS: Final = ("transitions", "python-statemachine")
STATES: Final = ("Red", "Yellow", "Green", "FlashingYellow")
RUNS: Final = 3


def main() -> int:
    """Measure one contender here, or all of them in processes of their own."""
    parser = argparse.ArgumentParser(prog="python -m bench.fsm", description=__doc__)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--measure", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(CONTENDERS[options.measure](options.steps)))
        return 0
    found = {name: _in_its_own_process(name, options.steps) for name in CONTENDERS}
    base = found["flyball"]
    rows = [
        [
            each["name"],
            *(_cells(each, kind, base) for kind in ("sync", "async", "awaiting")),
            f"{each['create'] * 1e6:.1f}",
        ]
        for each in found.values()
    ]
    head = ("library", "plain, sync run", "plain, async run", "async actions", "µs per object")
    print("Steps per second (µs per step; times slower than Flyball)\n")
    print(table(head, rows), end="\n\n")
    print(table(("of a diagram of 200 states", "seconds"), _of_a_large_diagram()), end="\n\n")
    return 0


def _cells(each: dict[str, Any], kind: str, base: dict[str, Any]) -> str:
    seconds, ours = each[kind], base[kind]
    ratio = "" if each is base else f"; {seconds / ours:.0f} x"
    return f"{1 / seconds:,.0f} ({seconds * 1e6:.1f} µs{ratio})"


# --- Flyball ----------------------------------------------------------------------------------------------------------


def flyball(steps: int) -> dict[str, Any]:
    """One run of many steps."""
    from flyball.fsm import run as fsm

    def nothing(m: object, seconds: int) -> None:
        """Do nothing."""

    async def nothing_async(m: object, seconds: int) -> None:
        """Do nothing."""

    def machine(action: Callable[..., Any]) -> type[fsm.Machine[fsm.AppContext, fsm.AppState]]:
        ring = fsm.Table(
            "Ring",
            initial=[fsm.to(STATES[0])],
            states=[
                fsm.state(
                    name,
                    do=[fsm.call("SwitchIn", "5")],
                    transitions=[
                        fsm.to(fsm.FINAL, fsm.call("IsError")),
                        fsm.to(STATES[(place + 1) % len(STATES)]),
                    ],
                )
                for place, name in enumerate(STATES)
            ],
            actions={"SwitchIn": action},
            guards={"IsError": lambda m: m.state.error is not None},
        )
        return fsm.machine_type(ring, fsm.AppContext, fsm.AppState, max_steps=steps)

    plain, waiting = machine(nothing), machine(nothing_async)
    return {
        "name": "Flyball",
        "sync": _best(lambda: plain().settle_sync(), steps),
        "async": _best_async(lambda: plain().settle(), steps),
        "awaiting": _best_async(lambda: waiting().settle(), steps),
        "create": _best(lambda: [plain() for _ in range(1000)], 1000),
    }


# --- transitions ------------------------------------------------------------------------------------------------------


def transitions(steps: int) -> dict[str, Any]:
    """One event per step."""
    from transitions import Machine  # type: ignore
    from transitions.extensions.asyncio import AsyncMachine  # type: ignore

    class Model:
        error = None
        step: Callable[[], Any]

        def is_error(self) -> bool:
            return self.error is not None

        def switch_in(self) -> None:
            """Do nothing."""

    class AsyncModel(Model):
        async def switch_in(self) -> None:  # type: ignore[override]
            """Do nothing."""

    def machine(kind: Any, model: Model) -> Any:
        states: list[dict[str, Any]] = [{"name": name, "on_enter": "switch_in"} for name in STATES]
        made = kind(model=model, states=[*states, {"name": "End"}], initial=STATES[0])
        for place, name in enumerate(STATES):
            made.add_transition("step", name, "End", conditions="is_error")
            made.add_transition("step", name, STATES[(place + 1) % len(STATES)])
        return made

    def run() -> None:
        model = Model()
        machine(Machine, model)
        for _ in range(steps):
            model.step()

    async def run_async(model: Model) -> None:
        machine(AsyncMachine, model)
        for _ in range(steps):
            await model.step()

    return {
        "name": f"transitions {importlib.metadata.version('transitions')}",
        "sync": _best(run, steps),
        "async": _best_async(lambda: run_async(Model()), steps),
        "awaiting": _best_async(lambda: run_async(AsyncModel()), steps),
        "create": _best(lambda: [machine(Machine, Model()) for _ in range(20)], 20),
    }


# --- python-statemachine ----------------------------------------------------------------------------------------------


def statemachine(steps: int) -> dict[str, Any]:
    """One event per step."""
    from statemachine import State, StateMachine  # type: ignore

    class Ring(StateMachine):  # type: ignore[misc]
        Red = State(initial=True)
        Yellow = State()
        Green = State()
        FlashingYellow = State()
        End = State(final=True)
        step = (
            Red.to(End, cond="is_error")
            | Yellow.to(End, cond="is_error")
            | Green.to(End, cond="is_error")
            | FlashingYellow.to(End, cond="is_error")
            | Red.to(Yellow)
            | Yellow.to(Green)
            | Green.to(FlashingYellow)
            | FlashingYellow.to(Red)
        )
        error = None

        def is_error(self) -> bool:
            return self.error is not None

        def on_enter_state(self) -> None:
            """Do nothing."""

    class AsyncRing(Ring):
        async def on_enter_state(self) -> None:  # type: ignore[override]
            """Do nothing."""

    def run() -> None:
        machine = Ring()
        for _ in range(steps):
            machine.step()

    async def run_plain() -> None:
        run()

    async def run_async() -> None:
        machine = AsyncRing()
        await machine.activate_initial_state()
        for _ in range(steps):
            await machine.step()

    return {
        "name": f"python-statemachine {importlib.metadata.version('python-statemachine')}",
        "sync": _best(run, steps),
        "async": _best_async(run_plain, steps),
        "awaiting": _best_async(run_async, steps),
        "create": _best(lambda: [Ring() for _ in range(20)], 20),
    }


CONTENDERS: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    "flyball": flyball,
    "transitions": transitions,
    "statemachine": statemachine,
}


# --- a large diagram --------------------------------------------------------------------------------------------------


def large_diagram(states: int = 200) -> str:
    """A diagram with two guards, an action and an error transition in each state."""
    lines = ["@startuml", "title Large", "[*] --> S0"]
    for number in range(states):
        after = f"S{number + 1}" if number + 1 < states else "[*]"
        lines += [
            f"S{number}: do / Act{number}(a, b)",
            f"S{number} --> [*]: error",
            f"S{number} --> S{number // 2}: Is{number}",
            f"S{number} --> {after}",
        ]
    return "\n".join([*lines, "@enduml", ""])


def _of_a_large_diagram() -> list[list[str]]:
    from flyball.fsm.compile import compile_text
    from flyball.fsm.simulate import table_of

    text = large_diagram()
    diagram, _ = compile_text(text, "large.puml")
    assert diagram is not None
    rows = [
        ["parse and check", f"{_best(lambda: compile_text(text, 'large.puml'), 1):.3f}"],
        ["build the table of its class", f"{_best(lambda: table_of(diagram), 1):.3f}"],
    ]
    generated = _generation(text)
    return rows if generated is None else [*rows, ["generate the package (a process of its own)", generated]]


def _generation(text: str) -> str | None:
    """Seconds of `flyball fsm generate`, start of Python included; None where the verb is not there."""
    command = [str(Path(sys.executable).with_name("flyball")), "fsm", "generate", "-i", "large.puml", "-q", "-o", "out"]
    times: list[float] = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "large.puml").write_text(text)
            Path(folder, "pyproject.toml").write_text('[project]\nname = "large"\nversion = "1"\n')
            started = time.perf_counter()
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            times.append(time.perf_counter() - started)
            if ran.returncode:
                return None
    return f"{min(times):.2f}"


# --- measuring --------------------------------------------------------------------------------------------------------


def _best(work: Callable[[], object], count: int) -> float:
    """Processor seconds per unit of the quickest of some runs: others may use the machine meanwhile."""
    times: list[float] = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times) / count


def _best_async(work: Callable[[], Awaitable[object]], count: int) -> float:
    async def timed() -> float:
        started = time.process_time()
        await work()
        return time.process_time() - started

    return min(asyncio.run(timed()) for _ in range(RUNS)) / count


def _in_its_own_process(name: str, steps: int) -> dict[str, Any]:
    command = [str(_python()), "-m", "bench.fsm", "--measure", name, "--steps", str(steps)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"bench.fsm: {name} failed:\n{ran.stderr}")
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _python() -> Path:
    """The Python of the environment with the peers and Flyball, made when it is missing."""
    python, ready = VENV / "bin/python", VENV / ".ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *PEERS], check=True)
        subprocess.run([*install, "--editable", str(ROOT)], check=True)
        ready.touch()
    return python


if __name__ == "__main__":
    sys.exit(main())

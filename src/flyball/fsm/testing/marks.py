"""What tests of single actions and guards use: marks that tie a test to its function, and calls of one function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from flyball.fsm.generate.marked import Bindings, scan
from flyball.fsm.generate.names import Kind
from flyball.fsm.generate.regions import is_untouched
from flyball.fsm.generate.sourcetext import SourceFile
from flyball.fsm.generate.stubs import FunctionShape
from flyball.fsm.model import Call
from flyball.fsm.run import Machine, Table, marker_of
from flyball.fsm.run.binding import Binder

__all__ = ["ask_guard", "covers_action", "covers_guard", "is_stub", "register_marks", "run_action"]

Test = TypeVar("Test", bound=Callable[..., Any])

_MARKS = {"covers_action": "the action that a test covers", "covers_guard": "the guard that a test covers"}


def covers_action(name: str) -> Callable[[Test], Test]:
    """Say which action a test covers. The generator finds the test by this, whatever it is called."""
    return _covers("covers_action", name)


def covers_guard(name: str) -> Callable[[Test], Test]:
    """Say which guard a test covers. The generator finds the test by this, whatever it is called."""
    return _covers("covers_guard", name)


def _covers(mark: str, name: str) -> Callable[[Test], Test]:
    def decorate(test: Test) -> Test:
        marked: Test = getattr(pytest.mark, mark)(name)(test)
        return marked

    return decorate


def register_marks(config: pytest.Config) -> None:
    """Make the marks known to pytest; called in `pytest_configure` of a conftest.py."""
    for mark, meaning in _MARKS.items():
        config.addinivalue_line("markers", f"{mark}(name): {meaning}")
    config.addinivalue_line("markers", "integration: runs against a cluster")


def run_action(machine: Machine[Any, Any], name: str, *params: str) -> None:
    """Call an action as the machine does, its parameters converted from text; skip the test while it is a stub.

    What the action raises is raised here.
    """
    call = _bound(machine, "action", name, params)
    result = call(machine)
    if inspect.isawaitable(result):
        asyncio.run(_finish(result))


def ask_guard(machine: Machine[Any, Any], name: str, *params: str) -> bool:
    """Ask a guard as the machine does, its parameters converted from text; skip the test while it is a stub."""
    return bool(_bound(machine, "guard", name, params)(machine))


async def _finish(result: Any) -> None:
    await result


def _bound(machine: Machine[Any, Any], kind: Kind, name: str, params: tuple[str, ...]) -> Callable[[Any], Any]:
    table: Table = machine.table
    functions = table.actions if kind == "action" else table.guards
    if name not in functions:
        raise LookupError(f"{table.title} has no {kind} {name}; it has {', '.join(functions) or 'none'}")
    if is_stub(functions[name]):
        pytest.skip(f"{kind} {name} is not implemented yet")
    binder = Binder(table.title, table.actions, table.guards)
    return binder.bind(kind, Call(name, params), machine.current).call


def is_stub(function: Callable[..., Any]) -> bool:
    """Whether a marked function is still what the generator wrote."""
    marker = marker_of(function)
    file = inspect.getsourcefile(function)
    if marker is None or file is None:
        return False
    path = Path(file)
    return marker.name in _stubs(path, path.stat().st_mtime_ns, marker.kind)


@lru_cache(maxsize=64)
def _stubs(path: Path, modified: int, kind: Kind) -> frozenset[str]:
    source = SourceFile.parse(path.read_bytes(), str(path))
    shape = FunctionShape(kind)
    marked = scan(source.tree, shape.words, Bindings.of(source.tree)).marked
    return frozenset(one.name for one in marked if is_untouched(source, shape, one) and not shape.is_complete(one.name))

"""A machine at run time: a diagram, and functions found by their markers. No generator, no generated file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from flyball.fsm import model
from flyball.fsm.run.errors import TableError
from flyball.fsm.run.machine import Machine, machine_type
from flyball.fsm.run.markers import marker_of
from flyball.fsm.run.state import AppContext, AppState
from flyball.fsm.run.table import Table

__all__ = ["bound", "load", "read_diagram"]

C = TypeVar("C", bound=AppContext)
S = TypeVar("S", bound=AppState)

Source = ModuleType | Callable[..., Any]


def load(
    path: str | Path,
    *functions: Source,
    context: type[C] = AppContext,  # type: ignore[assignment]
    state: type[S] = AppState,  # type: ignore[assignment]
    diagram: str | int | None = None,
    **options: Any,
) -> type[Machine[C, S]]:
    """A machine class from a diagram file and functions marked `@action` and `@guard`, or modules that hold them.

    `diagram` selects one of several in the file; `options` are class attributes of the machine such as `max_steps`.
    Raises `DiagramError` when the diagram has errors and `TableError` when a function is missing; marked functions that
    the diagram does not mention are left out.
    """
    return machine_type(bound(read_diagram(path, diagram), *functions), context, state, **options)


def bound(diagram: model.Diagram, *functions: Source) -> Table:
    """The table of a parsed diagram over marked functions, or modules that hold them."""
    found = _marked(functions)
    missing = [
        f"{kind} {name}"
        for kind, names in (("action", diagram.actions), ("guard", diagram.guards))
        for name in names
        if (kind, name) not in found
    ]
    if missing:
        raise TableError(
            f"{diagram.title}: no function is marked for {', '.join(missing)}; pass functions with @action, @guard"
        )
    return Table.of(
        diagram.title,
        diagram.machine,
        actions={name: found["action", name] for name in diagram.actions},
        guards={name: found["guard", name] for name in diagram.guards},
    )


def read_diagram(path: str | Path, which: str | int | None = None) -> model.Diagram:
    """The diagram of a file, which must be free of errors: `DiagramError` names the first one and holds all."""
    from flyball.fsm.compile import compile_file  # generated machines run without the language
    from flyball.fsm.parse import DiagramError

    diagram, findings = compile_file(path, which)
    errors = [finding for finding in findings if finding.severity == "error"]
    if diagram is None or errors:
        more = f" (and {len(errors) - 1} more: flyball fsm lint {path})" if len(errors) > 1 else ""
        raise DiagramError(f"{errors[0]}{more}" if errors else f"{path}: there is no diagram in it", errors)
    return diagram


def _marked(sources: Iterable[Source]) -> Mapping[tuple[str, str], Callable[..., Any]]:
    found: dict[tuple[str, str], Callable[..., Any]] = {}
    for source in sources:
        values = list(vars(source).values()) if isinstance(source, ModuleType) else [source]
        for value in values:
            marker = marker_of(value)
            if marker is None:
                if value is source:
                    raise TableError(f"{value!r} has no marker; decorate it with @action(...) or @guard(...)")
                continue
            first = found.setdefault((marker.kind, marker.name), value)
            if first is not value:
                raise TableError(f"{marker.kind} {marker.name} is marked twice: {first!r} and {value!r}; keep one")
    return found

"""What to show on top of a diagram: how often each transition was taken, and where a machine is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from flyball.errors import FlyballError
from flyball.fsm.model import FINAL, INITIAL, Transition

__all__ = ["Overlay", "OverlayError", "hits_of"]

Key = tuple[str, str, str]
"""The path of the level, the source and the target."""


class OverlayError(FlyballError):
    """A trace or a state that does not belong to what is drawn."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """`hits` counts transitions; `current` is the path of the present state (`Box/Inner`)."""

    hits: Mapping[Key, int] = field(default_factory=dict[Key, int])
    current: str = ""
    traced: bool = False
    """Whether there was a trace at all: then a transition without hits is shown as one."""

    def count(self, level: str, transition: Transition) -> int | None:
        """How often a way was taken, None without a trace.

        A trace tells states, not transitions: several transitions between the same two states share their count.
        """
        return self.hits.get((level, transition.source, transition.target), 0) if self.traced else None

    def is_current(self, path: str) -> bool:
        """Whether a state is the present one or holds it."""
        return bool(self.current) and (self.current == path or self.current.startswith(f"{path}/"))


def hits_of(trace: object) -> Counter[Key]:
    """The transitions of a trace: what `flyball fsm simulate` prints, `Trace.as_dict()`, a path, or a list of these."""
    hits: Counter[Key] = Counter()
    for path in _paths(trace):
        _count(path, hits)
    return hits


def _paths(trace: object) -> Iterable[Sequence[str]]:
    if isinstance(trace, Mapping):
        found = cast("Mapping[str, Any]", trace)
        path = found.get("path", found.get("states"))
        if path is None:
            raise OverlayError("the trace has neither a path nor states: take the output of flyball fsm simulate")
        yield from _paths(path)
    elif isinstance(trace, list):
        items = cast("list[object]", trace)
        if all(isinstance(one, str) for one in items):
            yield cast("list[str]", items)
        else:
            for one in items:
                yield from _paths(one)
    else:
        raise OverlayError("a trace is a list of states, an object with a path, or a list of these")


def _count(path: Sequence[str], hits: Counter[Key]) -> None:
    """Follow one path; every level remembers where it is, and begins anew when its composite is entered."""
    here: dict[str, str] = {}
    for entry in path:
        level, _, name = entry.rpartition("/")
        hits[level, here.get(level, INITIAL), name] += 1
        if name == FINAL:
            here.pop(level, None)
        else:
            here[level] = name
            here.pop(entry, None)

"""A pass over an imagined world: no cluster, only what a machine is shown and what it does.

    ctx = ImaginedPass(sample, children=[job])
    machine = Machine(Context(recorder=events, ctx=ctx))
    run_action(machine, "CreateJob")
    assert ctx.done == ["create Job demo-1"]

It stands where a controller gives the context of a pass. What is read is what it was given; what is written is noted in
`done`, and made or taken away in the imagined world. Nothing is checked that an API server would check, and nobody sets
owners: tests on a cluster do that.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from flyball.client.kinds import kind_from, kind_of
from flyball.controller import Context, Request
from flyball.controller.logs import PassLogger
from flyball.errors import FlyballError

__all__ = ["ImaginedPass"]


class ImaginedPass(Context):
    """The context of a pass that no controller makes; see the module."""

    def __init__(self, obj: Any = None, *, children: Iterable[Any] = (), now: datetime | None = None) -> None:
        """`obj` is what the pass is about (None: it is gone), `children` are what else is there, `now` the time."""
        self.request = Request(obj.metadata.namespace, obj.metadata.name) if obj is not None else Request(None, "gone")
        self.object = obj
        self.children: list[Any] = list(children)
        self.moment = now or datetime(2026, 1, 1, 12, tzinfo=UTC)
        """The time; move it as you like."""
        self.done: list[str] = []
        """What was written, in words: `create Job demo-1`, `delete Job demo-1 Background`, `write status`."""
        self.fails: dict[str, Exception] = {}
        """What these verbs raise: `{"create": Conflict(...)}`."""
        self.status_differs = True
        """What `write_status` finds."""
        self.reported: FlyballError | None = None
        """What `report` was given."""
        self.numbers: dict[str, float] = {}
        """What was counted and measured."""
        self.deleting = obj is not None and obj.metadata.deletion_timestamp is not None
        self.log = PassLogger(logging.getLogger("flyball.fsm"), {})

    def _do(self, verb: str, words: str) -> None:
        if verb in self.fails:
            raise self.fails[verb]
        self.done.append(words)

    @property
    def primary(self) -> Any:
        """What the pass is about."""
        return self.object

    def now(self) -> datetime:
        """The imagined time."""
        return self.moment

    async def load(self, kind: Any) -> Any:
        """What the pass is about."""
        if "load" in self.fails:
            raise self.fails["load"]
        return self.object

    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """A child by its name."""
        return next((one for one in self._of(kind) if one.metadata.name == name), None)

    async def list(self, kind: Any, *, namespace: str | None = None, labels: Any = None) -> builtins.list[Any]:
        """The children of a kind, whatever their labels and namespaces."""
        return self._of(kind)

    async def owned(self, kind: Any, *, of: Any = None) -> builtins.list[Any]:
        """The children of a kind, by name."""
        return sorted(self._of(kind), key=lambda one: str(one.metadata.name))

    def _of(self, kind: Any) -> builtins.list[Any]:
        source = kind_from(kind).source
        names = (source.api_version, source.kind)
        found = [(one, kind_of(one).source) for one in self.children]
        return [one for one, its in found if (its.api_version, its.kind) == names]

    async def apply(self, obj: Any, *, force: bool = True, owner: bool | None = None) -> Any:
        """Note it, and put it in the place of one of that name."""
        self._do("apply", f"apply {_words(obj)}")
        self._take_away(obj)
        self.children.append(obj)
        return obj

    async def create(self, obj: Any, *, owner: bool | None = None) -> Any:
        """Note it; from now on it is there."""
        self._do("create", f"create {_words(obj)}")
        self.children.append(obj)
        return obj

    async def patch(self, obj: Any, patch: Any = None, *, subresource: Any = None, guard: Any = None) -> Any:
        """Note it."""
        self._do("patch", f"patch {_words(obj)}")
        return obj

    async def delete(
        self, obj: Any, *, propagation: Any = "Background", guard: bool = False, grace_period: int | None = None
    ) -> None:
        """Note it; from now on it is gone."""
        self._do("delete", f"delete {_words(obj)} {propagation}{' guarded' if guard else ''}")
        self._take_away(obj)

    def _take_away(self, obj: Any) -> None:
        self.children = [one for one in self.children if _words(one) != _words(obj)]

    async def write_status(self) -> bool:
        """Note it, and answer what `status_differs` says."""
        self._do("status", "write status")
        return self.status_differs

    def report(self, error: FlyballError) -> None:
        """Keep it."""
        self.reported = error

    def record(self, type: Any, reason: str, message: str, *, about: Any = None, action: str = "") -> None:
        """Note it."""
        self.done.append(f"{type} {reason}: {message}")

    def requeue(self, *, after: timedelta | float | None = None, at: datetime | None = None) -> None:
        """Note it."""
        self.done.append(f"requeue {after if after is not None else at}")

    def count(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        """Add it up, by name and the values of the labels: `attempts_total failed`."""
        key = " ".join((name, *labels.values()))
        self.numbers[key] = self.numbers.get(key, 0.0) + value

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Keep the last one."""
        self.numbers[" ".join((name, *labels.values()))] = value

    def measure(self, name: str, value: float) -> None:
        """Keep it."""
        self.numbers[name] = value


def _words(obj: Any) -> str:
    name = getattr(obj, "name", None) or obj.metadata.name
    kind = getattr(obj, "kind", "")
    return f"{kind if isinstance(kind, str) else kind.word} {name}"

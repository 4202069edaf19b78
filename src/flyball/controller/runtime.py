"""What a controller needs of the process that it runs in."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from flyball.cache import NO_METRICS, InformerCache, Metrics
from flyball.client import Client
from flyball.clock import Clock, RealClock
from flyball.controller.events import EventRecorder
from flyball.controller.strictness import report_undeclared_read
from flyball.errors import FlyballError

__all__ = ["ControllerRuntime", "DuplicateName"]


class DuplicateName(FlyballError, ValueError):
    """Two controllers of one process have the same name."""


@dataclass
class ControllerRuntime:
    """The shared parts of a process. `ControllerRuntime.of(client)` makes what is missing.

    Who makes it starts and stops the cache and the recorder; controllers only use them.
    """

    client: Client
    cache: InformerCache
    recorder: EventRecorder
    clock: Clock = field(default_factory=RealClock)
    metrics: Metrics = NO_METRICS
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("flyball.controller"))
    field_manager: str | None = None
    """Who owns what is applied; default: the name of the controller."""
    _names: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, client: Client, *, clock: Clock | None = None, metrics: Metrics = NO_METRICS) -> ControllerRuntime:
        """The parts that a single process needs, from a client."""
        time: Clock = clock if clock is not None else RealClock()
        cache = InformerCache(client, clock=time, metrics=metrics, on_undeclared=report_undeclared_read)
        return cls(client, cache, EventRecorder(client, clock=time, metrics=metrics), time, metrics)

    def claim(self, name: str) -> None:
        """Take a name; `DuplicateName` when another controller has it."""
        if name in self._names:
            raise DuplicateName(
                f"there are two controllers named {name!r} in this process, and their metrics, logs and field managers "
                "could not be told apart; give one of them another name: @controller(..., name=...)"
            )
        self._names.add(name)

    def release(self, name: str) -> None:
        """Give a name back."""
        self._names.discard(name)

"""What a reconciler is told, and what it may answer.

A `Request` names an object, never what happened to it. The answer is nothing (`Done`), a `Result`, or an exception;
`Result` has a word for each meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

__all__ = ["Done", "Request", "Result"]


class Request(NamedTuple):
    """Which object to look at. `namespace` is None for kinds of the whole cluster."""

    namespace: str | None
    name: str
    cluster: str | None = None
    """The cluster, where a controller serves several."""

    def __str__(self) -> str:
        """Write the request as people do: `namespace/name`."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.cluster}:{name}" if self.cluster else name


@dataclass(frozen=True, slots=True)
class Result:
    """When to run again. Every form ends the key's back-off.

    `Result()` (also spelled `Done`, or returning None) waits for the next event. Of several times the earliest counts.
    """

    delay: timedelta | None = None
    moment: datetime | None = None
    again: bool = False

    none: ClassVar[Result]

    @classmethod
    def after(cls, delay: timedelta | float) -> Result:
        """Run again after a time (seconds, or a timedelta), or earlier if something happens. Zero or less: at once."""
        return cls(delay=delay if isinstance(delay, timedelta) else timedelta(seconds=delay))

    @classmethod
    def at(cls, moment: datetime) -> Result:
        """Run again at a time of day, or earlier if something happens."""
        if moment.tzinfo is None:
            raise ValueError("Result.at needs a time with a time zone, such as datetime.now(UTC) + timedelta(hours=1)")
        return cls(moment=moment)

    @classmethod
    def now(cls) -> Result:
        """Run again at once, behind other waiting keys: after a write that nothing watches."""
        return cls(again=True)

    def seconds(self, now: datetime) -> float | None:
        """Return in how many seconds to run again; None for waiting, zero for at once."""
        waits: list[float] = [0.0] if self.again else []
        if self.delay is not None:
            waits.append(self.delay.total_seconds())
        if self.moment is not None:
            waits.append((self.moment - now).total_seconds())
        return max(min(waits), 0.0) if waits else None


Result.none = Result()
Done = Result.none

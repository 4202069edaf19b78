"""Errors: what each class means for the queue, the status, the events and the log.

`judge` turns whatever a pass raised into a `Verdict`. It never looks at the world; what came before (how many
conflicts or server troubles in a row) is counted per key in `Streak`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal

from flyball.controller.ownership import AlreadyOwnedError, NameConflict
from flyball.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    RetryAfter,
    TerminalError,
    TooManyRequests,
    TransportError,
    one_line,
)

__all__ = ["ChildTerminating", "InvalidSpec", "PassOver", "Streak", "Verdict", "judge"]

Answer = Literal["silent", "ended", "after", "backoff", "terminal"]

_FIVE_MINUTES: Final = 300.0
_CONFLICTS_IN_A_ROW: Final = 5
_TROUBLES_IN_A_ROW: Final = 3
_ADMISSION = re.compile(r"admission webhook .* denied the request|ValidatingAdmissionPolicy|admission.* denied")
_QUOTA = re.compile(r"exceeded quota", re.IGNORECASE)
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class InvalidSpec(TerminalError):
    """Raised by a reconciler: the API server let this spec pass, but it makes no sense. No retry until it changes."""


class ChildTerminating(RetryAfter):
    """A child of the wanted name is being deleted: wait until it is gone."""


class PassOver(TerminalError):
    """The pass of this `ctx` has ended (its time is up, or the process stops); nothing was done."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from an error.

    `silent`: back-off, and nobody hears of it. `ended`: as if the pass had answered Done. `after`: a timer, the
    back-off's count stays. `backoff`, `terminal`: reported; retried, or not before something changes.
    """

    answer: Answer
    reason: str = ""
    """For the condition; empty: the status says nothing about it."""
    message: str = ""
    delay: float | None = None
    """Wait exactly this long."""
    limit: float | None = None
    """The longest wait of the back-off."""
    trouble: bool = False
    """The server's trouble, not the object's: said only when it goes on."""
    traceback: bool = False
    """The log needs one: it may be a mistake in the code."""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The single errors of a group, in order."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    else:
        yield error


def judge(error: BaseException) -> Verdict:
    """Classify an error that a pass raised. Of a group, the first one that is no conflict counts."""
    found = list(leaves(error))
    one = next((leaf for leaf in found if not isinstance(leaf, Conflict)), found[0])
    if isinstance(one, ApiError):
        return _of_api(one)
    if isinstance(one, RetryAfter):
        return Verdict("after", delay=one.seconds, message=one.reason)
    if isinstance(one, InvalidSpec):
        return Verdict("terminal", "InvalidSpec", _text(one))
    if isinstance(one, TerminalError):
        return Verdict("terminal", _own_reason(one), _text(one))
    if isinstance(one, NameConflict | AlreadyOwnedError):
        return Verdict("backoff", "NameConflict", _text(one), delay=60.0)
    if isinstance(one, TransportError | ConnectionError):
        return Verdict("backoff", "APIError", _text(one), trouble=True)
    return Verdict("backoff", "ReconcileError", f"{type(one).__name__}: {_text(one)}", traceback=True)


def _of_api(error: ApiError) -> Verdict:
    text, words = _text(error), error.message
    if isinstance(error, Conflict):
        return Verdict("silent", message=text)
    if _ADMISSION.search(words):
        return Verdict("backoff", "AdmissionDenied", text, limit=_FIVE_MINUTES)
    if isinstance(error, Forbidden):
        if any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes):
            return Verdict("ended")
        if _QUOTA.search(words):
            return Verdict("backoff", "QuotaExceeded", text, limit=_FIVE_MINUTES)
        return Verdict("backoff", "Forbidden", text)
    if isinstance(error, AlreadyExists):
        return Verdict("backoff", "NameConflict", text, delay=60.0)
    if isinstance(error, TooManyRequests) and error.retry_after is not None:
        return Verdict("after", "APIError", text, delay=error.retry_after, trouble=True)
    if isinstance(error, TooManyRequests) or error.code >= 500 or error.code == 0:
        return Verdict("backoff", "APIError", text, trouble=True)
    if isinstance(error, Invalid):
        return Verdict("terminal", "ChildInvalid", text)
    return Verdict("backoff", "ReconcileError", f"{type(error).__name__}: {text}", traceback=True)


def _own_reason(error: TerminalError) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, str) and _REASON.fullmatch(reason):
        return reason
    return "TerminalError" if type(error) is TerminalError else type(error).__name__


def _text(error: BaseException) -> str:
    return one_line(str(error)) or type(error).__name__


@dataclass(slots=True)
class Streak:
    """What a key has come through lately: as much as is needed to tell a blip from trouble."""

    conflicts: int = 0
    troubles: int = 0
    finalizing: bool = False
    """Its finalizers have begun; their failures are counted from then on."""
    reported: tuple[str, int] | None = None
    """Reason and generation that an event told of last."""

    def weigh(self, error: BaseException, verdict: Verdict) -> Verdict:
        """Count, and turn a conflict that does not end into an error, or leave a short trouble unsaid."""
        self.conflicts = self.conflicts + 1 if verdict.answer == "silent" else 0
        self.troubles = self.troubles + 1 if verdict.trouble else 0
        if self.conflicts > _CONFLICTS_IN_A_ROW:
            return Verdict("backoff", "Conflict", _text(error))
        if verdict.trouble and self.troubles < _TROUBLES_IN_A_ROW:
            return replace(verdict, reason="", traceback=False)
        return verdict

    def went_well(self) -> None:
        """A pass ended with a result."""
        self.conflicts = self.troubles = 0
        self.reported = None


def is_cancelled_from_outside() -> bool:
    """Whether the running task was asked to end, in contrast to code that raised CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def seconds_of(value: timedelta | float) -> float:
    """A duration as seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else float(value)

"""Conditions: the facts a status states, one per type.

`set_condition` keeps `last_transition_time` as long as the truth of the condition stays the same, and the list
stays in the order in which conditions were first set. The functions work on any list of conditions, also those of
built-in kinds; the methods of `Status` are the same in shorter words:

    status.set_condition("Ready", True, reason="AllThere", message="3 of 3 shells answer")
    if status.is_true("Ready"): ...
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol, TypeVar

from flyball.api.markers import Format, ListMapKeys
from flyball.api.metadata import Condition, ConditionStatus
from flyball.api.model import Model, field

__all__ = ["Status", "find_condition", "is_false", "is_true", "set_condition"]


class _HasType(Protocol):
    @property
    def type(self) -> Any: ...
    @property
    def status(self) -> Any: ...


C = TypeVar("C", bound=_HasType)


def find_condition(conditions: Iterable[C] | None, type: str) -> C | None:
    """The condition of this type, or None."""
    return next((condition for condition in conditions or () if condition.type == type), None)


def is_true(conditions: Iterable[_HasType] | None, type: str) -> bool:
    """The condition is there and holds."""
    found = find_condition(conditions, type)
    return found is not None and found.status == "True"


def is_false(conditions: Iterable[_HasType] | None, type: str) -> bool:
    """The condition is there and does not hold (Unknown is neither true nor false)."""
    found = find_condition(conditions, type)
    return found is not None and found.status == "False"


def set_condition(
    conditions: list[Condition],
    type: str,
    status: ConditionStatus | bool | None,
    *,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | None = None,
) -> Condition:
    """State a fact: True, False, or None for Unknown. Returns the condition as it now is in the list."""
    word: ConditionStatus = status if isinstance(status, str) else _WORDS[status]
    moment = (now or datetime.now(UTC)).replace(microsecond=0)
    found = find_condition(conditions, type)
    if found is None:
        found = Condition(type=type, status=word, reason=reason, message=message, last_transition_time=moment)
        conditions.append(found)
    if found.status != word or not isinstance(found.last_transition_time, datetime):  # pyright: ignore[reportUnnecessaryIsInstance] # what a server sent
        found.last_transition_time = moment
    found.status, found.reason, found.message = word, reason, message
    if observed_generation is not None:
        found.observed_generation = observed_generation
    return found


_WORDS: dict[bool | None, ConditionStatus] = {True: "True", False: "False", None: "Unknown"}


class Status(Model):
    """The base of what a controller reports: for every kind, what it has observed and the conditions."""

    observed_generation: Annotated[int, Format("int64")] | None = None
    """The generation of the object that this status is about."""
    conditions: Annotated[list[Condition], ListMapKeys("type")] = field(default_factory=list)
    """What is known about the object, one entry per type."""

    def condition(self, type: str) -> Condition | None:
        """The condition of this type, or None."""
        return find_condition(self.conditions, type)

    def is_true(self, type: str) -> bool:
        """The condition is there and holds."""
        return is_true(self.conditions, type)

    def is_false(self, type: str) -> bool:
        """The condition is there and does not hold."""
        return is_false(self.conditions, type)

    def set_condition(
        self,
        type: str,
        status: ConditionStatus | bool | None,
        *,
        reason: str,
        message: str = "",
        observed_generation: int | None = None,
        now: datetime | None = None,
    ) -> Condition:
        """State a fact; its time changes only with its truth. The generation defaults to the status's own."""
        return set_condition(
            self.conditions,
            type,
            status,
            reason=reason,
            message=message,
            observed_generation=self.observed_generation if observed_generation is None else observed_generation,
            now=now,
        )

    def remove_condition(self, type: str) -> None:
        """Forget a fact."""
        self.conditions[:] = [condition for condition in self.conditions if condition.type != type]

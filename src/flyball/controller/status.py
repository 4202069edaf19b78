"""The status writer: what a pass has found out, written once at its end.

What it guarantees:

- The status is written through its subresource only, once per pass, only if it differs, and only onto the version that
  the pass has seen; also after an exception.
- `observedGeneration` is the generation that the pass looked at; so is that of every condition it states.
- `lastTransitionTime` changes when the truth of a condition changes, and not otherwise, whatever the pass put there.
- The conditions that the controller owns are all there after the first pass (`Unknown` until they are stated).
- The error condition tells of the pass's error, and of its end. What the pass itself states about it stays.

Fields and conditions that the class does not know, or that other writers own, are left as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, cast

import msgspec

from flyball.api import Condition, DynamicObject, Model, Status, decode, find_condition, from_dict, to_dict
from flyball.api.changes import merge_patch
from flyball.api.codec import encode_whole
from flyball.api.values import enc_hook
from flyball.client import MergePatch
from flyball.controller.failures import Verdict

__all__ = ["DELETING", "RECONCILED", "StatusDraft", "Transition", "bounded", "is_bad_when_true", "new_draft"]

T = TypeVar("T")

_encode: Final = msgspec.json.Encoder(enc_hook=enc_hook).encode
"""For comparisons only: the quick way, which may spell a time in another way than what is sent."""

DELETING: Final = "Deleting"
RECONCILED: Final = "Reconciled"
_OURS: Final = frozenset(
    {
        RECONCILED,
        "InvalidSpec",
        "ChildInvalid",
        "Forbidden",
        "QuotaExceeded",
        "AdmissionDenied",
        "NameConflict",
        "APIError",
        "ReconcileError",
        "TerminalError",
        "Conflict",
    }
)
_BAD: Final = frozenset({"Degraded", "Failed", "Failing", "Failure", "Error", "Stalled", "Problem"})


def is_bad_when_true(condition: str) -> bool:
    """Whether a condition of this name tells of something wrong when it is True (`Degraded`), or when it is False."""
    return condition in _BAD or condition.endswith(("Failed", "Failure", "Error", "Pressure"))


def bounded(items: Iterable[T], limit: int) -> tuple[list[T], int]:
    """The first `limit` items in sorted order, and how many are left out: for lists in a status.

    >>> bounded(["c", "a", "b"], 2)
    (['a', 'b'], 1)
    """
    found = sorted(items, key=_sortable)
    return found[:limit], max(0, len(found) - limit)


def _sortable(item: Any) -> Any:
    return encode_whole(item) if isinstance(item, Model) else item


class Transition(msgspec.Struct, frozen=True, gc=False):
    """A condition whose status or reason is another one than before."""

    type: str
    before: str
    after: Condition

    @property
    def is_news(self) -> bool:
        """Whether people want to hear of it: not that nothing is wrong from the start."""
        return bool(self.before) or self.after.status == "True" or not is_bad_when_true(self.type)

    @property
    def is_bad(self) -> bool:
        """Whether it went from good to bad, or tells of an error from the start."""
        if is_bad_when_true(self.type):
            return self.after.status == "True"
        return self.after.status == "False" and (self.before == "True" or self.after.reason in _OURS)


def new_draft(obj: Any, *, owned: Sequence[str] = (), error_condition: str | None = None) -> StatusDraft | None:
    """The draft of an object's status; None for a kind without one."""
    if isinstance(obj, DynamicObject):
        return _DynamicDraft(obj, owned, error_condition)
    return StatusDraft(obj, owned, error_condition) if isinstance(getattr(obj, "status", None), Model) else None


class StatusDraft:
    """The status of one object during one pass."""

    def __init__(self, obj: Any, owned: Sequence[str], error_condition: str | None) -> None:
        """Remember the status as it was read, and make it ready for the pass."""
        self._obj = obj
        self._owned = owned
        self._error = error_condition
        self._before = self._encoded()
        self._conditions_before = self._copied()
        self._told: Condition | None = None
        self._begin()

    # What a typed status looks like; a dynamic object does it in its own way.

    def _encoded(self) -> bytes:
        return _encode(self._obj.status)

    def _conditions(self) -> list[Condition] | None:
        status: Any = self._obj.status
        return status.conditions if isinstance(status, Status) else None

    def _store(self, conditions: list[Condition]) -> None:
        self._obj.status.conditions = conditions

    def _observe(self, generation: int) -> None:
        if isinstance(self._obj.status, Status) and generation:
            self._obj.status.observed_generation = generation

    def _copied(self) -> list[Condition]:
        status: Any = self._obj.status
        if not isinstance(status, Status) or not status.conditions:
            return []
        return [copy.copy(one) for one in status.conditions]

    # The pass

    @property
    def _generation(self) -> int:
        return int(self._obj.metadata.generation or 0)

    def _begin(self) -> None:
        self._observe(self._generation)
        conditions = self._conditions()
        if conditions is None or self._error is None:
            return
        told = find_condition(conditions, self._error)
        if told is not None and told.reason in _OURS:
            self._told = told
            self._store([one for one in conditions if one is not told])

    def finish(self, now: datetime, verdict: Verdict | None = None, *, deleting: tuple[str, str] | None = None) -> None:
        """The pass is over: state what the framework states, with `verdict` of its error if it had one.

        `deleting` are reason and message of the condition Deleting.
        """
        self._observe(self._generation)
        conditions = self._conditions()
        if conditions is None:
            return
        if self._error is not None and deleting is None:
            self._tell_error(conditions, verdict)
        if deleting is not None:
            if self._told is not None:
                conditions.append(self._told)
            self._state(conditions, DELETING, "True", *deleting)
        for name in self._owned:
            if find_condition(conditions, name) is None:
                self._state(conditions, name, "Unknown", "NotYetKnown", "")
        self._store(self._in_order(conditions, now))

    def _tell_error(self, conditions: list[Condition], verdict: Verdict | None) -> None:
        assert self._error is not None
        if find_condition(conditions, self._error) is not None:
            if verdict is None or not verdict.reason:
                return  # the pass has said itself what there is to say
            conditions[:] = [one for one in conditions if one.type != self._error]
        bad = is_bad_when_true(self._error)
        if verdict is None:
            self._state(conditions, self._error, "False" if bad else "True", RECONCILED, "")
        elif verdict.reason:
            self._state(conditions, self._error, "True" if bad else "False", verdict.reason, verdict.message)
        elif self._told is not None:
            conditions.append(self._told)

    def _state(self, conditions: list[Condition], type: str, status: str, reason: str, message: str) -> None:
        stated = Condition(type=type, status=cast("Any", status), reason=reason, message=message[:32768])
        for index, one in enumerate(conditions):
            if one.type == type:
                conditions[index] = stated
                return
        conditions.append(stated)

    def _in_order(self, conditions: list[Condition], now: datetime) -> list[Condition]:
        """In the order in which they were first stated, each with its time and generation."""
        before = {one.type: one for one in self._conditions_before}
        place = {one.type: index for index, one in enumerate(self._conditions_before)}
        moment = now.replace(microsecond=0)
        for one in conditions:
            known = before.get(one.type)
            if known is not None and known.status == one.status:
                one.last_transition_time = known.last_transition_time
            else:
                one.last_transition_time = moment
            same = known is not None and (known.status, known.reason, known.message) == (
                one.status,
                one.reason,
                one.message,
            )
            stated = one.type == self._error or not same
            if self._generation and (stated or one.observed_generation is None):
                one.observed_generation = self._generation
        return sorted(conditions, key=lambda one: place.get(one.type, len(place)))

    @property
    def differs(self) -> bool:
        """Whether there is anything to write."""
        return self._encoded() != self._before

    def patch(self) -> MergePatch:
        """The difference as a patch, for an object of which not everything is here."""
        before, after = msgspec.json.decode(self._before), msgspec.json.decode(self._encoded())
        return MergePatch({"status": merge_patch(before, after)})

    def reset(self) -> None:
        """Forget what the pass has put in: the status is as it was read."""
        self._obj.status = decode(type(self._obj.status), self._before)
        self._told = None
        self._begin()

    def transitions(self) -> list[Transition]:
        """Which conditions have another status or reason than before."""
        before = {one.type: one for one in self._conditions_before}
        found: list[Transition] = []
        for one in self._conditions() or ():
            known = before.get(one.type)
            if known is None or (known.status, known.reason) != (one.status, one.reason):
                found.append(Transition(one.type, known.status if known is not None else "", one))
        return found

    def reason_before(self, condition: str | None) -> tuple[str, int] | None:
        """Reason and generation of a condition as it was read."""
        known = find_condition(self._conditions_before, condition) if condition else None
        return (known.reason, known.observed_generation or 0) if known is not None else None


class _DynamicDraft(StatusDraft):
    """The same for an object without a class, whose status is a dict."""

    _obj: DynamicObject

    def _status(self) -> dict[str, Any]:
        found: Any = self._obj.get("status")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def _encoded(self) -> bytes:
        return msgspec.json.encode(self._status())

    def _conditions(self) -> list[Condition] | None:
        if not self._owned and self._error is None and "conditions" not in self._status():
            return None
        found = self._status().get("conditions") or []
        return from_dict(list[Condition], found)

    def _store(self, conditions: list[Condition]) -> None:
        known = {str(one.get("type")): one for one in self._status().get("conditions") or []}
        plain = [{**known.get(one.type, {}), **to_dict(one)} for one in conditions]
        if plain or known:
            self._obj["status"] = {**self._status(), "conditions": plain}

    def _observe(self, generation: int) -> None:
        if generation and (self._error is not None or self._owned or "observedGeneration" in self._status()):
            self._obj["status"] = {**self._status(), "observedGeneration": generation}

    def _copied(self) -> list[Condition]:
        return from_dict(list[Condition], self._status().get("conditions") or [])

    def reset(self) -> None:
        """Forget what the pass has put in."""
        self._obj["status"] = msgspec.json.decode(self._before)
        self._told = None
        self._begin()

"""The rules of a Job's status: it goes forward only, whoever writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Reason, Shown
from flyball.controlplane.apiserver.rules.common import Errors, Object, at_least
from flyball.controlplane.apiserver.rules.jobpolicies import BadIndexes, read_indexes

__all__ = ["job_status"]

_PATH: Final = "status"
_COMPLETE, _FAILED, _MET, _TARGET = "Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"


class _Side:
    """A Job's status, before or after the change."""

    def __init__(self, obj: Object) -> None:
        self.spec: Mapping[str, Any] = obj.get("spec") or {}
        self.status: Mapping[str, Any] = obj.get("status") or {}

    def number(self, name: str) -> int:
        found = self.status.get(name)
        return found if isinstance(found, int) else 0

    def has(self, type_: str, status: str = "True") -> bool:
        found = self.status.get("conditions") or ()
        return any(one.get("type") == type_ and one.get("status") == status for one in found)

    @property
    def finished(self) -> bool:
        return self.has(_COMPLETE) or self.has(_FAILED)


def job_status(obj: Object, old: Object) -> Errors:
    """Judge a new status of a Job. What an earlier writer did wrong hinders nobody who leaves it alone."""
    after, before = _Side(obj), _Side(old)
    yield from _numbers(after)
    yield from _ends(after, before)
    yield from _indexes(after, before)
    yield from _pods(after, before)
    yield from _contradictions(after)
    yield from _steps_back(after, before)


def _wrong(words: str) -> FieldError:
    return FieldError(Reason.INVALID, f"{_PATH}.conditions", words)


def _numbers(after: _Side) -> Errors:
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        yield from at_least(after.status.get(name), f"{_PATH}.{name}")
    noted, seen = after.status.get("uncountedTerminatedPods") or {}, set[str]()
    for name in ("succeeded", "failed"):
        for place, uid in enumerate(noted.get(name) or ()):
            where = f"{_PATH}.uncountedTerminatedPods.{name}[{place}]"
            if not uid:
                yield FieldError.invalid(where, uid, "must not be empty")
            elif uid in seen:
                yield FieldError.duplicate(where, uid)
            seen.add(uid)


def _ends(after: _Side, before: _Side) -> Errors:
    """Judge what is said of the end of a Job, where it is said anew."""
    ended, start = after.status.get("completionTime"), after.status.get("startTime")

    def turned(*types: str) -> bool:
        return any(after.has(one) != before.has(one) for one in types)

    timed = ended != before.status.get("completionTime")
    complete, failed = after.has(_COMPLETE), after.has(_FAILED)
    if turned(_COMPLETE, _FAILED) and complete and failed:
        yield _wrong("cannot set Complete=True and Failed=true conditions")
    if turned(_COMPLETE, _TARGET) and complete and after.has(_TARGET):
        yield _wrong("cannot set Complete=True and FailureTarget=true conditions")
    where = f"{_PATH}.completionTime"
    if (turned(_COMPLETE) or timed) and ended is not None and not complete:
        told = "cannot set completionTime when there is no Complete=True condition"
        yield FieldError.invalid(where, ended, told)
    if (turned(_COMPLETE) or timed) and ended is None and complete:
        yield FieldError.required(where, "completionTime is required for Complete jobs")
    if (timed or start != before.status.get("startTime")) and start and ended and ended < start:
        yield FieldError.invalid(where, ended, "must be equal to or after `startTime`")
    indexes = after.status.get("failedIndexes") != before.status.get("failedIndexes")
    if (turned(_FAILED) or indexes) and failed and not after.has(_TARGET):
        yield _wrong("cannot set Failed=True condition without the FailureTarget=true condition")
    if turned(_COMPLETE, _MET) and complete and not after.has(_MET):
        yield _wrong("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _pods(after: _Side, before: _Side) -> Errors:
    """Judge numbers of Pods that contradict each other."""
    if _changed(after, before, "terminating", finishing=True) and after.finished and after.number("terminating") > 0:
        told = "terminating>0 is invalid for finished job"
        yield FieldError.invalid(f"{_PATH}.terminating", after.number("terminating"), told)
    readier = after.number("ready") > after.number("active")
    if (_changed(after, before, "ready") or _changed(after, before, "active")) and readier:
        told = "cannot set more ready pods than active"
        yield FieldError.invalid(f"{_PATH}.ready", after.number("ready"), told)


def _changed(after: _Side, before: _Side, name: str, *, finishing: bool = False) -> bool:
    return after.status.get(name) != before.status.get(name) or (finishing and after.finished != before.finished)


def _indexes(after: _Side, before: _Side) -> Errors:
    """Judge what a finished Job still has, and indexes that are said anew."""
    yield from _rest_of_finished(after, before)
    completions, status = after.spec.get("completions"), after.status
    done, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    done_anew, failed_anew = _changed(after, before, "completedIndexes"), _changed(after, before, "failedIndexes")
    per_index = after.spec.get("backoffLimitPerIndex") is not None
    if done_anew and completions is not None:
        yield from _readable(done, completions, "completedIndexes")
    if failed_anew and completions is not None and per_index and failed is not None:
        yield from _readable(failed, completions, "failedIndexes")
    if done_anew and done and after.spec.get("completionMode") != "Indexed":
        told = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield FieldError.invalid(f"{_PATH}.completedIndexes", done, told)
    if failed_anew and failed is not None and not per_index:
        told = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield FieldError.invalid(f"{_PATH}.failedIndexes", failed, told)
    if (done_anew or failed_anew) and completions is not None and failed is not None:
        yield from _overlap(done, failed, completions)


def _rest_of_finished(after: _Side, before: _Side) -> Errors:
    if not after.finished:
        return
    spec, status = after.spec, after.status
    if _changed(after, before, "active", finishing=True) and after.number("active") > 0:
        told = "active>0 is invalid for finished job"
        yield FieldError.invalid(f"{_PATH}.active", after.number("active"), told)
    never_began = spec.get("suspend") is True and spec.get("completions") == 0
    if _changed(after, before, "startTime", finishing=True) and not status.get("startTime") and not never_began:
        yield FieldError.required(f"{_PATH}.startTime", "startTime is required for finished job")
    noted = status.get("uncountedTerminatedPods") or {}
    if _changed(after, before, "uncountedTerminatedPods", finishing=True) and any(noted.values()):
        names = [("Succeeded", noted.get("succeeded")), ("Failed", noted.get("failed"))]
        shown = ",".join(f'"{name}":{_as_go_shows(uids)}' for name, uids in names)
        where = f"{_PATH}.uncountedTerminatedPods"
        yield FieldError.invalid(where, Shown(f"{{{shown}}}"), "must be empty for finished job")


def _as_go_shows(uids: list[str] | None) -> str:
    return "[" + ",".join(f'"{uid}"' for uid in uids) + "]" if uids else "null"


def _readable(text: str, completions: int, name: str) -> Errors:
    try:
        read_indexes(text, completions)
    except BadIndexes as error:
        yield FieldError.invalid(f"{_PATH}.{name}", text, f"error parsing {name}: {error}")


def _overlap(done: str, failed: str, completions: int) -> Errors:
    """Refuse an index that has succeeded and failed; what cannot be read is refused elsewhere."""
    try:
        both = [
            max(one[0], other[0])
            for one in read_indexes(done, completions)
            for other in read_indexes(failed, completions)
            if one[0] <= other[1] and other[0] <= one[1]
        ]
    except BadIndexes:
        return
    if both:
        told = f"failedIndexes and completedIndexes overlap at index: {min(both)}"
        yield FieldError.invalid(f"{_PATH}.failedIndexes", failed, told)


def _contradictions(after: _Side) -> Errors:
    met = after.has(_MET)
    if met and after.has(_FAILED):
        yield _wrong("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and after.has(_TARGET):
        yield _wrong("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if after.spec.get("successPolicy") is not None and not met and after.has(_COMPLETE):
        yield _wrong("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")


def _steps_back(after: _Side, before: _Side) -> Errors:
    """Refuse to take back what was said."""
    for type_ in (_FAILED, _COMPLETE, _TARGET):
        if before.has(type_) and not after.has(type_):
            yield _wrong(f"cannot disable the terminal {type_}=True condition")
    spec = after.spec
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed", "succeeded"):
        if after.number(name) < before.number(name) and not (elastic and name == "succeeded"):
            told = f"cannot decrease the {name} counter"
            yield FieldError.invalid(f"{_PATH}.{name}", after.number(name), told)
    ended, was = after.status.get("completionTime"), before.status.get("completionTime")
    if ended and was and ended != was:
        yield FieldError.invalid(f"{_PATH}.completionTime", ended, "field is immutable")
    start, began = after.status.get("startTime"), before.status.get("startTime")
    resumed = before.has("Suspended") and after.has("Suspended", "False")
    if began and start != began and not resumed and not spec.get("suspend"):
        told = "field is immutable for unsuspended job once set"
        yield FieldError.invalid(f"{_PATH}.startTime", start, told)
    if before.has(_MET) and not after.has(_MET):
        yield _wrong("cannot disable the SuccessCriteriaMet=True condition")
    if before.has(_COMPLETE) and not before.has(_MET) and after.has(_MET):
        yield _wrong("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")

"""The rules of a Job's policies: what its failed Pods mean, when it has succeeded, and how indexes are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Reason, Shown
from flyball.controlplane.apiserver.names import is_qualified_name
from flyball.controlplane.apiserver.rules.common import Errors, Object, at_least, items

__all__ = ["BadIndexes", "failure_policy", "read_indexes", "success_policy"]

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("False", "True", "Unknown")
_MOST_RULES: Final = 20
_MOST_VALUES: Final = 255
_LONGEST_INDEXES: Final = 64 * 1024


def _known(value: Any, path: str, allowed: Iterable[str]) -> Errors:
    """Refuse a value that is none of some; what is missing is told which there are."""
    names = list(allowed)
    if not value:
        quoted = " ".join(f'"{name}"' for name in names)
        yield FieldError.required(path, f"valid values: [{quoted}]")
    elif value not in names:
        yield FieldError.not_supported(path, value, names)


def failure_policy(spec: Mapping[str, Any], path: str) -> Errors:
    """Judge what is to follow from failed Pods."""
    pod: Mapping[str, Any] = (spec.get("template") or {}).get("spec") or {}
    names = {one.get("name") for kind in ("containers", "initContainers") for one in items(pod, kind)}
    rules = items(spec["podFailurePolicy"], "rules")
    if len(rules) > _MOST_RULES:
        yield FieldError.too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for place, rule in enumerate(rules):
        yield from _failure_rule(rule, f"{path}.rules[{place}]", names, spec)


def _failure_rule(rule: Object, path: str, names: set[Any], spec: Mapping[str, Any]) -> Errors:
    if rule.get("action") == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            yield FieldError.invalid(f"{path}.action", "FailIndex", "requires the backoffLimitPerIndex to be set")
    else:
        yield from _known(rule.get("action"), f"{path}.action", _ACTIONS)
    exits, conditions = rule.get("onExitCodes"), items(rule, "onPodConditions")
    if exits is not None:
        yield from _exits(exits, f"{path}.onExitCodes", names)
    if len(conditions) > _MOST_RULES:
        yield FieldError.too_many(f"{path}.onPodConditions", len(conditions), _MOST_RULES)
    for place, one in enumerate(conditions):
        where = f"{path}.onPodConditions[{place}]"
        kind = str(one.get("type") or "")
        yield from (FieldError.invalid(f"{where}.type", kind, words) for words in is_qualified_name(kind))
        yield from _known(one.get("status"), f"{where}.status", _STATUSES)
    if exits is not None and conditions:
        told = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield FieldError(Reason.INVALID, path, told)
    if exits is None and not conditions:
        yield FieldError(Reason.INVALID, path, "specifying one of OnExitCodes and OnPodConditions is required")


def _exits(exits: Mapping[str, Any], path: str, names: set[Any]) -> Errors:
    yield from _known(exits.get("operator"), f"{path}.operator", _OPERATORS)
    name, values = exits.get("containerName"), exits.get("values") or []
    if name is not None and name not in names:
        told = "must be one of the container or initContainer names in the pod template"
        yield FieldError.invalid(f"{path}.containerName", name, told)
    if not values:
        yield FieldError.invalid(f"{path}.values", exits.get("values"), "at least one value is required")
    elif len(values) > _MOST_VALUES:
        yield FieldError.too_many(f"{path}.values", len(values), _MOST_VALUES)
    for place, value in enumerate(values):
        where = f"{path}.values[{place}]"
        if exits.get("operator") == "In" and value == 0:
            yield FieldError.invalid(where, value, "must not be 0 for the In operator")
        if value in values[:place]:
            yield FieldError.duplicate(where, value)
    if any(before > after for before, after in pairwise(values)):
        yield FieldError.invalid(f"{path}.values", values, "must be ordered")


def success_policy(spec: Mapping[str, Any], path: str) -> Errors:
    """Judge when enough indexes shall have succeeded."""
    if spec.get("completionMode") != "Indexed":
        shown = Shown(_as_go_shows(items(spec["successPolicy"], "rules")))
        yield FieldError.invalid(path, shown, "requires indexed completion mode")
        return
    rules = items(spec["successPolicy"], "rules")
    if not rules:
        told = "at least one rules must be specified when the successPolicy is specified"
        yield FieldError.required(f"{path}.rules", told)
    elif len(rules) > _MOST_RULES:
        yield FieldError.too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for place, rule in enumerate(rules):
        yield from _success_rule(rule, f"{path}.rules[{place}]", spec.get("completions") or 0)


def _as_go_shows(rules: Iterable[Mapping[str, Any]]) -> str:
    told: list[str] = []
    for rule in rules:
        indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        words = "null" if indexes is None else f'"{indexes}"'
        told.append(f'{{"SucceededIndexes":{words},"SucceededCount":{"null" if count is None else count}}}')
    return f'{{"Rules":{"[" + ",".join(told) + "]" if told else "null"}}}'


def _success_rule(rule: Object, path: str, completions: int) -> Errors:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        yield FieldError.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes) > _LONGEST_INDEXES:
            yield FieldError.too_long(where, _LONGEST_INDEXES)
        try:
            total = sum(last - first + 1 for first, last in read_indexes(indexes, completions))
        except BadIndexes as error:
            yield FieldError.invalid(where, indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    where, told = f"{path}.succeededCount", "must be less than or equal to"
    yield from at_least(count, where)
    if count > completions:
        yield FieldError.invalid(where, count, f"{told} {completions} (the number of specified completions)")
    if indexes is not None and count > total:
        told = f"{told} {total} (the number of indexes in the specified succeededIndexes field)"
        yield FieldError.invalid(where, count, told)


class BadIndexes(ValueError):
    """A text that does not name indexes."""


def read_indexes(text: str, completions: int) -> list[tuple[int, int]]:
    """Read `0-2,5` strictly: in order, and all of them below the completions."""
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first, last = _interval(part, completions)
        if found and found[-1][1] >= first:
            raise BadIndexes(_unordered(found[-1][1], first))
        found.append((first, last))
    return found


def _interval(part: str, completions: int) -> tuple[int, int]:
    ends = part.split("-")
    if len(ends) > 2:
        told = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise BadIndexes(f'the fragment "{part}" {told}')
    numbers = [_index(end, completions) for end in ends]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise BadIndexes(_unordered(*numbers))
    return numbers[0], numbers[-1]


def _index(text: str, completions: int) -> int:
    if not text.removeprefix("+").isdecimal():
        raise BadIndexes(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise BadIndexes(f'too large index: "{text}"')
    return int(text)


def _unordered(before: int, after: int) -> str:
    return f"non-increasing order, previous: {before}, current: {after}"

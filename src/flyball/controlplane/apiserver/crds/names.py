"""Which names of a definition are free: no two definitions of a group may claim the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from flyball.controlplane.apiserver.crds.definition import condition, is_true, set_condition

__all__ = ["decide_names"]

Object = dict[str, Any]


def decide_names(definition: Object, others: Iterable[Mapping[str, Any]], now: str) -> None:
    """Accept the names that are free, and write into the status what came of it.

    `others` are the other definitions of the group. Names that were accepted before stay accepted. A definition whose
    names were all accepted once stays established, whatever it asks for later.
    """
    wanted: Object = definition["spec"]["names"]
    status: Object = definition.setdefault("status", {})
    before: Object = status.get("acceptedNames") or {}
    resources, kinds = _taken(others)
    accepted: Object = {name: value for name, value in before.items() if value}
    refused = condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")

    def refuse(reason: str, message: str) -> None:
        refused.update(status="False", reason=reason, message=message)

    for name, reason in (("plural", "PluralConflict"), ("singular", "SingularConflict")):
        _decide(wanted, before, accepted, name, resources, partial(refuse, reason))
    _decide_short_names(wanted, before, accepted, resources, partial(refuse, "ShortNamesConflict"))
    for name, reason in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        _decide(wanted, before, accepted, name, kinds, partial(refuse, reason))
    accepted["categories"] = wanted.get("categories")
    status["acceptedNames"] = {
        "plural": "",
        "kind": "",
        **{name: value for name, value in accepted.items() if value},
    }
    set_condition(definition, refused, now)
    _establish(definition, now)


def _establish(definition: Object, now: str) -> None:
    if is_true(definition, "Established"):
        return
    if is_true(definition, "NamesAccepted"):
        done = condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        done = condition("Established", "False", "NotAccepted", "not all names are accepted")
    set_condition(definition, done, now)


def _taken(others: Iterable[Mapping[str, Any]]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update(filter(None, (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ()))))
        kinds.update(filter(None, (names.get("kind"), names.get("listKind"))))
    return resources, kinds


def _conflict(name: str, before: str, taken: set[str]) -> str:
    return "" if name == before or name not in taken else f"{json.dumps(name)} is already in use"


def _decide(
    wanted: Object, before: Object, accepted: Object, name: str, taken: set[str], refuse: Callable[[str], None]
) -> None:
    told = _conflict(wanted.get(name) or "", before.get(name) or "", taken)
    if told:
        refuse(told)
    else:
        accepted[name] = wanted.get(name)


def _decide_short_names(
    wanted: Object, before: Object, accepted: Object, taken: set[str], refuse: Callable[[str], None]
) -> None:
    names: list[str] = wanted.get("shortNames") or []
    known: list[str] = before.get("shortNames") or []
    if names == known:
        return
    told = [_conflict(name, "", taken) for name in names if name not in known]
    told = list(filter(None, told))
    if told:
        refuse(told[0] if len(told) == 1 else f"[{', '.join(told)}]")
    else:
        accepted["shortNames"] = names

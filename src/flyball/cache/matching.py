"""Whether an object would be selected, as far as that can be told without the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

__all__ = ["LabelMatch", "demands", "equalities", "label_match"]

LabelMatch: TypeAlias = Callable[[Mapping[str, str]], bool]

_TERM: Final = re.compile(
    r"\s*(?:(?P<not>!)\s*(?P<absent>[^\s,!=()]+)"
    r"|(?P<key>[^\s,!=()]+)\s*(?:(?P<operator>in|notin)\s*\((?P<set>[^)]*)\)|(?P<sign>==|=|!=)\s*(?P<value>[^\s,]*))?)"
    r"\s*(?:,|$)"
)


_EQUALITY: Final = re.compile(r"[^\s,!=()]+=[^\s,!=()]*")


def label_match(selector: str) -> LabelMatch:
    """The test for a label selector; what is no selector selects nothing here (the server refuses it).

    >>> match = label_match("app=web,tier notin (db, cache),!old")
    >>> match({"app": "web"}), match({"app": "web", "tier": "db"}), match({"app": "web", "old": ""})
    (True, False, False)
    """
    tests: list[LabelMatch] = []
    position = 0
    while position < len(selector):
        found = _TERM.match(selector, position)
        if found is None or found.end() == position:
            return lambda labels: False
        tests.append(_test(found))
        position = found.end()
    return lambda labels: all(test(labels) for test in tests)


def equalities(selector: str) -> dict[str, str]:
    """The labels that a selector asks to be equal to something; there may be more to it.

    >>> equalities("app=web,tier in (db,cache),!old")
    {'app': 'web'}
    """
    parts = (part.partition("=") for part in selector.split(",") if _EQUALITY.fullmatch(part))
    return {key: value for key, _, value in parts}


def demands(selector: str, other: str) -> bool:
    """Whether whatever a selector selects has the other's labels too; told of equalities only, else False.

    >>> demands("app=web,tier=db", "app=web"), demands("app=web", "app=web,tier=db"), demands("", "app=web")
    (True, False, False)
    """
    parts = set(selector.split(","))
    return bool(other) and all(_EQUALITY.fullmatch(part) and part in parts for part in other.split(","))


def _test(term: re.Match[str]) -> LabelMatch:
    key = term["absent"]
    if key is not None:
        return lambda labels: key not in labels
    name = term["key"]
    if term["operator"] is not None:
        values = {value.strip() for value in term["set"].split(",")}
        if term["operator"] == "in":
            return lambda labels: labels.get(name) in values
        return lambda labels: labels.get(name) not in values
    wanted = term["value"]
    if term["sign"] is None:
        return lambda labels: name in labels
    if term["sign"] == "!=":
        return lambda labels: labels.get(name) != wanted
    return lambda labels: labels.get(name) == wanted

"""Label and field selectors: read once, asked often."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from flyball.controlplane.apiserver.names import is_label_value, is_qualified_name
from flyball.controlplane.apiserver.status import bad_request
from flyball.controlplane.apiserver.store import Entry, Selection

__all__ = ["EVERYWHERE", "label_requirements", "matches_labels", "parse_fields", "parse_labels", "selection"]

EVERYWHERE: Final = ("metadata.name", "metadata.namespace")
"""The fields by which objects of a kind without fields of its own can be selected."""

LabelTest = Callable[[Mapping[str, str]], bool]


class _Requirement(NamedTuple):
    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        if self.operator == "in":
            return value is not None and value in self.values
        if self.operator == "notin":
            return value is None or value not in self.values
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        (bound,) = self.values
        try:
            return int(value) > int(bound) if self.operator == "gt" else int(value) < int(bound)
        except ValueError:
            return False


_TOKEN: Final = re.compile(r"\s*(?:(!=|==|=|!|,|\(|\)|<|>)|([^\s!=,()<>]+))")


class _Tokens:
    """The words and marks of a label selector, one by one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def peek(self) -> str:
        found = _TOKEN.match(self._text, self._place)
        return "" if found is None else found[0].strip()

    def take(self) -> str:
        found = _TOKEN.match(self._text, self._place)
        if found is None:
            return ""
        self._place = found.end()
        return found[0].strip()


_MARKS: Final = frozenset({"!=", "==", "=", "!", ",", "(", ")", "<", ">", ""})


def label_requirements(text: str) -> list[_Requirement]:
    """Read a label selector. Raises BadRequest."""
    tokens = _Tokens(text)
    requirements: list[_Requirement] = []
    while tokens.peek():
        requirements.append(_requirement(tokens, text))
        mark = tokens.take()
        if mark not in ("", ","):
            raise _unparsable(f"found '{mark}', expected: ',' or 'end of string'")
        if mark == "," and tokens.peek() in ("", ","):
            raise _unparsable(f"found '{tokens.peek()}', expected: identifier after ','")
    return requirements


def _requirement(tokens: _Tokens, text: str) -> _Requirement:
    if tokens.peek() == "!":
        tokens.take()
        key = tokens.take()
        if key in _MARKS:
            raise _unparsable(f"found '{key}', expected: identifier")
        return _checked(key, "!", ())
    key = tokens.take()
    if key in _MARKS:
        raise _unparsable(f"found '{key}', expected: !, identifier, or 'end of string'")
    mark = tokens.peek()
    if mark in ("", ","):
        return _checked(key, "exists", ())
    operator = tokens.take()
    if operator in ("in", "notin"):
        return _checked(key, operator, _values(tokens))
    if operator in ("=", "==", "!="):
        value = "" if tokens.peek() in ("", ",") else tokens.take()
        if value in _MARKS and value:
            raise _unparsable(f"found '{value}', expected: identifier")
        return _checked(key, "notin" if operator == "!=" else "in", (value,))
    if operator in ("<", ">"):
        return _checked(key, "lt" if operator == "<" else "gt", (tokens.take(),))
    raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")


def _values(tokens: _Tokens) -> tuple[str, ...]:
    opening = tokens.take()
    if opening != "(":
        raise _unparsable(f"found '{opening}' expected: '('")
    values: list[str] = []
    while True:
        word = tokens.take()
        if word == ")":
            return tuple(values) if values else ("",)
        if word == ",":
            if not values or tokens.peek() in (",", ")"):
                values.append("")
            continue
        if word in _MARKS:
            raise _unparsable(f"found '{word}', expected: ',', ')' or identifier")
        values.append(word)


def _checked(key: str, operator: str, values: tuple[str, ...]) -> _Requirement:
    wrong = is_qualified_name(key)
    if wrong:
        raise _unparsable(f'key: Invalid value: "{key}": {"; ".join(wrong)}')
    for place, value in enumerate(values):
        if operator in ("gt", "lt"):
            if not value.lstrip("-").isdecimal():
                words = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _unparsable(f'values[{place}]: Invalid value: "{value}": {words}')
            continue
        wrong = is_label_value(value)
        if wrong:
            raise _unparsable(f'values[{place}][{key}]: Invalid value: "{value}": {"; ".join(wrong)}')
    return _Requirement(key, operator, frozenset(values))


def _unparsable(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")


def parse_labels(text: str) -> LabelTest | None:
    """Read a label selector into a test; None selects everything."""
    requirements = label_requirements(text)
    if not requirements:
        return None
    if len(requirements) == 1:
        return requirements[0].holds
    return lambda labels: all(requirement.holds(labels) for requirement in requirements)


class _Term(NamedTuple):
    field: str
    value: str
    equal: bool


def parse_fields(text: str, known: Collection[str]) -> list[_Term]:
    """Read a field selector over the fields that a kind knows. Raises BadRequest."""
    terms: list[_Term] = []
    for part in _split(text):
        if not part:
            continue
        found = re.match(r"((?:[^=!\\]|\\.)*?)(==|!=|=)(.*)", part, re.DOTALL)
        if found is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        field, operator, value = found[1], found[2], _unescaped(found[3])
        if field not in known:
            raise bad_request(_not_known(field, known))
        terms.append(_Term(field, value, operator != "!="))
    return terms


def _not_known(field: str, known: Collection[str]) -> str:
    if set(known) <= set(EVERYWHERE):
        return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {field}"


def _split(text: str) -> list[str]:
    parts, part, escaped = [], "", False
    for character in text:
        if character == "," and not escaped:
            parts.append(part)
            part = ""
            continue
        part += character
        escaped = character == "\\" and not escaped
    return [*parts, part]


def _unescaped(value: str) -> str:
    plain, rest = "", iter(value)
    for character in rest:
        if character == "\\":
            following = next(rest, "")
            if following not in ("\\", ",", "="):
                raise bad_request(f"invalid field selector: invalid escape sequence: {value}")
            plain += following
        elif character in ",=":
            raise bad_request(f"invalid field selector: invalid escape sequence: {value}")
        else:
            plain += character
    return plain


def selection(labels: str, fields: str, known: Collection[str]) -> Selection | None:
    """Make one test of entries out of both selectors; None when nothing is left out."""
    label_test = parse_labels(labels) if labels else None
    terms = parse_fields(fields, known) if fields else []
    if label_test is None and not terms:
        return None

    def selected(entry: Entry) -> bool:
        if label_test is not None and not label_test(entry.labels):
            return False
        return all((_field(entry, term.field) == term.value) == term.equal for term in terms)

    return selected


def _field(entry: Entry, field: str) -> str:
    if field == "metadata.name":
        return entry.key.name
    if field == "metadata.namespace":
        return entry.key.namespace
    return entry.fields.get(field, "")


def matches_labels(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector (matchLabels, matchExpressions) selects these labels."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    return all(
        _Requirement(one["key"], operators[one["operator"]], frozenset(one.get("values") or ())).holds(labels)
        for one in selector.get("matchExpressions") or ()
    )

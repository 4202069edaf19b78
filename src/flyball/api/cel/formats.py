"""Formats that have names: `format.dns1123Label().validate(text)` says what is wrong with a text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from flyball.api.cel.errors import EvalError
from flyball.api.cel.operators import NO_OVERLOAD
from flyball.api.cel.overloads import Overload, function, member, tenth
from flyball.api.cel.types import FORMAT, STRING, list_of, optional_of
from flyball.api.cel.urls import url_problem
from flyball.api.cel.values import NONE, Opaque, OptionalValue
from flyball.api.structural.formats import checker

__all__ = ["LIBRARY", "NamedFormat"]

Check = Callable[[str], list[str]]


class NamedFormat(Opaque):
    """A format: what it finds wrong with a text, and how long the pattern is that it stands for."""

    __slots__ = ("check", "length", "name")
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str, length: int, check: Check) -> None:
        """Take the parts."""
        self.name = name
        self.length = length
        self.check = check

    def equals(self, other: Any) -> bool:
        """Compare with another format."""
        if not isinstance(other, NamedFormat):
            raise EvalError(NO_OVERLOAD)
        return self.name == other.name


_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENDS: Final = "must start and end with an alphanumeric character"
_LOWER: Final = "must consist of lower case alphanumeric characters"


def _refusal(words: str, pattern: str, *examples: str) -> str:
    shown = "',  or '".join(examples)
    return f"{words} (e.g. '{shown}', regex used for validation is '{pattern}')"


_NO_LABEL: Final = _refusal(f"a lowercase RFC 1123 label {_LOWER} or '-', and {_ENDS}", _LABEL, "my-name", "123-abc")
_NO_SUBDOMAIN: Final = _refusal(
    f"a lowercase RFC 1123 subdomain {_LOWER}, '-' or '.', and {_ENDS}", _SUBDOMAIN, "example.com"
)
_NO_LABEL_1035: Final = _refusal(
    f"a DNS-1035 label {_LOWER} or '-', start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_NO_QUALIFIED: Final = _refusal(
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_NO_VALUE: Final = _refusal(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    f"({_QUALIFIED})?",
    "MyValue",
    "my_value",
    "12345",
)


def _name(pattern: str, longest: int, words: str, *, prefix: bool = False) -> Check:
    compiled = re.compile(pattern)

    def check(text: str) -> list[str]:
        if prefix and len(text) > 1 and text.endswith("-"):
            text = f"{text[:-2]}a"
        found = [f"must be no more than {longest} characters"] if len(text.encode()) > longest else []
        return found if _all_matches(compiled, text) else [*found, words]

    return check


def _all_matches(pattern: re.Pattern[str], text: str) -> bool:
    """Match a text label by label where it has any, which keeps long ones from taking long."""
    if pattern.pattern != _SUBDOMAIN:
        return pattern.fullmatch(text) is not None
    return all(re.fullmatch(_LABEL, part) is not None for part in text.split("."))


_SUBDOMAIN_CHECK: Final = _name(_SUBDOMAIN, 253, _NO_SUBDOMAIN)


def _qualified(text: str) -> list[str]:
    parts = text.split("/")
    found: list[str] = []
    if len(parts) > 2:
        words = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NO_QUALIFIED} {words}"]
    if len(parts) == 2:
        refusals = _SUBDOMAIN_CHECK(parts[0]) if parts[0] else ["must be non-empty"]
        found += [f"prefix part {words}" for words in refusals]
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        found.append("name part must be no more than 63 bytes")
    if re.fullmatch(_QUALIFIED, name) is None:
        found.append(f"name part {_NO_QUALIFIED}")
    return found


def _label_value(text: str) -> list[str]:
    found = ["must be no more than 63 bytes"] if len(text.encode()) > 63 else []
    return found if re.fullmatch(f"({_QUALIFIED})?", text) else [*found, _NO_VALUE]


def _uri(text: str) -> list[str]:
    problem = url_problem(text)
    return [problem] if problem else []


def _checked(format_: str, words: str) -> Check:
    test = checker(format_)
    assert test is not None
    return lambda text: [] if test(text) else [words]


_FORMATS: Final[dict[str, NamedFormat]] = {
    "dns1123Label": NamedFormat("DNS1123Label", 30, _name(_LABEL, 63, _NO_LABEL)),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", 60, _SUBDOMAIN_CHECK),
    "dns1035Label": NamedFormat("DNS1035Label", 30, _name(_LABEL_1035, 63, _NO_LABEL_1035)),
    "qualifiedName": NamedFormat("QualifiedName", 60, _qualified),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", 30, _name(_LABEL, 63, _NO_LABEL, prefix=True)),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", 60, _name(_SUBDOMAIN, 253, _NO_SUBDOMAIN, prefix=True)
    ),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", 30, _name(_LABEL_1035, 63, _NO_LABEL_1035, prefix=True)),
    "labelValue": NamedFormat("LabelValue", 40, _label_value),
    "uri": NamedFormat("URI", 1103, _uri),
    "uuid": NamedFormat("uuid", 72, _checked("uuid", "does not match the UUID format")),
    "byte": NamedFormat("byte", 84, _checked("byte", "invalid base64")),
    "date": NamedFormat("date", 72, _checked("date", "invalid date")),
    "datetime": NamedFormat("datetime", 72, _checked("datetime", "invalid datetime")),
}


def _named(name: str) -> OptionalValue:
    found = _FORMATS.get(name)
    return NONE if found is None else OptionalValue(found)


def _validate(format_: NamedFormat, text: str) -> OptionalValue:
    found = format_.check(text)
    return OptionalValue(found) if found else NONE


def _price(args: Sequence[Any], result: Any) -> int:
    length: int = args[0].length
    return tenth(1 + len(args[1])) * math.ceil(length / 4)


def _declare() -> Iterable[Overload]:
    yield function("format.named", "format-named", [STRING], optional_of(FORMAT), _named)
    yield member("validate", "format-validate", [FORMAT, STRING], optional_of(list_of(STRING)), _validate, _price)
    for name, format_ in _FORMATS.items():

        def call(format_: NamedFormat = format_) -> NamedFormat:
            return format_

        yield function(f"format.{name}", f"format.{name}", [], FORMAT, call)


LIBRARY: Final[tuple[Overload, ...]] = tuple(_declare())

"""Rules that many kinds share. Each gives the refusals of one value at one path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Reason
from flyball.api.quantity import Quantity
from flyball.api.structural import same
from flyball.controlplane.apiserver.metadata import validate_labels
from flyball.controlplane.apiserver.names import is_label, is_label_value, is_qualified_name, is_subdomain

__all__ = [
    "Errors",
    "Object",
    "at_least",
    "config_key",
    "immutable",
    "items",
    "label_name",
    "label_selector",
    "matches",
    "name_reference",
    "one_of",
    "port_name",
    "port_number",
    "port_or_name",
    "quantities",
    "subdomain_name",
]

Object = dict[str, Any]
Errors = Iterator[FieldError]

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_WORDS: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_MAX_PORT: Final = 65535


def items(obj: Mapping[str, Any] | None, field: str) -> list[Object]:
    """Return the objects of a list field."""
    return [one for one in ((obj or {}).get(field) or ()) if isinstance(one, dict)]


def one_of(value: Any, path: str, allowed: Sequence[str], *, required: bool = True) -> Errors:
    """Refuse what is none of the values that are allowed."""
    if value in (None, ""):
        if required:
            yield FieldError.required(path)
    elif value not in allowed:
        yield FieldError.not_supported(path, value, list(allowed))


def at_least(value: Any, path: str, least: int = 0) -> Errors:
    """Refuse a number below a bound; nothing is as good as the bound."""
    if isinstance(value, int) and value < least:
        yield FieldError.invalid(path, value, f"must be greater than or equal to {least}")


def immutable(new: Any, old: Any, path: str) -> Errors:
    """Refuse another value than before."""
    if not same(new, old):
        yield FieldError.invalid(path, new, "field is immutable")


def label_name(value: Any, path: str) -> Errors:
    """Refuse what is no DNS label; nothing at all is refused as missing."""
    if not value:
        yield FieldError.required(path)
    else:
        yield from (FieldError.invalid(path, value, word) for word in is_label(value, False))


def subdomain_name(value: Any, path: str) -> Errors:
    """Refuse what is no DNS subdomain; nothing is left to others."""
    if value:
        yield from (FieldError.invalid(path, value, word) for word in is_subdomain(value, False))


def name_reference(value: Any, path: str) -> Errors:
    """Refuse a reference that names nothing."""
    if not value:
        yield FieldError.required(path)


def config_key(key: str, path: str) -> Errors:
    """Refuse what is no key of a ConfigMap or Secret."""
    if len(key) > 253:
        yield FieldError.invalid(path, key, "must be no more than 253 characters")
    if not _KEY.fullmatch(key):
        yield FieldError.invalid(path, key, _KEY_WORDS)
    if key == ".":
        yield FieldError.invalid(path, key, "must not be '.'")
    elif key == "..":
        yield FieldError.invalid(path, key, "must not be '..'")
    elif key.startswith(".."):
        yield FieldError.invalid(path, key, "must not start with '..'")


def port_number(value: Any, path: str) -> Errors:
    """Refuse what is no port."""
    if not isinstance(value, int) or not 1 <= value <= _MAX_PORT:
        yield FieldError.invalid(path, value, "must be between 1 and 65535, inclusive")


def port_name(value: str, path: str) -> Errors:
    """Refuse what cannot name a port."""
    yield from (FieldError.invalid(path, value, word) for word in _port_words(value))


def _port_words(value: str) -> Iterable[str]:
    if len(value) > 15:
        yield "must be no more than 15 characters"
    if not re.fullmatch(r"[-a-z0-9]*", value):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search(r"[a-z]", value):
        yield "must contain at least one letter (a-z)"
    if "--" in value:
        yield "must not contain consecutive hyphens"
    if value[:1] == "-" or value[-1:] == "-":
        yield "must not begin or end with a hyphen"


def port_or_name(value: Any, path: str) -> Errors:
    """Refuse what is neither a port nor the name of one."""
    if isinstance(value, str):
        yield from port_name(value, path)
    else:
        yield from port_number(value if value is not None else 0, path)


def label_selector(selector: Any, path: str, *, required: bool = False, empty: bool = True) -> Errors:
    """Refuse a selector that cannot select."""
    if selector is None:
        if required:
            yield FieldError.required(path)
        return
    yield from validate_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for place, one in enumerate(items(selector, "matchExpressions")):
        yield from _requirement(one, f"{path}.matchExpressions[{place}]")
    if not empty and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield FieldError.invalid(path, selector, "empty selector is invalid for deployment")


def _requirement(one: Object, path: str) -> Errors:
    operator, values = one.get("operator"), one.get("values") or []
    if operator in ("In", "NotIn") and not values:
        yield FieldError.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield FieldError.forbidden(f"{path}.values", told)
    elif operator not in _OPERATORS:
        yield FieldError.invalid(f"{path}.operator", operator, "not a valid selector operator")
    key = one.get("key") or ""
    yield from (FieldError.invalid(f"{path}.key", key, word) for word in is_qualified_name(key))
    for place, value in enumerate(values):
        words = is_label_value(value)
        yield from (FieldError.invalid(f"{path}.values[{place}]", value, word) for word in words)


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a selector selects these labels."""
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(one, labels) for one in items(selector, "matchExpressions"))


def _meets(one: Object, labels: Mapping[str, str]) -> bool:
    key, values = one.get("key", ""), one.get("values") or []
    return {
        "In": labels.get(key) in values,
        "NotIn": key not in labels or labels[key] not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }.get(str(one.get("operator")), False)


def quantities(amounts: Mapping[str, Any] | None, path: str) -> Errors:
    """Refuse amounts below nothing and names that are none."""
    for name, amount in sorted((amounts or {}).items()):
        where = f"{path}[{name}]"
        yield from (FieldError.invalid(where, name, word) for word in is_qualified_name(name))
        if "/" not in name and not _is_standard(name):
            yield FieldError.invalid(where, name, "must be a standard resource type or fully qualified")
            yield FieldError.invalid(where, name, "must be a standard resource for containers")
        if Quantity(str(amount)).value < 0:
            yield FieldError(Reason.INVALID, where, "must be greater than or equal to 0", str(amount))


def _is_standard(name: str) -> bool:
    return name in ("cpu", "memory", "ephemeral-storage", "storage") or name.startswith("hugepages-")

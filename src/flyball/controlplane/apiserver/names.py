"""Which names Kubernetes accepts, and in which words it refuses the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = [
    "NameCheck",
    "is_label",
    "is_label_1035",
    "is_label_value",
    "is_path_segment",
    "is_qualified_name",
    "is_subdomain",
]

NameCheck = Callable[[str, bool], list[str]]
"""Takes a name, and whether it is only a prefix (a generateName); returns what is wrong with it."""

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)

_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_WORDS: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_1035_WORDS: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_WORDS: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_QUALIFIED_WORDS: Final = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')"
)
_VALUE_WORDS: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} {'byte' if limit == 1 else 'bytes'}"


def _whole(name: str, prefix: bool) -> str:
    """Complete a prefix with a character that may stand anywhere, so that it is judged as the name it will become."""
    return f"{name.removesuffix('-')}a" if prefix and name.endswith("-") else name


def is_subdomain(name: str, prefix: bool = False) -> list[str]:
    """Judge a DNS-1123 subdomain, which most names are."""
    name = _whole(name, prefix)
    errors = [_too_long(253)] if len(name) > 253 else []
    if not all(_LABEL.fullmatch(part) for part in name.split(".")):
        errors.append(_SUBDOMAIN_WORDS)
    return errors


def is_label(name: str, prefix: bool = False) -> list[str]:
    """Judge a DNS-1123 label, as of a namespace."""
    name = _whole(name, prefix)
    errors = [_too_long(63)] if len(name) > 63 else []
    if not _LABEL.fullmatch(name):
        errors.append(_LABEL_WORDS if not _subdomain_only(name) else "must not contain dots")
    return errors


def _subdomain_only(name: str) -> bool:
    return "." in name and all(_LABEL.fullmatch(part) for part in name.split("."))


def is_label_1035(name: str, prefix: bool = False) -> list[str]:
    """Judge a DNS-1035 label, as of a Service."""
    name = _whole(name, prefix)
    errors = [_too_long(63)] if len(name) > 63 else []
    if not _LABEL_1035.fullmatch(name):
        errors.append(_LABEL_1035_WORDS)
    return errors


def is_path_segment(name: str, prefix: bool = False) -> list[str]:
    """Judge a name that only has to fit into a URL, as of a Role."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def is_qualified_name(name: str) -> list[str]:
    """Judge the key of a label, of an annotation, or a finalizer."""
    prefix, slash, rest = name.rpartition("/")
    errors: list[str] = []
    if slash:
        if "/" in prefix:
            return [_QUALIFIED_WORDS]
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            errors.extend(f"prefix part {error}" for error in is_subdomain(prefix))
    if not rest:
        errors.append("name part must be non-empty")
    elif len(rest) > 63:
        errors.append(f"name part {_too_long(63)}")
    if not _QUALIFIED.fullmatch(rest):
        errors.append(_NAME_PART_WORDS)
    return errors


def is_label_value(value: str) -> list[str]:
    """Judge the value of a label."""
    errors = [_too_long(63)] if len(value) > 63 else []
    if not _VALUE.fullmatch(value):
        errors.append(_VALUE_WORDS)
    return errors

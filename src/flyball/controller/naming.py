"""Names, labels and hashes that are the same for the same intent.

A child whose name follows from its owner cannot be created twice: a second try ends in AlreadyExists, also when the
cache did not show the first one yet.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from flyball.api import Model, to_dict

__all__ = [
    "COMPONENT",
    "INSTANCE",
    "MANAGED_BY",
    "NAME",
    "child_labels",
    "child_name",
    "instance_of",
    "selector_labels",
    "short_hash",
    "spec_hash",
]

NAME: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "app.kubernetes.io/component"

_LIMIT: Final = 63
_HASH: Final = 8
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LEGAL: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _shortened(text: str, limit: int) -> str:
    """The text, or its beginning and a hash of all of it."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - _HASH - 1].rstrip('-.')}-{_digest(text, _HASH)}"


def child_name(owner: Any, *parts: str | int, limit: int = _LIMIT) -> str:
    """The name of a child: the owner's name and the parts, joined by dashes; the same for the same arguments.

    Never longer than `limit`: a longer one is cut and ends in a hash of the whole. A part with characters that no name
    may have is refused (ValueError).

    >>> from flyball.k8s.core.v1 import ConfigMap
    >>> child_name(ConfigMap.new("demo"), "web", 0)
    'demo-web-0'
    """
    base = owner if isinstance(owner, str) else owner.metadata.name
    name = "-".join([base, *map(str, parts)])
    if not base or not _LEGAL.fullmatch(name):
        raise ValueError(
            f"child_name: {name!r} is no name for an object; use small letters, digits and dashes, "
            "beginning and ending with a letter or digit"
        )
    return _shortened(name, limit)


def _instance(owner: Any) -> str:
    return _shortened(owner.metadata.name, _LIMIT)


def selector_labels(owner: Any, component: str | None = None) -> dict[str, str]:
    """The labels by which the children of an object are selected: they never change while the object lives."""
    labels = {NAME: str(owner.kind).lower(), INSTANCE: _instance(owner)}
    if component:
        labels[COMPONENT] = component
    return labels


def child_labels(
    owner: Any, *, manager: str, component: str | None = None, user: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All labels of a child; `user` are those that the user asked for, and never win over the system's."""
    return {**(user or {}), **selector_labels(owner, component), MANAGED_BY: manager}


def instance_of(child: Any) -> list[str]:
    """The name of the owner, as the labels of a child or of its child tell it: a mapper for `Watches`."""
    name = child.metadata.labels.get(INSTANCE)
    return [name] if name else []


def spec_hash(obj: Any, *, include: Iterable[str] | None = None, length: int = 16) -> str:
    """A short hash of a spec, or of the parts of it that are named (`["template", "image"]`, JSON names).

    The order of keys does not matter, and what is not set does not count: a label with it tells for which intent a
    child was made. `obj` is an object with a spec, or any part of one.
    """
    plain: Any = obj if isinstance(obj, dict) else to_dict(obj)
    if hasattr(obj, "spec") or (isinstance(obj, dict) and "spec" in obj and "kind" in obj):
        plain = plain.get("spec", {})
    if include is not None:
        plain = {name: plain.get(name) for name in include}
    return hashlib.sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()[:length]


def short_hash(*values: Any, length: int = 5) -> str:
    """A hash that is made to stand in a name: consonants and digits, so that it never spells a word.

    `values` are plain JSON values or parts of an object. The order of keys does not matter, what is None does not
    count; so a class that learns a new field finds the hash of an old object unchanged.

    >>> short_hash({"image": "busybox", "command": "true"}) == short_hash({"command": "true", "image": "busybox"})
    True
    """
    text = msgspec.json.encode([_without_none(one) for one in values], order="deterministic")
    number = int.from_bytes(hashlib.sha256(text).digest(), "big")
    letters: list[str] = []
    for _ in range(length):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return "".join(letters)


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_none(one) for one in value]
    return to_dict(value) if isinstance(value, Model) else value

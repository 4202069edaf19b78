"""Whose change was it? What a write can prove about the step from one version to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

__all__ = ["only_within"]

_SERVERS: Final = frozenset({"resourceVersion", "managedFields", "generation"})


def only_within(before: Mapping[str, Any], after: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether everything in which two versions differ is something that was sent.

    What the server keeps itself (version, generation, managedFields) does not count. A list counts as sent when any of
    it was.
    """
    metadata_before, metadata_after = _metadata(before), _metadata(after)
    return _within({**before, "metadata": metadata_before}, {**after, "metadata": metadata_after}, sent)


def _metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    found: Any = obj.get("metadata")
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in cast("dict[str, Any]", found).items() if name not in _SERVERS}


def _within(before: Mapping[str, Any], after: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if name not in sent:
            return False
        part = sent[name]
        if isinstance(part, dict) and isinstance(new, dict):
            inner = cast("dict[str, Any]", old) if isinstance(old, dict) else {}
            if not _within(inner, cast("dict[str, Any]", new), cast("dict[str, Any]", part)):
                return False
    return True

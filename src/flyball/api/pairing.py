"""Which item of a list is which, after the list was changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, cast

import msgspec

__all__ = ["pairs"]

_NAMES: tuple[tuple[str, ...], ...] = (
    ("uid",),
    ("name",),
    ("name", "namespace"),
    ("kind", "name"),
    ("kind", "namespace", "name"),
    ("type",),
    ("key",),
    ("id",),
    ("containerPort",),
    ("containerPort", "protocol"),
    ("port",),
    ("port", "protocol"),
    ("mountPath",),
    ("devicePath",),
    ("topologyKey",),
    ("topologyKey", "whenUnsatisfiable"),
    ("ip",),
    ("hostname",),
    ("path",),
    ("host",),
    ("manager", "operation", "subresource"),
)
"""The fields by which Kubernetes' own lists name their items, singly or together."""


def pairs(old: list[Any], new: list[Any], own: Iterable[tuple[str, ...]] = ()) -> dict[int, int]:
    """For items of `new`, by index, the index of the item of `old` that it was before; new items are left out.

    `own` are fields that name items of lists of this kind, beside the ones that are known of Kubernetes.
    """
    if not all(isinstance(item, (dict, list)) for item in (*old, *new)):
        return {}  # scalars hold nothing that could be lost
    named = _by_name(old, new, (*(names for names in own if names not in _NAMES), *_NAMES))
    if named is not None:
        return named  # another name is another item, however alike
    found = _by_equality(old, new)
    _rest(old, new, found)
    return found


def _by_name(old: list[Any], new: list[Any], candidates: Iterable[tuple[str, ...]]) -> dict[int, int] | None:
    if not all(isinstance(item, dict) for item in (*old, *new)):
        return None
    for fields in candidates:
        before, now = _names(old, fields), _names(new, fields)
        if before is not None and now is not None:
            return {index: before[name] for name, index in now.items() if name in before}
    return None


def _names(items: list[Any], fields: tuple[str, ...]) -> dict[Hashable, int] | None:
    """Name -> index; None if these fields do not name the items one by one."""
    names: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        found = tuple(cast("dict[str, Any]", item).get(field) for field in fields)
        if found[0] is None or found in names or any(isinstance(part, (dict, list)) for part in found):
            return None
        names[found] = index
    return names


def _by_equality(old: list[Any], new: list[Any]) -> dict[int, int]:
    """Equal items belong together, the longest common run first, then wherever they went."""
    before, now = [_text(item) for item in old], [_text(item) for item in new]
    found: dict[int, int] = {}
    for block in SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks():
        found.update({block.b + step: block.a + step for step in range(block.size)})
    taken, free = set(found.values()), dict[bytes, list[int]]()
    for index, text in enumerate(before):
        if index not in taken:
            free.setdefault(text, []).append(index)
    for index, text in enumerate(now):
        if index not in found and free.get(text):
            found[index] = free[text].pop(0)
    return found


def _text(item: Any) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


def _rest(old: list[Any], new: list[Any], found: dict[int, int]) -> None:
    """Between two recognised neighbours: as many items as before are the same items, else the most alike."""
    taken = set(found.values())
    for left, right in pairwise([-1, *sorted(found), len(new)]):
        fresh = range(left + 1, right)
        gap = [at for at in range(found.get(left, -1) + 1, found.get(right, len(old))) if at not in taken]
        if len(gap) == len(fresh):
            found.update(zip(fresh, gap, strict=True))
            taken.update(gap)
            continue
        candidates = gap or [at for at in range(len(old)) if at not in taken]
        for index in fresh:
            best = max(candidates, key=lambda at: _likeness(old[at], new[index]), default=None)
            if best is not None and _likeness(old[best], new[index]) >= _ENOUGH:
                found[index] = best
                taken.add(best)
                candidates.remove(best)


_ENOUGH = 0.5


def _likeness(old: Any, new: Any) -> float:
    """The share of fields that are equal, 0 to 1."""
    if isinstance(old, dict) and isinstance(new, dict):
        left, right = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        keys = left.keys() | right.keys()
        same = sum(key in left and key in right and left[key] == right[key] for key in keys)
        return same / len(keys) if keys else 1.0
    return 1.0 if old == new else 0.0

"""What to write so that nothing is lost.

A class knows the fields of its time; the object on the server may have more. So an object that was read is never sent
as its class sees it. Instead three things are compared:

- the *origin*: the JSON as it was received;
- the *base*: the origin as the class sees it;
- the *present*: what the object says now.

The changes from base to present are what the program did. They are put into the origin, and everything else there
stays: unknown fields, explicit nulls, the spelling of times and quantities.

Items of lists are recognised before they are compared: by a field that names them (`name`, `uid`, `containerPort`,
...), otherwise by what they have in common. So an item keeps its unknown fields also when items before it were
inserted, removed or put in another order.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, cast

import msgspec

from flyball.api.codec import decode, encode_whole, origin, to_dict
from flyball.api.dynamic import DynamicObject
from flyball.api.hints import hints_of
from flyball.api.markers import ListMapKeys
from flyball.api.model import Model
from flyball.api.naming import json_name
from flyball.api.pairing import pairs
from flyball.api.resource import Resource

__all__ = ["apply_merge_patch", "difference", "list_keys", "merge_patch", "merged"]


def merged(obj: Resource | DynamicObject) -> dict[str, Any]:
    """The whole object with its changes and everything that its class does not know, fit for a PUT.

    An object that was not read is what it says, as `to_dict` gives it.
    """
    raw = origin(obj)
    if raw is None or isinstance(obj, DynamicObject):
        return to_dict(obj)
    base, present = encode_whole(decode(type(obj), raw)), encode_whole(obj)
    received: dict[str, Any] = msgspec.json.decode(raw)
    if base == present:
        return received
    merge = _Merge(list_keys(type(obj)))
    return merge.maps(received, msgspec.json.decode(base), msgspec.json.decode(present))


def difference(obj: Resource | DynamicObject) -> dict[str, Any]:
    """The JSON merge patch from what was read to what the object says now; empty if nothing was changed.

    A list that was changed is in the patch as a whole (a merge patch cannot do less), with the unknown fields of its
    items. An object that was not read has no origin: the patch is then all that it says.
    """
    raw = origin(obj)
    if raw is None:
        return merged(obj)
    if isinstance(obj, Resource) and encode_whole(decode(type(obj), raw)) == encode_whole(obj):
        return {}
    return merge_patch(msgspec.json.decode(raw), merged(obj))


def merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7396) that turns `old` into `new`."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if key in old and _equal(before, value):
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            patch[key] = merge_patch(cast("dict[str, Any]", before), cast("dict[str, Any]", value))
        else:
            patch[key] = value
    return patch


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of `target`; the arguments are not changed."""
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Any] = dict(cast("dict[str, Any]", target)) if isinstance(target, dict) else {}
    for key, value in cast("dict[str, Any]", patch).items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


def _equal(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 and True are not."""
    return type(left) is type(right) and left == right and (isinstance(left, (str, int)) or _deep_equal(left, right))


def _deep_equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return all(_equal(value, right[key]) for key, value in cast("dict[str, Any]", left).items())
    if isinstance(left, list):
        return all(_equal(a, b) for a, b in zip(left, right, strict=True))
    return True


class _Merge:
    """Puts what changed between base and present into what was received."""

    def __init__(self, keys: frozenset[tuple[str, ...]]) -> None:
        """`keys` are the fields that name items of lists, as the class says it."""
        self.keys = sorted(keys)

    def values(self, received: Any, base: Any, present: Any) -> Any:
        if _equal(base, present):
            return received
        if isinstance(present, dict) and isinstance(base, dict) and isinstance(received, dict):
            return self.maps(*(cast("dict[str, Any]", part) for part in (received, base, present)))
        if isinstance(present, list) and isinstance(base, list) and isinstance(received, list):
            return list(self.items(received, base, present))
        return present

    def maps(self, received: dict[str, Any], base: dict[str, Any], present: dict[str, Any]) -> dict[str, Any]:
        result = {key: value for key, value in received.items() if key not in base or key in present}
        for key, value in present.items():
            if key in base and key in received:
                result[key] = self.values(received[key], base[key], value)
            elif key not in base or not _equal(base[key], value):
                result[key] = self.added(received.get(key), value)
        return result

    def added(self, received: Any, value: Any) -> Any:
        """A part that the class saw as absent or empty: what it did not know of it stays."""
        if isinstance(received, dict) and isinstance(value, dict):
            return self.maps(cast("dict[str, Any]", received), {}, cast("dict[str, Any]", value))
        return value

    def items(self, received: list[Any], base: list[Any], present: list[Any]) -> Iterator[Any]:
        if len(received) != len(base):
            yield from present
            return
        partner = pairs(base, present, self.keys)
        for index, item in enumerate(present):
            found = partner.get(index)
            yield item if found is None else self.values(received[found], base[found], item)


@cache
def list_keys(cls: type[Model]) -> frozenset[tuple[str, ...]]:
    """The keys of all `ListMapKeys` below a class, as JSON names."""
    found: set[tuple[str, ...]] = set()
    seen: set[Any] = set()

    def visit(hint: Any) -> None:
        if typing.get_origin(hint) is Annotated:
            for marker in typing.get_args(hint)[1:]:
                if isinstance(marker, ListMapKeys):
                    found.add(tuple(map(json_name, marker.keys)))
        for inner in typing.get_args(hint):
            visit(inner)
        if isinstance(hint, type) and issubclass(hint, Model) and hint not in seen:
            seen.add(hint)
            for field in hints_of(hint).values():
                visit(field)

    visit(cls)
    return frozenset(found)

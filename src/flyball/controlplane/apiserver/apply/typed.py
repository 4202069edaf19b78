"""Walks over objects together with their schema.

The schema says how fields hang together: a map is granular (each field has managers of its own) or atomic, a list is
atomic, a set, or a map by keys. Where the schema says nothing of a field that may be there, maps are granular and lists
atomic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from flyball.api.structural import ABSENT, Schema, same
from flyball.controlplane.apiserver.apply.fieldset import (
    Element,
    FieldSet,
    Path,
    Tree,
    item_by_keys,
    item_by_value,
    named,
    path_text,
    tree_of,
)
from flyball.controlplane.apiserver.patch.errors import go_text

__all__ = ["Comparison", "NotTyped", "check", "compare", "field_set", "merge", "remove", "with_named_parents"]

_NOTHING: Final[Any] = object()
"""Stands for a value that is not there (null is there)."""


class NotTyped(ValueError):
    """The object does not fit its schema so far that its fields cannot be told apart."""


class _Shape:
    """How the fields below a node hang together."""

    ATOMIC = "atomic"
    MAP = "map"
    SET = "set"
    KEYED = "keyed"


def _shape(schema: Schema | None, value: Any) -> str:
    if isinstance(value, dict):
        if schema is None or schema.source.get("x-kubernetes-preserve-unknown-fields"):
            return _Shape.ATOMIC if schema is not None and schema.map_type == "atomic" else _Shape.MAP
        if schema.map_type == "atomic" or not (schema.properties or schema.additional):
            return _Shape.ATOMIC
        return _Shape.MAP
    if isinstance(value, list) and schema is not None:
        if schema.list_type == "set":
            return _Shape.SET
        if schema.list_type == "map":
            return _Shape.KEYED
    return _Shape.ATOMIC


def _below(schema: Schema | None, name: str) -> Schema | None:
    return None if schema is None else schema.child(name)


def _element(item: Any, schema: Schema | None, shape: str) -> Element:
    if shape == _Shape.SET:
        return item_by_value(item)
    if not isinstance(item, dict):
        raise NotTyped("associative list with keys may not have non-map elements")
    assert schema is not None
    keys: dict[str, Any] = {}
    for name in schema.map_keys:
        if name in item:
            keys[name] = item[name]
        else:
            known = schema.items.properties.get(name) if schema.items is not None else None
            if known is not None and known.default is not ABSENT:
                keys[name] = known.default
    if not keys:
        raise NotTyped(
            f"associative list with keys has an element that omits all key fields {list(schema.map_keys)!r} "
            "(and doesn't have default values for any key fields)"
        )
    return item_by_keys(keys)


def check(value: Any, schema: Schema | None, *, unique: bool) -> None:
    """Refuse fields that the schema does not declare and, with `unique`, items that stand twice. Raises `NotTyped`."""
    _check(value, schema, (), unique)


_EXPECTED: Final = {
    "string": "string",
    "boolean": "boolean",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
    "object": "map",
    "array": "list",
}
_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}


def _check_type(value: Any, schema: Schema | None, path: Path) -> None:
    if value is None or schema is None or schema.int_or_string or len(schema.types) != 1:
        return
    type_ = schema.types[0]
    if isinstance(value, _PYTHON[type_]) and (type_ == "boolean" or not isinstance(value, bool)):
        return
    shown = (
        f"&{{{go_text(value)}}}"
        if type_ in ("object", "array")
        else f"&value.valueUnstructured{{Value:{go_text(value)}}}"
    )
    raise NotTyped(f"{path_text(path)}: expected {_EXPECTED[type_]}, got {shown}")


def _check(value: Any, schema: Schema | None, path: Path, unique: bool) -> None:
    _check_type(value, schema, path)
    shape = _shape(schema, value)
    if shape == _Shape.MAP:
        for name, inner in value.items():
            child = _below(schema, name)
            where = (*path, named(name))
            if child is None and schema is not None and not schema.preserve:
                raise NotTyped(f"{path_text(where)}: field not declared in schema")
            if isinstance(inner, (dict, list)):
                _check(inner, child, where, unique)
            else:
                _check_type(inner, child, where)
    elif shape in (_Shape.SET, _Shape.KEYED):
        seen: set[Element] = set()
        for place, item in enumerate(value):
            try:
                element = _element(item, schema, shape)
            except NotTyped as error:
                raise NotTyped(f"{path_text(path)}: element {place}: {error}") from None
            if unique and element in seen:
                raise NotTyped(f"{path_text(path)}: duplicate entries for key {path_text((element,))}")
            seen.add(element)
            if isinstance(item, (dict, list)):
                _check(item, schema.items if schema is not None else None, (*path, element), unique)


def field_set(value: Any, schema: Schema | None) -> FieldSet:
    """Return the fields that an object has."""
    paths: set[Path] = set()
    _collect(value, schema, (), paths)
    return frozenset(paths)


def _collect(value: Any, schema: Schema | None, path: Path, paths: set[Path]) -> None:
    shape = _shape(schema, value)
    if shape == _Shape.MAP:
        declared = schema.properties if schema is not None else {}
        for name, inner in value.items():
            where = (*path, named(name))
            if inner is not None or name not in declared:
                _collect(inner, _below(schema, name), where, paths)
            if inner is None or inner == {} or name not in declared:
                paths.add(where)
    elif shape == _Shape.ATOMIC:
        if path:
            paths.add(path)
    else:
        for element, items in _grouped(value, schema, shape).items():
            paths.add((*path, element))
            if len(items) == 1:
                _collect(items[0], schema.items if schema is not None else None, (*path, element), paths)


def _grouped(items: Any, schema: Schema | None, shape: str) -> dict[Element, list[Any]]:
    """Group the items of a list by element: more than one in a group are duplicates."""
    groups: dict[Element, list[Any]] = {}
    for item in items or ():
        groups.setdefault(_element(item, schema, shape), []).append(item)
    return groups


@dataclass
class Comparison:
    """The fields that the second object has and the first has not, has otherwise, or has no more."""

    added: set[Path] = field(default_factory=set[Path])
    modified: set[Path] = field(default_factory=set[Path])
    removed: set[Path] = field(default_factory=set[Path])


def compare(old: Any, new: Any, schema: Schema | None) -> Comparison:
    """Find out what changed from one object to the other."""
    found = Comparison()
    _compare(old, new, schema, (), found)
    return found


def _compare(old: Any, new: Any, schema: Schema | None, path: Path, found: Comparison) -> None:
    if type(old) in (dict, list) and type(new) is type(old) and same(old, new):
        return  # nothing has changed anywhere below
    shape, before = _shape(schema, old if new is _NOTHING or new is None else new), _shape(schema, old)
    if old is not _NOTHING and new is not _NOTHING and old is not None and new is not None and before != shape:
        _compare_children(old, _NOTHING, schema, path, before, found)
        found.modified.add(path)
        return
    if shape == _Shape.ATOMIC or (_is_empty(old) and _is_empty(new)):
        _compare_leaf(old, new, path, found)
        return
    _compare_children(old, new, schema, path, shape, found)
    if old is _NOTHING:
        found.added.add(path)
    elif new is _NOTHING:
        found.removed.add(path)


def _is_empty(value: Any) -> bool:
    return value is _NOTHING or value is None or value == {} or value == []


def _compare_leaf(old: Any, new: Any, path: Path, found: Comparison) -> None:
    if old is _NOTHING:
        found.added.add(path)
    elif new is _NOTHING:
        found.removed.add(path)
    elif not same(old, new):
        found.modified.add(path)


def _compare_children(old: Any, new: Any, schema: Schema | None, path: Path, shape: str, found: Comparison) -> None:
    if shape == _Shape.MAP:
        left, right = _fields(old), _fields(new)
        for name in [*left, *(name for name in right if name not in left)]:
            inner = (left.get(name, _NOTHING), right.get(name, _NOTHING))
            _compare(*inner, _below(schema, name), (*path, named(name)), found)
    elif shape in (_Shape.SET, _Shape.KEYED):
        lefts = _grouped([] if old is _NOTHING else old, schema, shape)
        rights = _grouped([] if new is _NOTHING else new, schema, shape)
        for element in [*lefts, *(element for element in rights if element not in lefts)]:
            _compare_items(lefts.get(element, []), rights.get(element, []), schema, (*path, element), found)


def _compare_items(old: list[Any], new: list[Any], schema: Schema | None, path: Path, found: Comparison) -> None:
    items = None if schema is None else schema.items
    if len(old) <= 1 and len(new) <= 1:
        _compare(old[0] if old else _NOTHING, new[0] if new else _NOTHING, items, path, found)
    elif len(old) > 1 and len(new) > 1:
        if not same(old, new):
            found.modified.add(path)
    elif len(old) > 1:
        if new:
            _compare(_NOTHING, new[0], items, path, found)
        found.removed.add(path)
    else:
        if old:
            _compare(old[0], _NOTHING, items, path, found)
        found.added.add(path)


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def merge(old: Any, new: Any, schema: Schema | None) -> Any:
    """Return the first object with the second merged into it."""
    shape = _shape(schema, new)
    if shape == _Shape.ATOMIC or _is_empty(new) or shape != _shape(schema, old):
        return new if new not in ({}, []) or _is_empty(old) or shape == _Shape.ATOMIC else old
    if shape == _Shape.MAP:
        merged = dict(old)
        for name, inner in new.items():
            merged[name] = merge(old[name], inner, _below(schema, name)) if name in old else inner
        return merged
    return _merge_lists(old, new, schema, shape)


def _merge_lists(old: list[Any], new: list[Any], schema: Schema | None, shape: str) -> list[Any]:
    """Merge two lists item by item.

    Items of the new list come in its order. An item that only the old list has keeps its place before the shared item
    that followed it there, unless the new order has brought that one forward already.
    """
    items = None if schema is None else schema.items
    lefts = [(_element(item, schema, shape), item) for item in old]
    groups = _grouped(old, schema, shape)
    rights = {_element(item, schema, shape): item for item in new}
    shared = iter([element for element in rights if element in groups] + [None])
    next_shared = next(shared)
    merged: list[Any] = []
    done: set[Element] = set()
    order = list(rights)
    left = right = 0
    while left < len(lefts) or right < len(order):
        if left < len(lefts):
            element, item = lefts[left]
            if element not in rights:
                merged.append(item)
                left += 1
                continue
            if element in done or (right < len(order) and next_shared is not None and element != next_shared):
                left += 1
                continue
        if right < len(order):
            element = order[right]
            group = groups.get(element, [])
            merged.append(merge(group[0], rights[element], items) if len(group) == 1 else rights[element])
            done.add(element)
            right += 1
            if element == next_shared:
                next_shared = next(shared)
    return merged


def remove(value: Any, fields: FieldSet, schema: Schema | None) -> Any:
    """Return the object without the given fields; what becomes empty by it becomes null."""
    if not fields:
        return value
    tree, members = tree_of(fields)
    return _remove(value, tree, members, (), schema)


def _remove(value: Any, tree: Tree, members: FieldSet, path: Path, schema: Schema | None) -> Any:
    shape = _shape(schema, value)
    if _is_empty(value) or (shape == _Shape.ATOMIC and isinstance(value, (dict, list))):
        return None
    if shape == _Shape.ATOMIC:
        return value
    if shape == _Shape.MAP:
        kept = {name: inner for _, name, inner in _kept(value.items(), tree, members, path, schema, shape)}
        return kept or None
    return [inner for _, _, inner in _kept(enumerate(value), tree, members, path, schema, shape)] or None


def _kept(
    pairs: Any, tree: Tree, members: FieldSet, path: Path, schema: Schema | None, shape: str
) -> Iterator[tuple[Element, Any, Any]]:
    for name, inner in pairs:
        element = named(name) if shape == _Shape.MAP else _element(inner, schema, shape)
        where = (*path, element)
        if where in members:
            continue
        below = tree.get(element)
        if below:
            child = _below(schema, name) if shape == _Shape.MAP else (None if schema is None else schema.items)
            yield element, name, _remove(inner, below, members, where, child)
        else:
            yield element, name, inner


def with_named_parents(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """Return the set with all fields above its paths that the schema declares by name."""
    parents: set[Path] = set(fields)
    for path in fields:
        node = schema
        for depth, element in enumerate(path[:-1], start=1):
            if element.startswith("f:"):
                name = element[2:]
                if node is not None and name in node.properties:
                    parents.add(path[:depth])
                node = _below(node, name)
            else:
                node = None if node is None else node.items
    return frozenset(parents)

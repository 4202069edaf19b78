"""Paths of fields and sets of them, and the form in which `managedFields` keeps them.

A path is a tuple of elements, each in the text that FieldsV1 uses: `f:name` (a field), `k:{...}` (the item of a list
with these keys), `v:...` (an item of a set), `i:3` (an item by place). A set of fields is a frozenset of paths; that a
path is in it says nothing about the paths below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = [
    "EMPTY",
    "Element",
    "FieldSet",
    "Path",
    "fields_v1",
    "from_fields_v1",
    "item_by_keys",
    "item_by_value",
    "named",
    "path_text",
    "tree_of",
    "without_below",
]

Element = str
Path = tuple[Element, ...]
FieldSet = frozenset[Path]
Tree = dict[Element, "Tree"]

EMPTY: Final[FieldSet] = frozenset()
_MEMBER: Final = "."
_ORDER: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


def named(field: str) -> Element:
    """Return the element of a field of an object."""
    return f"f:{field}"


def item_by_keys(keys: Mapping[str, Any]) -> Element:
    """Return the element of a list item that is told apart by keys."""
    return f"k:{_compact({name: keys[name] for name in sorted(keys)})}"


def item_by_value(value: Any) -> Element:
    """Return the element of an item of a set."""
    return f"v:{_compact(value)}"


def fields_v1(fields: Iterable[Path]) -> dict[str, Any]:
    """Write a set down as FieldsV1 does."""
    root: dict[str, Any] = {}
    for path in sorted(fields, key=_sort_key):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node[_MEMBER] = {}
    return _simplified(root)


def _simplified(node: dict[str, Any]) -> dict[str, Any]:
    """Leave out the mark of membership where there is nothing below: an empty object says it already."""
    below = {element: _simplified(child) for element, child in node.items() if element != _MEMBER}
    if not below:
        return {}
    return {_MEMBER: {}, **below} if _MEMBER in node else below


def from_fields_v1(fields: Any) -> FieldSet:
    """Read a set from FieldsV1. Raises `ValueError` for what is none."""
    paths: set[Path] = set()
    if fields is not None:
        _collect(fields, (), paths)
    return frozenset(paths)


def _collect(node: Any, path: Path, paths: set[Path]) -> None:
    if not isinstance(node, dict):
        raise ValueError(f"FieldsV1 is made of objects; found {node!r}")
    if not node and path:
        paths.add(path)
    for element, child in node.items():
        if element == _MEMBER:
            paths.add(path)
            continue
        if element[:2] not in ("f:", "k:", "v:", "i:"):
            raise ValueError(f"unknown path element {element!r} in FieldsV1")
        _collect(child, (*path, _normal(element)), paths)


def _normal(element: Element) -> Element:
    """Bring keys and values into the one spelling that paths are compared by."""
    kind, text = element[0], element[2:]
    if kind == "k":
        keys = json.loads(text)
        if not isinstance(keys, dict):
            raise ValueError(f"the keys of a list item are an object: {element}")
        return item_by_keys(keys)
    return item_by_value(json.loads(text)) if kind == "v" else element


def path_text(path: Path) -> str:
    """Tell a path to people: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(_told, path))


def _told(element: Element) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={_compact(value)}" for name, value in json.loads(text).items()) + "]"
    return f"[={_compact(json.loads(text))}]" if kind == "v" else f"[{text}]"


def tree_of(fields: Iterable[Path]) -> tuple[Tree, FieldSet]:
    """Return the set as a tree to walk down, beside the set itself as a frozenset."""
    members = frozenset(fields)
    root: Tree = {}
    for path in members:
        node = root
        for element in path:
            node = node.setdefault(element, {})
    return root, members


def without_below(fields: FieldSet, prefixes: Iterable[Path]) -> FieldSet:
    """Return the set without the given paths and everything below them."""
    gone = tuple(prefixes)
    if not gone:
        return fields
    return frozenset(path for path in fields if not any(path[: len(prefix)] == prefix for prefix in gone))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _sort_key(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((_ORDER[element[0]], element) for element in path)

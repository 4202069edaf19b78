"""What is left out of objects before they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from flyball.errors import FlyballError

__all__ = ["Shape", "Transform", "keep_fields"]

Transform: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes an object as plain JSON and returns what is to be stored; it may change and return the same dict. Name,
namespace, uid and version must stay."""

Shape: TypeAlias = Callable[[bytes], bytes]

_ALWAYS: Final = frozenset({"apiVersion", "kind", "metadata"})
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_plain = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode

_Tree = Mapping[str, Any]


def keep_fields(paths: Iterable[str]) -> Shape:
    """Keep `apiVersion`, `kind`, `metadata` and these paths: `status.phase`, `spec.template.metadata`; drop the rest.

    A path leads through maps by dots; what it ends at is kept whole. A leading dot is allowed.
    """
    tree: dict[str, Any] = {}
    for path in paths:
        names = path.lstrip(".").split(".")
        if not all(names):
            raise FlyballError(f"fields to keep: {path!r} is no path; write it as 'spec.replicas'")
        node = tree
        for name in names[:-1]:
            deeper = node.setdefault(name, {})
            if deeper is None:
                break
            node = deeper
        else:
            node[names[-1]] = None
    for name in _ALWAYS:
        tree[name] = None
    return lambda raw: _encode(_pruned(raw, tree))


def _pruned(raw: bytes | msgspec.Raw, tree: _Tree) -> dict[str, Any]:
    members = _decode(raw)
    kept: dict[str, Any] = {}
    for name, below in tree.items():
        value = members.get(name)
        if value is None:
            continue
        is_map = bytes(memoryview(value)[:1]) == b"{"
        kept[name] = _pruned(value, below) if below is not None and is_map else value
    return kept


def by_transform(transform: Transform) -> Shape:
    """The bytes of what a transform makes of an object."""
    return lambda raw: _encode(transform(_plain(raw)))

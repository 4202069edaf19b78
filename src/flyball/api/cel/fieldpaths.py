"""Paths that rules give for the field they are about: `.spec.replicas`, `.labels['a']`."""

from __future__ import annotations

import re
from typing import Final

from flyball.api.structural.schema import Schema

__all__ = ["resolve"]

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+[^.\[\]]*")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def resolve(path: str, schema: Schema) -> str:
    """Return a path as errors show it. Raises `ValueError` when it leads to no field."""
    tokens = _TOKEN.findall(path)
    if "".join(tokens) != path:
        raise ValueError(path)
    shown = ""
    node = schema
    while tokens:
        name = _next_name(tokens)
        if node.properties:
            shown += f".{name}" if shown else name
            node = node.properties[name] if name in node.properties else _missing(path)
        elif node.additional is not None:
            shown += f"[{name}]"
            node = node.additional
        else:
            _missing(path)
    return shown


def _missing(path: str) -> Schema:
    raise ValueError(path)


def _next_name(tokens: list[str]) -> str:
    opening = tokens.pop(0)
    if opening not in (".", "[") or not tokens:
        raise ValueError(opening)
    name = tokens.pop(0)
    if opening == ".":
        return name
    if len(name) < 2 or name[0] != "'" or name[-1] != "'" or not tokens or tokens.pop(0) != "]":
        raise ValueError(name)
    return re.sub(r"\\(.)", _unescaped, name[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    if found[1] not in _ESCAPES:
        raise ValueError(found[0])
    return _ESCAPES[found[1]]

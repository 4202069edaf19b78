"""How deep a body may be nested, and how much a small text may stand for.

The steps of a write walk objects by recursion, and the YAML library composes documents so: what is nested deeper than
any object that makes sense is refused before. Aliases of YAML are followed only to a size that a body could have.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

__all__ = ["MAX_DEPTH", "TooDeep", "check_depth", "check_yaml"]

MAX_DEPTH: Final = 150
_MAX_NODES: Final = 1_000_000
_Parser: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class TooDeep(ValueError):
    """A body is nested too deeply, or grows too large; the text says so."""


def check_depth(value: Any) -> None:
    """Raise TooDeep for a value that is nested too deeply. It must not share parts; `check_yaml` sees to that."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for node in level:
            children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
            below.extend(child for child in children if isinstance(child, (dict, list)))
        if not below:
            return
        level = below
    raise TooDeep(f"the body is nested deeper than {MAX_DEPTH} levels")


def check_yaml(raw: bytes) -> None:
    """Raise TooDeep for a text that is too deep, or too large once its aliases are followed. Raises YAMLError."""
    depth = nodes = 0
    open_anchors: list[tuple[str | None, int]] = []
    sizes: dict[str, int] = {}
    for event in yaml.parse(raw, _Parser):
        if isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            depth += 1
            nodes += 1
            open_anchors.append((event.anchor, nodes))
            if depth > MAX_DEPTH:
                raise TooDeep(f"the body is nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            depth -= 1
            anchor, before = open_anchors.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before + 1
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            nodes += sizes.get(event.anchor or "", 1)
        if nodes > _MAX_NODES:
            raise TooDeep(f"the body has more than {_MAX_NODES} values, aliases counted as often as they are used")

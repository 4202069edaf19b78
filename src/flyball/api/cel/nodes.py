"""The tree of an expression: what the parser makes, the checker annotates and the compiler turns into closures.

`at` is the offset in the text where errors about a node are shown; `type` and `overloads` are set by the checker. A
macro may put one node into two places where the same variables are seen; so the tree is one of nodes, not of places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.api.cel.overloads import Overload
    from flyball.api.cel.types import Type

__all__ = ["Call", "Entry", "Fold", "Ident", "ListNode", "Literal", "MapNode", "Node", "Select", "Struct"]


class Node:
    """Any node."""

    __slots__ = ("at", "depth", "type")
    depth: int
    type: Type

    def __init__(self, at: int, depth: int = 1) -> None:
        """Take the place, and how high the tree below is."""
        self.at = at
        self.depth = depth


class Literal(Node):
    """A value that is written down; `kind` names its type."""

    __slots__ = ("kind", "value")

    def __init__(self, at: int, kind: str, value: Any) -> None:
        """Take the value, as it is at run time."""
        super().__init__(at)
        self.kind = kind
        self.value = value


class Ident(Node):
    """A variable, or the name of a type."""

    __slots__ = ("name",)

    def __init__(self, at: int, name: str) -> None:
        """Take the name."""
        super().__init__(at)
        self.name = name


class Select(Node):
    """A field of a value; or, as a `test`, whether it is there."""

    __slots__ = ("field", "operand", "test")

    def __init__(self, at: int, operand: Node, field: str, *, test: bool = False) -> None:
        """Take whose field."""
        super().__init__(at, operand.depth + 1)
        self.operand = operand
        self.field = field
        self.test = test


class Call(Node):
    """A function or an operator; operators have names such as `_+_`."""

    __slots__ = ("args", "name", "overloads", "target")

    def __init__(self, at: int, name: str, args: list[Node], target: Node | None = None) -> None:
        """Take the name, the target of a member function, and the arguments."""
        below = max((arg.depth for arg in args), default=0)
        super().__init__(at, max(below, target.depth if target is not None else 0) + 1)
        self.name = name
        self.target = target
        self.args = args
        self.overloads: tuple[Overload, ...] = ()


class ListNode(Node):
    """A list literal; `optional` holds the places of `?` items."""

    __slots__ = ("items", "optional")

    def __init__(self, at: int, items: list[Node], optional: frozenset[int] = frozenset()) -> None:
        """Take the items."""
        super().__init__(at, max((item.depth for item in items), default=0) + 1)
        self.items = items
        self.optional = optional


class Entry:
    """One entry of a map literal, or one field of a message (the key is then its name)."""

    __slots__ = ("at", "key", "optional", "value")

    def __init__(self, at: int, key: Node, value: Node, optional: bool) -> None:
        """Take key and value."""
        self.at = at
        self.key = key
        self.value = value
        self.optional = optional


class MapNode(Node):
    """A map literal."""

    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[Entry]) -> None:
        """Take the entries."""
        super().__init__(at, max((max(entry.key.depth, entry.value.depth) for entry in entries), default=0) + 1)
        self.entries = entries


class Struct(Node):
    """A message literal; there are no message types here, so the checker always refuses it."""

    __slots__ = ("entries", "name")

    def __init__(self, at: int, name: str, entries: list[Entry]) -> None:
        """Take the name of the type and the fields."""
        super().__init__(at, max((entry.value.depth for entry in entries), default=0) + 1)
        self.name = name
        self.entries = entries


class Fold(Node):
    """What a macro stands for: a loop over `range` that carries an accumulator.

    `kind` says which loop it is, for the compiler: all, exists, one, list, map, entries, bind. `body` is what is
    evaluated for each item, `where` the condition of a list or map that is filtered.
    """

    __slots__ = ("accu", "body", "condition", "init", "kind", "range", "result", "step", "var", "var2", "where")

    def __init__(
        self,
        at: int,
        kind: str,
        range_: Node,
        variables: tuple[str, str | None],
        accu: tuple[str, Node],
        loop: tuple[Node, Node, Node],
        body: Node,
        where: Node | None = None,
    ) -> None:
        """Take the parts; `loop` is the condition, the step and the result."""
        parts = (range_, accu[1], *loop)
        super().__init__(at, max(part.depth for part in parts) + 1)
        self.kind = kind
        self.range = range_
        self.var, self.var2 = variables
        self.accu, self.init = accu
        self.condition, self.step, self.result = loop
        self.body = body
        self.where = where

"""Which children are as they were applied, so that applying them again would change nothing.

An apply is left out only if it would be the same one as the last of this process, and if every field that it names has
the value that the server answered then, defaults and normal forms included.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

__all__ = ["Settled"]

_REMEMBERED: Final = 50_000

Child = tuple[str, str, str | None, str]
"""apiVersion, kind, namespace, name."""


class Settled:
    """Remembers, per child, what was applied last and what came of it: two digests."""

    def __init__(self) -> None:
        """Nothing was applied yet."""
        self._known: OrderedDict[Child, tuple[bytes, bytes]] = OrderedDict()

    def remember(self, child: Child, sent: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """This was applied, and the server answered with this object."""
        self._known[child] = (_digest(sent), _digest(_named_by(sent, answer)))
        self._known.move_to_end(child)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def holds(self, child: Child, sent: Mapping[str, Any], present: Mapping[str, Any]) -> bool:
        """Whether applying this to the present object would be of no use."""
        known = self._known.get(child)
        return known is not None and known == (_digest(sent), _digest(_named_by(sent, present)))

    def forget(self, child: Child) -> None:
        """The child was changed otherwise."""
        self._known.pop(child, None)


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).digest()


def _named_by(sent: Any, obj: Any) -> Any:
    """What the object says in the fields that were sent; lists as a whole, and whose object it is."""
    if isinstance(sent, dict) and isinstance(obj, dict):
        fields = cast("dict[str, Any]", sent)
        found = cast("dict[str, Any]", obj)
        named = {name: _named_by(value, found.get(name)) for name, value in fields.items()}
        if "metadata" in fields and isinstance(found.get("metadata"), dict):
            named[""] = found["metadata"].get("uid")
        return named
    return obj

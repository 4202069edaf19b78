"""Whether an object is what its class says: the third layer, behind the CRD's schema and admission.

A definition may be older or looser than the class, and objects outlive definitions. So a reconciler that would act on
nonsense asks `expect_valid(obj)` first; what it raises is `InvalidSpec`, in the API server's words.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from flyball.api import Resource, to_dict
from flyball.api.codec import origin
from flyball.controller.failures import InvalidSpec

if TYPE_CHECKING:
    from flyball.api.cel import Rules
    from flyball.api.structural import Schema

__all__ = ["expect_valid"]

_SAID_BY_USERS = ("apiVersion", "kind", "metadata", "spec")


@cache
def _law(kind: type[Resource]) -> tuple[Schema, Rules]:
    """The schema of a class, status left out, and its rules."""
    from flyball.api.cel import Rules
    from flyball.api.schema import schema_of
    from flyball.api.structural import compile_schema

    schema = compile_schema(schema_of(kind))
    return schema, Rules(schema)


def expect_valid(obj: Resource) -> None:
    """Raise `InvalidSpec` unless an API server with the definition of the object's class would take its spec.

    Everything that is wrong is named, with its path. Defaults are taken as filled in, since the class fills them in;
    rules about changes are not asked. Patterns need google-re2, which only `flyball[dev]` brings.
    """
    from flyball.api.structural import blocks_rules, validate, validate_lists

    schema, rules = _law(type(obj))
    raw = origin(obj)
    stored: dict[str, Any] = msgspec.json.decode(raw) if raw is not None else to_dict(obj)
    plain = {name: stored[name] for name in _SAID_BY_USERS if name in stored}
    found = [*validate(plain, schema), *validate_lists(plain, schema)]
    if not blocks_rules(found):
        found += rules.check(plain)
    if found:
        raise InvalidSpec("; ".join(dict.fromkeys(map(str, found))))

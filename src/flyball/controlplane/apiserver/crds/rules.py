"""The CEL rules of custom kinds: compiled once per schema, asked at each write, and judged when a definition comes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flyball.api.cel import Rules, check_rules
from flyball.api.fielderrors import FieldError
from flyball.api.structural import Schema, compile_schema
from flyball.controlplane.apiserver.kinds import Kind

__all__ = ["findings", "schema_findings"]

Object = dict[str, Any]


@lru_cache(maxsize=1024)
def _rules(schema: Schema) -> Rules:
    return Rules(schema)


def findings(kind: Kind, obj: Object, old: Object | None) -> list[FieldError]:
    """Ask the rules of a kind about an object and what it was before."""
    return [] if kind.schema is None else _rules(kind.schema).check(obj, old)


def schema_findings(schema: Mapping[str, Any], path: str) -> list[FieldError]:
    """Find what is wrong with the rules in the schema of a definition."""
    return check_rules(compile_schema(schema), path)

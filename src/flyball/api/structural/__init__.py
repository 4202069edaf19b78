"""Structural schemas: what a custom resource's schema does to its objects, and what it says of them.

`compile_schema` makes a `Schema` once per version of a kind; then, in the order of an API server: `prune` removes what
the schema does not know, `drop_nulls` and `default` fill in, `validate` and `validate_lists` find what is wrong, in
Kubernetes' wording. `patterns` and `formats` are what strings are held to. Nothing here knows a server: the same walk
serves the embedded one, the client, and `flyball check`.

Patterns are RE2's and need the package `google-re2`, which `flyball[dev]` brings.
"""

from __future__ import annotations

from flyball.api.structural.patterns import PatternError, compile_pattern
from flyball.api.structural.prune import default, drop_nulls, prune
from flyball.api.structural.schema import ABSENT, Schema, compile_schema
from flyball.api.structural.validate import RULES_NOT_CHECKED, blocks_rules, same, validate, validate_lists

__all__ = [
    "ABSENT",
    "RULES_NOT_CHECKED",
    "PatternError",
    "Schema",
    "blocks_rules",
    "compile_pattern",
    "compile_schema",
    "default",
    "drop_nulls",
    "prune",
    "same",
    "validate",
    "validate_lists",
]

"""CEL, the language of rules: parsed, type checked, compiled to Python closures, with Kubernetes' libraries and limits.

    rules = Rules(compile_schema(openapi))          # once per version of a kind
    errors = rules.check(obj, old)                  # as often as objects come

What an API server of version 1.36 takes is taken, what it refuses is refused in its words, and what it counts as costs
is counted: an expression may cost 1,000,000, all rules of an object 10,000,000. Not done: the estimate of costs before
an expression is ever run.

Reading order: `errors`; `lexer`, `nodes`, `macros`, `parser` (text to tree); `types`, `overloads`, `checker`,
`validators` (what fits); `values`, `views`, `declared` (JSON and schemas as values and types); `code`, `compiler`,
`quick`, `loops` (tree to closures); the libraries `standard`, `times`, `strings`, `lists`, `network`, `urls`,
`kubernetes`, `formats` over `operators`; `environment`; `fieldpaths`, `rules`, `definitions` (rules in schemas).

Nothing here knows a server. A `Program` and `Rules` hold no state: they may be used from several threads.
"""

from __future__ import annotations

from flyball.api.cel.code import ProgramError
from flyball.api.cel.declared import Declared, declare, escape
from flyball.api.cel.definitions import check_rules
from flyball.api.cel.environment import (
    BINDINGS_LIBRARY,
    KUBERNETES_LIBRARY,
    PER_CALL_LIMIT,
    REVERSE_LIBRARY,
    STANDARD_LIBRARY,
    Environment,
    Library,
    Program,
)
from flyball.api.cel.errors import CelError, CompileError, CostExceeded, EvalError, Issue
from flyball.api.cel.rules import BUDGET, Rules

__all__ = [
    "BINDINGS_LIBRARY",
    "BUDGET",
    "KUBERNETES_LIBRARY",
    "PER_CALL_LIMIT",
    "REVERSE_LIBRARY",
    "STANDARD_LIBRARY",
    "CelError",
    "CompileError",
    "CostExceeded",
    "Declared",
    "Environment",
    "EvalError",
    "Issue",
    "Library",
    "Program",
    "ProgramError",
    "Rules",
    "check_rules",
    "declare",
    "escape",
]

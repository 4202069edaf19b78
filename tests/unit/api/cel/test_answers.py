"""Expressions and what becomes of them on an API server: refusal, value, error and cost.

`answers.jsonl` was recorded from the libraries of kube-apiserver 1.36.4, with the variable `self` as below.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flyball.api.cel import CompileError, Environment, EvalError, ProgramError, declare
from flyball.api.cel.standard import text_of_double
from flyball.api.cel.types import DYN
from flyball.api.cel.values import (
    ABSENT,
    Duration,
    ListValue,
    MapView,
    OptionalValue,
    Timestamp,
    TypeValue,
    Uint,
    type_name,
)
from flyball.api.structural import compile_schema

INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
DECLARED = declare(
    compile_schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"b": INTEGER}},
                "q": {"type": "object", "properties": {"b": INTEGER}},
                "l": {"type": "array", "items": INTEGER},
                "i": INTEGER,
                "s": TEXT,
                "ss": {"type": "array", "items": TEXT},
                "m": {"type": "object", "additionalProperties": TEXT},
                "d": {"type": "string", "format": "date-time"},
            },
        }
    )
)
SELF = {
    "a": {"b": 5},
    "l": [1, 2, 3],
    "i": 1,
    "s": "x",
    "ss": ["a", "b"],
    "m": {"x": "y"},
    "d": "2021-02-03T04:05:06Z",
}
ANSWERS = [json.loads(line) for line in (Path(__file__).parent / "answers.jsonl").read_text().splitlines()]
RECOVERED = {"-", "a.in", "in", "f(,)", "a.?"}
"""After these errors the other parser finds a way to go on, and finds one more; here the first is all."""


def shown(value: Any) -> str:
    """Write a value as the recording does."""
    if value is None:
        return "null"
    match value:
        case bool():
            return f"bool:{str(value).lower()}"
        case Uint():
            return f"uint:{int(value)}"
        case int():
            return f"int:{value}"
        case float():
            return f"double:{text_of_double(value)}"
        case str():
            return f"string:{json.dumps(value, ensure_ascii=False)}"
        case bytes():
            return f"bytes:{value.hex()}"
        case Duration():
            return f"duration:{value.nanos}"
        case Timestamp():
            return f"timestamp:{value.seconds}.{value.nanos:09}"
        case OptionalValue():
            return "optional.none" if value.value is ABSENT else f"optional({shown(value.value)})"
        case TypeValue():
            return f"type:{value.name}"
        case list() | ListValue():
            return f"[{','.join(map(shown, value))}]"
        case MapView():
            return "{" + ",".join(sorted(f"{shown(key)}:{shown(value.find(key))}" for key in value)) + "}"
        case _:
            return f"{type_name(value)}:{value}"


def answer(expression: str) -> dict[str, Any]:
    """Do what the recording did."""
    found: dict[str, Any] = {"expr": expression}
    assert DECLARED.type is not None
    assert DECLARED.convert is not None
    try:
        program = Environment().compile(expression, {"self": DECLARED.type, "d": DYN})
        value, cost = program.evaluate([DECLARED.convert(SELF), None])
    except (CompileError, ProgramError) as error:
        return {**found, "refused": str(error)}
    except EvalError as error:
        return {**found, "error": str(error)}
    return {**found, "value": shown(value), "cost": cost}


@pytest.mark.parametrize("recorded", ANSWERS, ids=[each["expr"] for each in ANSWERS])
def test_the_answer_is_that_of_an_api_server(recorded: dict[str, Any]) -> None:
    found = answer(recorded["expr"])
    if recorded["expr"] in RECOVERED:
        assert found["refused"].startswith("ERROR: <input>:1:")
        return
    assert found == recorded

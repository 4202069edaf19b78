"""The rules of a schema over objects: what is refused, where, in which words; when old values count.

`refusals.json` is what a real API server says of the same schemas and objects (tests/conformance/test_cel_real.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.celcases import CHANGES, DEFINITIONS, INTEGER, OBJECTS, TEXT, inner, resource_schema, rule, ruled

from flyball.api.cel import Rules, check_rules
from flyball.api.fielderrors import FieldError
from flyball.api.structural import compile_schema

REFUSALS: dict[str, Any] = json.loads((Path(__file__).parent / "refusals.json").read_text())


def causes(errors: list[FieldError]) -> list[dict[str, str]]:
    return sorted((error.cause() for error in errors), key=lambda cause: (cause["field"], cause["message"]))


def told(schema: dict[str, Any], obj: Any, old: Any = None, **more: Any) -> list[str]:
    return [str(error) for error in Rules(compile_schema(schema), root=False).check(obj, old, **more)]


@pytest.mark.capability("C67")
@pytest.mark.parametrize("name", DEFINITIONS)
def test_ill_formed_rules_are_refused_as_a_server_does(name: str) -> None:
    schema = compile_schema(resource_schema(DEFINITIONS[name]))
    assert causes(check_rules(schema)) == REFUSALS["definitions"][name]


def resource(spec: Any, name: str) -> dict[str, Any]:
    return {"apiVersion": "cel.flyball.example.org/v1", "kind": name, "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.capability("C67")
@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_refused_as_a_server_does(name: str) -> None:
    case = OBJECTS[name]
    schema = compile_schema(resource_schema(case.schema, *case.root_rules))
    assert check_rules(schema) == []
    assert causes(Rules(schema).check(resource(case.new, "Any"))) == REFUSALS["objects"][name]


@pytest.mark.capability("C67")
@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_refused_as_a_server_does(name: str) -> None:
    case = CHANGES[name]
    rules = Rules(compile_schema(resource_schema(case.schema, *case.root_rules)))
    errors = rules.check(resource(case.new, "Any"), resource(case.old, "Any"))
    assert causes(errors) == REFUSALS["changes"][name]


def test_a_schema_without_rules_is_never_walked() -> None:
    rules = Rules(compile_schema(inner({"a": INTEGER})))
    assert not rules
    assert rules.check({"a": "anything"}) == []


def test_the_path_may_begin_elsewhere() -> None:
    rules = Rules(compile_schema(inner({"a": ruled(INTEGER, "self > 1")})), root=False)
    assert [error.field for error in rules.check({"a": 1}, path="items[0]")] == ["items[0].a"]


def test_without_ratcheting_unchanged_values_are_refused_too() -> None:
    schema = ruled(INTEGER, "self > 5")
    assert told(schema, 1, 1) == []
    assert told(schema, 1, 1, ratchet=False) == ["<nil>: Invalid value: 1: failed rule: self > 5"]


def test_all_rules_share_a_budget() -> None:
    schema = inner({"a": ruled(INTEGER, "self > 1"), "b": ruled(INTEGER, "self > 1")})
    assert len(told(schema, {"a": 1, "b": 1})) == 2
    found = told(schema, {"a": 1, "b": 1}, budget=3)
    assert found[1].endswith(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


def test_a_value_of_the_wrong_type_is_an_error_not_a_crash() -> None:
    schema = inner({"a": INTEGER}, rule("self.a > 1"))
    assert told(schema, {"a": 1.5}) == [
        '<nil>: Invalid value: "object": invalid data, expected int, got float64 evaluating rule: self.a > 1'
    ]


def test_rules_only_in_all_of_are_not_looked_for() -> None:
    nested = {"properties": {"a": {"x-kubernetes-validations": [rule("self > 5")]}}}
    schema = inner({"a": INTEGER}, allOf=[nested])
    assert told(schema, {"a": 1}) == []
    assert len(told({**schema, "x-kubernetes-validations": [rule("true")]}, {"a": 1})) == 1


def test_a_rule_of_a_broken_schema_says_so() -> None:
    assert told({"x-kubernetes-preserve-unknown-fields": True, **ruled({}, "true")}, {"a": 1}) == [
        '<nil>: Invalid value: "": rule compiler initialization error: '
        "failed to convert to declType for CEL validation rules"
    ]
    assert told(ruled(TEXT, "self.zz"), "a")[0].startswith('<nil>: Invalid value: "string": rule compile error: ')


def test_an_empty_rule_holds() -> None:
    assert told(ruled(TEXT, " "), "a") == []

"""A schema finds what is wrong with a value, as an API server words it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flyball.api.structural import RULES_NOT_CHECKED, blocks_rules, compile_schema, validate, validate_lists

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["must"],
            "properties": {
                "n": {"type": "integer", "maximum": 10, "minimum": 1, "multipleOf": 2},
                "f": {"type": "number", "exclusiveMaximum": True, "maximum": 1.5},
                "small": {"type": "integer", "format": "int32"},
                "enum": {"type": "string", "enum": ["x", "y"]},
                "pat": {"type": "string", "pattern": "^a+$", "maxLength": 3, "minLength": 1},
                "date": {"type": "string", "format": "date-time"},
                "ios": {"x-kubernetes-int-or-string": True},
                "must": {"type": "boolean"},
                "null": {"type": "string", "nullable": True},
                "list": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "minItems": 1},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
                "one": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
                "any": {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]},
                "no": {"type": "integer", "not": {"enum": [3]}},
            },
        }
    },
}
SCHEMA = compile_schema(SPEC)

FINDINGS = [
    ({"n": 12}, "spec.n: Invalid value: 12: spec.n in body should be less than or equal to 10"),
    ({"n": 0}, "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"),
    ({"n": 3}, "spec.n: Invalid value: 3: spec.n in body should be a multiple of 2"),
    ({"n": "2"}, 'spec.n: Invalid value: "string": spec.n in body must be of type integer: "string"'),
    ({"small": 2.5}, 'spec.small: Invalid value: "float64": spec.small in body must be of type int32: "float64"'),
    ({"n": None}, 'spec.n: Invalid value: "null": spec.n in body must be of type integer: "null"'),
    ({"f": 1.5}, "spec.f: Invalid value: 1.5: spec.f in body should be less than 1.5"),
    ({"enum": "z"}, 'spec.enum: Unsupported value: "z": supported values: "x", "y"'),
    ({"pat": "aaaa"}, "spec.pat: Too long: may not be more than 3 bytes"),
    ({"pat": ""}, 'spec.pat: Invalid value: "": spec.pat in body should be at least 1 chars long'),
    ({"pat": "b"}, "spec.pat: Invalid value: \"b\": spec.pat in body should match '^a+$'"),
    ({"date": "zz"}, 'spec.date: Invalid value: "zz": spec.date in body must be of type date-time: "zz"'),
    ({"ios": True}, 'spec.ios: Invalid value: "boolean": spec.ios in body must be of type integer,string: "boolean"'),
    ({"list": []}, "spec.list: Invalid value: 0: spec.list in body should have at least 1 items"),
    ({"list": ["a", "b", "c"]}, "spec.list: Too many: 3: must have at most 2 items"),
    (
        {"list": ["a", 1]},
        'spec.list[1]: Invalid value: "integer": spec.list[1] in body must be of type string: "integer"',
    ),
    (
        {"labels": {"k": 1}},
        'spec.labels.k: Invalid value: "integer": spec.labels.k in body must be of type string: "integer"',
    ),
    ({"labels": {"k": "", "l": ""}}, "spec.labels: Too many: 2: must have at most 1 item"),
    ({"no": 3}, '<nil>: Invalid value: "": "spec.no" must not validate the schema (not)'),
]


@pytest.mark.parametrize(("value", "finding"), FINDINGS)
def test_each_finding_reads_as_the_api_server_words_it(value: dict[str, Any], finding: str) -> None:
    assert [str(error) for error in validate({"spec": {"must": True, **value}}, SCHEMA)] == [finding]


def test_a_missing_field_is_required() -> None:
    (error,) = validate({"spec": {}}, SCHEMA)
    assert (str(error), error.cause()["reason"]) == ("spec.must: Required value", "FieldValueRequired")


def test_none_of_the_branches_reports_the_one_that_got_furthest() -> None:
    told = [str(error) for error in validate({"spec": {"must": True, "one": {}}}, SCHEMA)]
    assert told == [
        '<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid',
        "spec.one.a: Required value",
    ]
    two = validate({"spec": {"must": True, "one": {"a": "", "b": ""}}}, SCHEMA)
    assert [error.detail for error in two] == [
        '"spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]


@pytest.mark.parametrize(
    "value", [{"null": None}, {"ios": 1}, {"ios": "50%"}, {"n": 2.0}, {"f": 1}, {"any": 7}, {"no": 2}]
)
def test_what_fits_is_left_in_peace(value: dict[str, Any]) -> None:
    assert validate({"spec": {"must": False, **value}}, SCHEMA) == []


def test_numbers_out_of_range_and_booleans_are_no_integers() -> None:
    (error,) = validate({"spec": {"must": True, "small": 1 << 31}}, SCHEMA)
    assert error.detail == "Checked value must be of type integer with format int32 in spec.small"
    (error,) = validate({"spec": {"must": True, "small": True}}, SCHEMA)
    assert error.detail == 'spec.small in body must be of type int32: ""'


def test_findings_that_spoil_rules() -> None:
    assert blocks_rules(validate({"spec": {}}, SCHEMA))
    assert not blocks_rules(validate({"spec": {"must": True, "n": 12}}, SCHEMA))


class TestLists:
    SCHEMA = compile_schema(
        {
            "type": "object",
            "properties": {
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a", "b"],
                    "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
                },
            },
        }
    )

    def test_a_set_names_each_repeated_item_once(self) -> None:
        errors = validate_lists({"set": ["x", "y", "x", "x"]}, self.SCHEMA)
        assert [str(error) for error in errors] == ['set[2]: Duplicate value: "x"']

    def test_items_of_a_map_are_told_apart_by_all_keys(self) -> None:
        items = [{"a": "x", "b": 1}, {"a": "x", "b": 2}, {"a": "x", "b": 1, "c": 3}]
        errors = validate_lists({"map": items}, self.SCHEMA)
        assert [str(error) for error in errors] == ['map[2]: Duplicate value: {"a":"x","b":1}']


def test_a_pattern_cannot_make_the_walk_hang() -> None:
    schema = compile_schema({"type": "string", "pattern": "^(a+)+$"})
    (error,) = validate("a" * 50_000 + "b", schema)
    assert error.reason.cause == "FieldValueInvalid"


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    bound = st.integers(-5, 5)
    number = st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": bound, "maximum": bound, "multipleOf": st.integers(1, 3)},
    )
    text = st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 3), "maxLength": st.integers(0, 3), "enum": st.just(["", "a", "bb"])},
    )
    return st.one_of(number, text, st.just({"type": "boolean"}))


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    def larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        listed = st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": st.integers(0, 2), "maxItems": st.integers(0, 3)},
        )
        fields = st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
        known = st.fixed_dictionaries(
            {"type": st.just("object"), "properties": fields},
            optional={
                "required": st.just(["a"]),
                "anyOf": st.just([{"required": ["a"]}, {"required": ["b"]}]),
                "oneOf": st.just([{"required": ["a"]}, {"required": ["b"]}]),
                "not": st.just({"required": ["a", "b"]}),
                "minProperties": st.integers(0, 1),
            },
        )
        free = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
        return st.one_of(listed, known, free)

    return st.recursive(scalars(), larger, max_leaves=8)


VALUES = st.recursive(
    st.one_of(st.integers(-6, 6), st.booleans(), st.sampled_from(["", "a", "bb", "cccc"]), st.just(1.5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)


@given(schemas(), VALUES)
@settings(deadline=None, max_examples=300)
def test_the_verdict_is_that_of_an_independent_validator(schema: dict[str, Any], value: Any) -> None:
    verdict = validate(value, compile_schema(schema)) == []
    assert verdict == jsonschema_rs.is_valid(schema, value), json.dumps([schema, value])


def test_a_value_that_is_not_there_is_shown_as_json_shows_it() -> None:
    assert str(RULES_NOT_CHECKED).startswith("<nil>: Invalid value: null: some validation rules were not checked")

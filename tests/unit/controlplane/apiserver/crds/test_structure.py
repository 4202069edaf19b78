"""What a structural schema is, and how its faults are told."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.controlplane.apiserver.crds.default_values import check_defaults
from flyball.controlplane.apiserver.crds.keywords import check_keywords
from flyball.controlplane.apiserver.crds.structure import check_structure


def field(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (OBJECT, []),
        ({}, ["s.type: Required value: must not be empty at the root"]),
        (field({}), ["s.properties[a].type: Required value: must not be empty for specified object fields"]),
        (field({"x-kubernetes-int-or-string": True}), []),
        (field({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}), []),
        (
            field(
                {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]}
            ),
            [],
        ),
        (field({"x-kubernetes-preserve-unknown-fields": True}), []),
        (
            field({"type": "array", "items": {}}),
            ["s.properties[a].items.type: Required value: must not be empty for specified array items"],
        ),
        (
            {**OBJECT, "additionalProperties": {"type": "string"}},
            ["s.additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            {**OBJECT, "anyOf": [{"properties": {"x": {"minLength": 1}}}]},
            ["s.properties[x]: Required value: because it is defined in s.anyOf[0].properties[x]"],
        ),
        (
            field({"type": "string", "not": {"description": "no"}}),
            ["s.properties[a].not.description: Forbidden: must be empty to be structural"],
        ),
        (
            field({"type": "string", "oneOf": [{"x-kubernetes-list-type": "set"}]}),
            ["s.properties[a].oneOf[0].x-kubernetes-list-type: Forbidden: must be undefined to be structural"],
        ),
        (
            {**OBJECT, "properties": {"kind": {"type": "integer"}}},
            ['s.properties[kind].type: Invalid value: "integer": must be string'],
        ),
        ({**OBJECT, "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}}, []),
    ],
)
def test_faults_of_structure(schema: dict[str, Any], told: list[str]) -> None:
    assert [str(error) for error in check_structure(schema, "s")] == told


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (field({"type": "text"}), ["s.properties[a].type: Unsupported value"]),
        (field({"type": "string", "$ref": "x"}), ["s.properties[a].$ref: Forbidden: $ref is not supported"]),
        (field({"type": "string", "x-kubernetes-list-type": "set"}), ["s.properties[a].type: Invalid value"]),
        (field({"x-kubernetes-map-type": "atomic"}), ["s.properties[a].type: Required value"]),
        (
            {**OBJECT, "properties": {"metadata": {"type": "object", "default": {}}}},
            ["s.properties[metadata].default: Forbidden: must not be set in top-level metadata"],
        ),
        (
            field({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": True}}),
            ["s.properties[a].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
        ),
        (field({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}), []),
    ],
)
def test_faults_of_keywords(schema: dict[str, Any], told: list[str]) -> None:
    found = [str(error) for error in check_keywords(schema, "s")]
    assert len(found) == len(told)
    assert all(one.startswith(words) for one, words in zip(found, told, strict=True))


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (field({"type": "integer", "default": 3}), []),
        (field({"type": "integer", "default": None}), []),
        (
            field({"type": "object", "default": {"x": {"y": "z"}}, "properties": {"x": {"type": "object"}}}),
            ['s.properties[a].default: Invalid value: {"x":{"y":"z"}}: must not have unknown fields'],
        ),
        (
            field({"type": "array", "items": {"type": "string"}, "default": [1]}),
            ['s.properties[a].default[0]: Invalid value: "integer": [0] in body must be of type string: "integer"'],
        ),
    ],
)
def test_faults_of_defaults(schema: dict[str, Any], told: list[str]) -> None:
    assert [str(error) for error in check_defaults(schema, "s")] == told

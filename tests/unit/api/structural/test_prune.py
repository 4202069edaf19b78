"""An object takes the shape of its schema: what the schema does not know goes, what it defaults comes."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flyball.api.structural import compile_schema, default, drop_nulls, prune

TEXT = {"type": "string"}


def schema(**properties: Any) -> Any:
    return compile_schema({"type": "object", "properties": properties})


def test_unknown_fields_go_and_are_named_by_path() -> None:
    value = {
        "apiVersion": "v1",
        "kind": "K",
        "metadata": {"name": "x", "anything": 1},
        "spec": {"known": "a", "list": [{"x": "1", "z": 1}], "lost": {"deep": 1}},
        "other": 1,
    }
    inner = {"type": "object", "properties": {"x": TEXT}}
    spec = {"type": "object", "properties": {"known": TEXT, "list": {"type": "array", "items": inner}}}
    assert prune(value, schema(spec=spec)) == ["other", "spec.list[0].z", "spec.lost"]
    assert value == {
        "apiVersion": "v1",
        "kind": "K",
        "metadata": {"name": "x", "anything": 1},
        "spec": {"known": "a", "list": [{"x": "1"}]},
    }


def test_preserving_keeps_the_unknown_and_prunes_inside_of_the_known() -> None:
    known = {"type": "object", "properties": {"x": TEXT}}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": known}}
    value: dict[str, Any] = {"spec": {"free": {"a": [1]}, "known": {"x": "", "y": ""}}}
    assert prune(value, schema(spec=spec)) == ["spec.known.y"]
    assert value == {"spec": {"free": {"a": [1]}, "known": {"x": ""}}}


def test_an_embedded_resource_keeps_its_type_and_metadata() -> None:
    template = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": TEXT}}
    value = {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}, "spec": "", "status": 1}}
    assert prune(value, schema(template=template)) == ["template.status"]
    assert value["template"].keys() == {"apiVersion", "kind", "metadata", "spec"}


def test_nulls_go_where_they_cannot_stand_and_become_defaults_where_there_is_one() -> None:
    spec = schema(
        plain=TEXT,
        nullable={**TEXT, "nullable": True},
        defaulted={**TEXT, "default": "d"},
        both={**TEXT, "nullable": True, "default": "d"},
    )
    value: dict[str, Any] = {"plain": None, "nullable": None, "defaulted": None, "both": None}
    drop_nulls(value, spec)
    assert value == {"nullable": None, "defaulted": None, "both": None}
    default(value, spec)
    assert value == {"nullable": None, "defaulted": "d", "both": None}


def test_defaults_fill_only_what_is_there_to_be_filled() -> None:
    inner = {"type": "object", "properties": {"x": {**TEXT, "default": "d"}}}
    spec = schema(made={**inner, "default": {}}, absent=inner, items={"type": "array", "items": inner})
    value: dict[str, Any] = {"items": [{}, {"x": "mine"}]}
    default(value, spec)
    assert value == {"made": {"x": "d"}, "items": [{"x": "d"}, {"x": "mine"}]}


def test_defaults_are_not_shared_between_objects() -> None:
    spec = schema(list={"type": "array", "items": TEXT, "default": ["a"]})
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    default(one, spec)
    default(other, spec)
    one["list"].append("b")
    assert other == {"list": ["a"]}


FIELDS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=2)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=3)),
    max_leaves=12,
)
NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {**TEXT, "default": "d"}, "c": {"type": "array", "items": TEXT}},
}
TREE = compile_schema({"type": "object", "properties": {"a": NODE, "b": {"type": "array", "items": NODE}}})


@given(st.dictionaries(FIELDS, VALUES, max_size=3))
def test_shaping_twice_changes_nothing_more(value: dict[str, Any]) -> None:
    for step in (prune, drop_nulls, default):
        step(value, TREE)
    once = copy.deepcopy(value)
    assert prune(value, TREE) == []
    drop_nulls(value, TREE)
    default(value, TREE)
    assert value == once


def test_references_of_built_in_kinds_are_followed_and_may_be_circular() -> None:
    definitions = {
        "Node": {"type": "object", "properties": {"next": {"allOf": [{"$ref": "#/x/Node"}], "default": {}}, "v": TEXT}},
        "Raw": {"type": "object"},
    }
    node = compile_schema(
        {"type": "object", "properties": {"n": {"$ref": "#/x/Node"}, "raw": {"$ref": "#/x/Raw"}}},
        resolve=definitions.__getitem__,
    )
    value: dict[str, Any] = {"n": {"v": "", "next": {"v": "", "lost": 1}}, "raw": {"anything": [1]}}
    assert prune(value, node) == ["n.next.lost"]
    assert value["raw"] == {"anything": [1]}

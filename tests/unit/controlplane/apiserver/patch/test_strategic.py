"""Strategic merge patch merges lists as their schema says."""

# ruff: noqa: E501 - a table reads best with a case per line

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.api.structural import compile_schema
from flyball.controlplane.apiserver.patch import MalformedPatch, PatchError, apply_strategic_patch


def listed(items: dict[str, Any], strategy: str = "", key: str = "") -> dict[str, Any]:
    marks = {"x-kubernetes-patch-strategy": strategy, "x-kubernetes-patch-merge-key": key}
    return {"type": "array", "items": items, **{name: value for name, value in marks.items() if value}}


TEXT = {"type": "string"}
PORT = {"type": "object", "properties": {"port": {"type": "integer"}, "name": TEXT}}
CONTAINER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "image": TEXT,
        "args": listed(TEXT),
        "ports": listed(PORT, "merge", "port"),
    },
}
SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "containers": listed(CONTAINER, "merge", "name"),
            "finalizers": listed(TEXT, "merge"),
            "plain": listed(TEXT),
            "volume": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys", "properties": {}},
            "swapped": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
            "labels": {"type": "object", "additionalProperties": TEXT},
        },
    }
)
A, B, C = {"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c", "image": "1"}

MERGED: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("maps merge and null removes", {"labels": {"x": "1", "y": "1"}}, {"labels": {"x": None, "z": "1"}}, {"labels": {"y": "1", "z": "1"}}),
    ("items merge by key", {"containers": [A, B]}, {"containers": [{"name": "b", "image": "2"}]}, {"containers": [A, {"name": "b", "image": "2"}]}),
    ("new items come first", {"containers": [A]}, {"containers": [B]}, {"containers": [B, A]}),
    ("an item is deleted by key", {"containers": [A, B]}, {"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": [B]}),
    ("a list is replaced on demand", {"containers": [A, B]}, {"containers": [{"$patch": "replace"}, C]}, {"containers": [C]}),
    ("a map is replaced on demand", {"labels": {"x": "1"}}, {"labels": {"$patch": "replace", "y": "1"}}, {"labels": {"y": "1"}}),
    ("a map is emptied on demand", {"labels": {"x": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}),
    ("a list without strategy is replaced", {"plain": ["a"]}, {"plain": ["b"]}, {"plain": ["b"]}),
    ("a map with strategy replace is replaced", {"swapped": {"x": 1}}, {"swapped": {"y": 1}}, {"swapped": {"y": 1}}),
    ("scalars merge as a set", {"finalizers": ["a", "b"]}, {"finalizers": ["b", "c"]}, {"finalizers": ["a", "b", "c"]}),
    ("scalars are taken out", {"finalizers": ["a", "b", "c"]}, {"$deleteFromPrimitiveList/finalizers": ["b"]}, {"finalizers": ["a", "c"]}),
    ("fields that are not retained go", {"volume": {"name": "v", "emptyDir": {}}}, {"volume": {"$retainKeys": ["name", "secret"], "secret": {}}}, {"volume": {"name": "v", "secret": {}}}),
    ("order is given", {"containers": [A, B, C]}, {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}, {"containers": [C, B, A]}),
    ("what only the server has keeps its place", {"containers": [A, B, C]}, {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}, {"containers": [B, C, A]}),
    ("order and content together", {"containers": [A, B]}, {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [C]}, {"containers": [C, A, B]}),
    ("order of scalars", {"finalizers": ["a", "b"]}, {"$setElementOrder/finalizers": ["c", "a"], "finalizers": ["c"]}, {"finalizers": ["c", "a", "b"]}),
    ("lists inside of items", {"containers": [{"name": "a", "ports": [{"port": 1}]}]}, {"containers": [{"name": "a", "ports": [{"port": 2}]}]}, {"containers": [{"name": "a", "ports": [{"port": 2}, {"port": 1}]}]}),
    ("nothing is left of directives that meet nothing", {}, {"containers": [{"name": "x", "$patch": "delete"}, A]}, {"containers": [A]}),
    ("null for nothing", {}, {"labels": None, "containers": None}, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "patch", "expected"), [case[1:] for case in MERGED], ids=[case[0] for case in MERGED]
)
def test_merging(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    before, asked = copy.deepcopy(document), copy.deepcopy(patch)
    assert apply_strategic_patch(document, patch, SCHEMA) == expected
    assert (document, patch) == (before, asked)


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"containers": [{"image": "2"}]}, "does not contain declared merge key: name"),
        ({"containers": [{"name": "a", "$patch": "merge"}]}, "cannot yet be specified"),
        ({"containers": [{"name": "a", "$patch": "burn"}]}, "unknown patch type: burn"),
        ({"labels": {"$patch": "burn"}}, "unknown patch type: burn"),
        ({"containers": ["x"]}, "expected a map"),
        ({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "z"}]}, "doesn't match"),
    ],
)
def test_what_cannot_be_merged_is_refused(patch: dict[str, Any], words: str) -> None:
    with pytest.raises(PatchError, match=words):
        apply_strategic_patch({"containers": [A], "labels": {}}, patch, SCHEMA)


def test_retaining_less_than_the_patch_sets_is_malformed() -> None:
    with pytest.raises(MalformedPatch, match="retainKeys"):
        apply_strategic_patch({"volume": {}}, {"volume": {"$retainKeys": ["a"], "b": 1}}, SCHEMA)


NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(NAMES, NAMES)
def test_an_order_holds_for_all_it_names_and_the_rest_keeps_its_own(present: list[str], order: list[str]) -> None:
    patch = {"$setElementOrder/containers": [{"name": name} for name in order]}
    document = {"containers": [{"name": name} for name in present]}
    merged = apply_strategic_patch(document, patch, SCHEMA)["containers"]
    names = [item["name"] for item in merged]
    assert sorted(names) == sorted(present)
    assert [name for name in names if name in order] == [name for name in order if name in present]
    assert [name for name in names if name not in order] == [name for name in present if name not in order]

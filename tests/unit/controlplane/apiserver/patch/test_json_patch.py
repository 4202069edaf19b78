"""JSON patch does what RFC 6902 says, all or nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.controlplane.apiserver.patch import MalformedPatch, PatchError, PatchTooLarge, apply_json_patch

DONE: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": 1}, [{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    ({"a": 1}, [{"op": "replace", "path": "/a", "value": None}], {"a": None}),
    ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
    ({"a/b": {"m~n": 1}}, [{"op": "replace", "path": "/a~1b/m~0n", "value": 2}], {"a/b": {"m~n": 2}}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
    ({"a": 1}, [{"op": "test", "path": "/none", "value": None}], {"a": 1}),
]

REFUSED: list[tuple[Any, list[dict[str, Any]]]] = [
    ({}, [{"op": "remove", "path": "/a"}]),
    ({}, [{"op": "add", "path": "/a/b", "value": 1}]),
    ({"a": [1]}, [{"op": "add", "path": "/a/5", "value": 1}]),
    ({"a": [1]}, [{"op": "replace", "path": "/a/x", "value": 1}]),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": True}]),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 2}]),
    ({"a": 1}, [{"op": "copy", "from": "/b", "path": "/c"}]),
    ({"a": {}}, [{"op": "move", "from": "/a", "path": "/a/b"}]),
    ({"a": 1}, [{"op": "frobnicate", "path": "/a"}]),
    ({"a": 1}, [{"op": "add"}]),
    ({"a": 1}, [{"op": ["add"], "path": "/a"}]),
]


@pytest.mark.parametrize(("document", "patch", "expected"), DONE)
def test_operations(document: Any, patch: list[dict[str, Any]], expected: Any) -> None:
    before = copy.deepcopy(document)
    assert apply_json_patch(document, patch) == expected
    assert document == before


@pytest.mark.parametrize(("document", "patch"), REFUSED)
def test_what_cannot_be_done_changes_nothing(document: Any, patch: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(document)
    with pytest.raises(PatchError):
        apply_json_patch(document, [{"op": "add", "path": "/first", "value": 1}, *patch])
    assert document == before


@pytest.mark.parametrize("patch", [{}, "x", [1], None])
def test_what_is_no_patch_is_malformed(patch: Any) -> None:
    with pytest.raises(MalformedPatch):
        apply_json_patch({}, patch)


def test_too_many_operations() -> None:
    with pytest.raises(PatchTooLarge, match=r"allowed maximum operations in a JSON patch is 10000, got 10001"):
        apply_json_patch({}, [{"op": "test", "path": "/a", "value": None}] * 10_001)


def test_unknown_members_are_named() -> None:
    unknown: list[str] = []
    apply_json_patch({}, [{"op": "add", "path": "/a", "value": 1, "foo": 1}], strict=unknown)
    assert unknown == ['json patch unknown field "[0].foo"']


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=10,
)


@given(JSON, JSON)
def test_any_patch_gives_an_answer_and_leaves_the_document(document: Any, patch: Any) -> None:
    before = copy.deepcopy(document)
    try:
        apply_json_patch(document, patch)
    except PatchError:
        return
    finally:
        assert document == before

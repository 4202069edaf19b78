"""What need not be applied again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flyball.controller.settled import Settled

CHILD = ("v1", "ConfigMap", "default", "a")
SENT: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"x": "1"}},
    "data": {"a": "1"},
    "spec": {"list": [{"n": 1}]},
}


def answer(**changes: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "uid": "u1", "resourceVersion": "5", "labels": {"x": "1", "theirs": "2"}},
        "data": {"a": "1", "theirs": "3"},
        "spec": {"list": [{"n": 1, "defaulted": True}], "other": 1},
        "status": {"ready": 1},
        **changes,
    }


def test_the_same_again_is_of_no_use_and_anything_else_is() -> None:
    settled = Settled()
    assert not settled.holds(CHILD, SENT, answer())
    settled.remember(CHILD, SENT, answer())
    assert settled.holds(CHILD, SENT, answer())
    assert settled.holds(CHILD, SENT, answer(status={"ready": 2}))  # not ours
    assert settled.holds(CHILD, SENT, answer(data={"a": "1", "theirs": "4"}))
    assert not settled.holds(CHILD, SENT, answer(data={"a": "2"}))
    assert not settled.holds(CHILD, SENT, answer(data={}))
    assert not settled.holds(CHILD, SENT, answer(spec={"list": [{"n": 1, "defaulted": False}]}))
    assert not settled.holds(CHILD, {**SENT, "data": {}}, answer())  # a field was given up
    assert not settled.holds(CHILD, SENT, answer(metadata={**answer()["metadata"], "uid": "u2"}))
    settled.forget(CHILD)
    assert not settled.holds(CHILD, SENT, answer())


values = st.recursive(
    st.one_of(st.integers(0, 2), st.sampled_from(["a", "b"]), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(objects, objects)
def test_no_change_of_a_field_that_was_sent_is_overlooked(sent: dict[str, Any], present: dict[str, Any]) -> None:
    settled = Settled()
    settled.remember(CHILD, sent, sent)
    if settled.holds(CHILD, sent, present):
        for name, value in sent.items():
            assert same(value, present.get(name))


def same(sent: Any, present: Any) -> bool:
    if isinstance(sent, dict) and isinstance(present, dict):
        return all(same(value, present.get(name)) for name, value in sent.items())  # pyright: ignore
    return bool(sent == present) and type(sent) is type(present)

"""Predicates look at what was and what is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.objects import cached

from flyball.cache import CacheEvent
from flyball.controller.predicates import (
    Predicate,
    all_of,
    annotations_changed,
    condition_changed,
    default_for,
    deletion_changed,
    everything,
    finalizers_changed,
    generation_changed,
    labels_changed,
    predicate,
    resource_version_changed,
    status_changed,
)

READY_MADE: list[Predicate] = [
    annotations_changed,
    default_for,
    deletion_changed,
    finalizers_changed,
    generation_changed,
    labels_changed,
    resource_version_changed,
    status_changed,
]


def updated(before: dict[str, Any], after: dict[str, Any]) -> CacheEvent:
    return CacheEvent("updated", cached(version="1", **before), cached(version="2", **after))


@pytest.mark.capability("C33")
@pytest.mark.parametrize(
    ("name", "before", "after", "holds"),
    [
        ("generation", {"generation": 1}, {"generation": 2}, {generation_changed, default_for}),
        ("labels", {"labels": {"a": "1"}, "generation": 1}, {"labels": {"a": "2"}, "generation": 1}, {labels_changed}),
        (
            "annotations",
            {"annotations": {"a": "1"}, "generation": 1},
            {"annotations": {"a": "2"}, "generation": 1},
            {annotations_changed, default_for},
        ),
        (
            "a first annotation",
            {"generation": 1},
            {"annotations": {"a": "2"}, "generation": 1},
            {annotations_changed, default_for},
        ),
        (
            "order",
            {"annotations": {"a": "1", "b": "2"}, "generation": 1},
            {"annotations": {"b": "2", "a": "1"}, "generation": 1},
            set(),
        ),
        ("status", {"status": {"a": 1}, "generation": 1}, {"status": {"a": 2}, "generation": 1}, {status_changed}),
        (
            "deletion",
            {"generation": 1},
            {"generation": 1, "deletionTimestamp": "2026-01-01T00:00:00Z"},
            {deletion_changed, default_for},
        ),
        (
            "finalizers",
            {"generation": 1, "finalizers": ["a/b", "a/c"]},
            {"generation": 1, "finalizers": ["a/b"]},
            {finalizers_changed, default_for},
        ),
        (
            "without generations",
            {"status": {}},
            {"status": {"a": 2}},
            {status_changed, generation_changed, default_for},
        ),
        ("nothing but the version", {"generation": 1}, {"generation": 1}, set()),
    ],
)
def test_what_each_one_sees(name: str, before: dict[str, Any], after: dict[str, Any], holds: set[Predicate]) -> None:
    event = updated(before, after)
    assert {one for one in READY_MADE if one(event)} == holds | {resource_version_changed}, name


@pytest.mark.parametrize(
    ("before", "after", "passes"),
    [
        ({}, {"conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, {"conditions": None}, True),
        (
            {"conditions": [{"type": "Ready", "status": "True"}]},
            {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True", "reason": "R"}]},
            False,
        ),
        ({"phase": "Pending"}, {"phase": "Running"}, False),
    ],
)
def test_the_truth_of_a_condition(before: dict[str, Any], after: dict[str, Any], passes: bool) -> None:
    ready = condition_changed("Ready")
    assert ready(updated({"status": before}, {"status": after})) is passes
    assert ready(CacheEvent("added", None, cached()))


@pytest.mark.parametrize("one", READY_MADE, ids=lambda one: one.name)
def test_made_and_deleted_objects_pass_and_repetitions_do_not(one: Predicate) -> None:
    obj = cached(generation=1)
    assert one(CacheEvent("added", None, obj))
    assert one(CacheEvent("deleted", obj, None))
    assert not one(CacheEvent("updated", obj, obj))
    assert everything(CacheEvent("updated", obj, obj))


versions = st.fixed_dictionaries(
    {
        "generation": st.integers(0, 2),
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
        "annotations": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
        "status": st.sampled_from([None, {"a": 1}, {"a": 2}]),
    }
)
leaves: st.SearchStrategy[Any] = st.sampled_from(range(len(READY_MADE)))
trees: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("&"), inner, inner), st.tuples(st.just("|"), inner, inner), st.tuples(st.just("~"), inner)
    ),
    max_leaves=6,
)


def built(tree: Any) -> Predicate:
    if isinstance(tree, int):
        return READY_MADE[tree]
    if tree[0] == "~":
        return ~built(tree[1])
    return built(tree[1]) & built(tree[2]) if tree[0] == "&" else built(tree[1]) | built(tree[2])


def meant(tree: Any, event: CacheEvent) -> bool:
    if isinstance(tree, int):
        return READY_MADE[tree](event)
    if tree[0] == "~":
        return not meant(tree[1], event)
    if tree[0] == "&":
        return meant(tree[1], event) and meant(tree[2], event)
    return meant(tree[1], event) or meant(tree[2], event)


@pytest.mark.capability("C33")
@given(trees, versions, versions)
def test_combinations_mean_what_they_say(tree: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
    event = updated(before, after)
    assert built(tree)(event) == meant(tree, event)
    assert built(tree)(CacheEvent("added", None, event.new))


def test_of_ones_own() -> None:
    @predicate
    def named_b(event: CacheEvent) -> bool:
        return event.object.name == "b"

    assert named_b(CacheEvent("added", None, cached("b")))
    assert not all_of([named_b, labels_changed])(CacheEvent("added", None, cached("a")))
    assert all_of([])(CacheEvent("added", None, cached("a")))
    assert repr(named_b & ~labels_changed) == "<predicate (named_b & ~labels changed)>"

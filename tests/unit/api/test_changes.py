"""Nothing is lost: what a class does not know survives every change that a program makes."""

from __future__ import annotations

import copy
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flyball.api import ListMapKeys, Model, Resource, Spec, Status, decode, difference, merged, to_dict
from flyball.api.changes import apply_merge_patch, merge_patch
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import Container, EnvVar, Toleration


class Item(Model):
    name: str | None = None
    value: int | None = None


class Bag(Model):
    value: int | None = None
    more: dict[str, str] | None = None


class ThingSpec(Spec):
    size: int | None = None
    note: str | None = None
    items: list[Item] | None = None
    bags: list[Bag] | None = None
    words: list[str] | None = None
    labels: dict[str, str] | None = None
    bag: Bag | None = None


class ThingStatus(Status):
    ready: int = 0


class Thing(Resource, group="example.org", version="v1"):
    spec: ThingSpec
    status: ThingStatus


DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z", "future": 1, "managedFields": [{"x": 1}]},
    "spec": {
        "replicas": 1,
        "future": {"x": 1},
        "template": {
            "metadata": {"creationTimestamp": None},
            "spec": {
                "containers": [
                    {"name": "a", "future": 1, "env": [{"name": "X", "value": "1", "future": 2}]},
                    {"name": "b", "future": 2, "ports": [{"containerPort": 80, "future": 3}]},
                ],
                "tolerations": [
                    {"key": "k", "operator": "Exists", "effect": "NoExecute", "future": 4},
                    {"key": "l", "operator": "Exists", "effect": "NoSchedule", "future": 5},
                ],
            },
        },
    },
    "status": {"replicas": 1, "future": 6},
}


def read(value: dict[str, Any] | None = None) -> Deployment:
    return decode(Deployment, msgspec.json.encode(value or DEPLOYMENT))


def containers(deployment: Deployment) -> list[Container]:
    assert deployment.spec.template.spec is not None
    return deployment.spec.template.spec.containers


def test_nothing_changed_is_nothing_sent() -> None:
    assert difference(read()) == {}
    assert merged(read()) == DEPLOYMENT


def test_one_field_is_one_field() -> None:
    deployment = read()
    deployment.spec.replicas = 3
    deployment.metadata.labels["a"] = "b"
    assert difference(deployment) == {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 3}}


def test_a_field_that_is_taken_away_is_null_in_the_patch() -> None:
    deployment = read()
    deployment.status.replicas = None
    assert difference(deployment) == {"status": {"replicas": None}}
    assert merged(deployment)["status"] == {"future": 6}


def test_items_keep_their_unknown_fields_when_others_come_and_go() -> None:
    deployment = read()
    found = containers(deployment)
    found.reverse()
    found.insert(0, Container(name="new"))
    found[1].image = "changed"
    assert difference(deployment)["spec"]["template"]["spec"]["containers"] == [
        {"name": "new"},
        {"name": "b", "future": 2, "image": "changed", "ports": [{"containerPort": 80, "future": 3}]},
        {"name": "a", "future": 1, "env": [{"name": "X", "value": "1", "future": 2}]},
    ]
    del found[1]
    assert [item["name"] for item in merged(deployment)["spec"]["template"]["spec"]["containers"]] == ["new", "a"]


def test_lists_in_lists() -> None:
    deployment = read()
    env = containers(deployment)[0].env
    assert env is not None
    env.insert(0, EnvVar(name="W", value="0"))
    env[1].value = "2"
    assert merged(deployment)["spec"]["template"]["spec"]["containers"][0]["env"] == [
        {"name": "W", "value": "0"},
        {"name": "X", "value": "2", "future": 2},
    ]


def test_items_without_a_name_are_known_by_what_they_have_in_common() -> None:
    deployment = read()
    assert deployment.spec.template.spec is not None
    tolerations = deployment.spec.template.spec.tolerations
    assert tolerations is not None
    tolerations.insert(0, Toleration(operator="Exists"))
    tolerations[1].effect = "NoSchedule"
    assert merged(deployment)["spec"]["template"]["spec"]["tolerations"] == [
        {"operator": "Exists"},
        {"key": "k", "operator": "Exists", "effect": "NoSchedule", "future": 4},
        {"key": "l", "operator": "Exists", "effect": "NoSchedule", "future": 5},
    ]


class Slot(Model):
    slot: int
    shelf_number: int
    value: int | None = None


class ShelfSpec(Spec):
    slots: Annotated[list[Slot], ListMapKeys("shelf_number", "slot")] | None = None


class Shelf(Resource, group="example.org", version="v1"):
    spec: ShelfSpec


def test_lists_with_keys_of_ones_own() -> None:
    slots = [
        {"slot": 1, "shelfNumber": 1, "value": 0, "x": 1},
        {"slot": 1, "shelfNumber": 2, "value": 0, "x": 2},
        {"slot": 2, "shelfNumber": 1, "value": 0, "x": 3},
    ]
    shelf = decode(Shelf, msgspec.json.encode({"metadata": {"name": "a"}, "spec": {"slots": slots}}))
    assert shelf.spec.slots is not None
    shelf.spec.slots = [shelf.spec.slots[2], shelf.spec.slots[1]]
    for slot in shelf.spec.slots:
        slot.value = 9
    assert merged(shelf)["spec"]["slots"] == [{**slots[2], "value": 9}, {**slots[1], "value": 9}]


def test_the_spelling_of_the_server_stays() -> None:
    value = copy.deepcopy(DEPLOYMENT)
    value["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05.000Z"
    deployment = read(value)
    deployment.spec.replicas = 2
    assert merged(deployment)["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05.000Z"
    assert merged(deployment)["spec"]["template"]["metadata"] == {"creationTimestamp": None}


def test_a_status_set_back_to_its_default_is_still_a_change() -> None:
    thing = decode(Thing, b'{"metadata":{"name":"a"},"status":{"ready":3,"future":1}}')
    thing.status.ready = 0
    assert difference(thing) == {"status": {"ready": 0}}
    thing.spec = ThingSpec()
    thing.status = ThingStatus()
    assert merged(thing)["status"] == {"ready": 0, "future": 1}


def test_an_emptied_part_loses_only_what_is_known() -> None:
    thing = decode(Thing, b'{"metadata":{"name":"a"},"spec":{"size":3,"future":1,"bag":{"value":1,"future":2}}}')
    thing.spec.size = None
    assert thing.spec.bag is not None
    thing.spec.bag.value = None
    assert difference(thing) == {"spec": {"size": None, "bag": {"value": None}}}


def test_an_object_that_was_not_read_is_all_that_it_says() -> None:
    thing = Thing.new("a", spec=ThingSpec(size=1))
    assert difference(thing) == merged(thing) == to_dict(thing)


def test_misfits_stay() -> None:
    thing = decode(Thing, b'{"metadata":{"name":"a"},"spec":{"size":"huge","items":[{"name":"a","value":null,"z":1}]}}')
    thing.spec.note = "n"
    assert difference(thing) == {"spec": {"note": "n"}}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": [1]}, {"a": [True]}, {"a": [True]}),
        ({"a": 1}, {"a": 1.0}, {"a": 1.0}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": None}, {}, {"a": None}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": {}}, {"a": {}}, {}),
    ],
)
def test_merge_patches(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert msgspec.json.encode(merge_patch(old, new)) == msgspec.json.encode(patch)
    assert apply_merge_patch(old, patch) == new


# -- properties: objects as a server may hold them, changed as a program may change them -------------------------------

unknown = st.dictionaries(
    st.sampled_from(["x", "y"]), st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2), max_size=2
)


def with_unknown(known: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda a, b: {**a, **b}, st.fixed_dictionaries({}, optional=known), unknown)


names = st.sampled_from("abcde")
numbers = st.integers(0, 3)
item = with_unknown({"value": numbers})
items = st.lists(st.tuples(names, item), max_size=4, unique_by=lambda pair: pair[0]).map(
    lambda pairs: [{"name": name, **rest} for name, rest in pairs]
)
bag = with_unknown({"value": numbers, "more": st.dictionaries(names, names, max_size=2)})
spec = with_unknown(
    {
        "size": numbers,
        "note": names,
        "items": items,
        "bags": st.lists(bag, max_size=4),
        "words": st.lists(names, max_size=3),
        "labels": st.dictionaries(names, names, max_size=3),
        "bag": bag,
    }
)


def thing_of(spec: dict[str, Any]) -> Thing:
    return decode(Thing, msgspec.json.encode({"metadata": {"name": "a", "x": 1}, "spec": spec}))


@settings(deadline=None)
@given(spec, spec)
def test_the_result_is_what_the_program_says_and_unknown_fields_stay(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    thing, wanted = thing_of(before), thing_of(after)
    thing.spec = wanted.spec
    result, patch = merged(thing), difference(thing)
    received = {"metadata": {"name": "a", "x": 1}, "spec": before}
    assert decode(Thing, msgspec.json.encode(result)).spec == wanted.spec
    assert apply_merge_patch(received, patch) == result
    assert result["metadata"] == received["metadata"]
    for key in before.keys() & {"x", "y"}:
        assert result["spec"][key] == before[key]


@settings(deadline=None)
@given(items, st.permutations(range(4)), st.sets(st.integers(0, 3)), st.integers(0, 4))
def test_named_items_keep_all_they_had(
    before: list[dict[str, Any]], order: list[int], removed: set[int], place: int
) -> None:
    thing = thing_of({"items": before})
    assert thing.spec.items is not None
    kept = [index for index in order if index < len(before) and index not in removed]
    thing.spec.items = [thing.spec.items[index] for index in kept]
    thing.spec.items.insert(place, Item(name="new", value=1))
    expected = [before[index] for index in kept]
    expected.insert(place, {"name": "new", "value": 1})
    assert merged(thing)["spec"]["items"] == expected


@settings(deadline=None)
@given(
    st.lists(bag, max_size=4, unique_by=lambda each: msgspec.json.encode({**each, "x": 0, "y": 0}, order="sorted")),
    st.permutations(range(4)),
)
def test_items_without_names_keep_all_they_had_in_any_order(before: list[dict[str, Any]], order: list[int]) -> None:
    thing = thing_of({"bags": before})
    assert thing.spec.bags is not None
    kept = [index for index in order if index < len(before)]
    thing.spec.bags = [thing.spec.bags[index] for index in kept]
    assert merged(thing)["spec"]["bags"] == [before[index] for index in kept]

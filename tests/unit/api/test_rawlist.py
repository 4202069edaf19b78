"""The raw form: bytes as received less managedFields, and a record of the metadata."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.api.rawlist import Owner, RawObject, RawReader

FIELDS = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_list_keeps_what_it_says_of_itself() -> None:
    meta = {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}
    found = RawReader().list(compact({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": []}))
    assert (found.api_version, found.kind, found.resource_version) == ("v1", "PodList", "7")
    assert (found.continue_, found.remaining, found.items) == ("more", 3, [])


def test_items_are_bytes_and_records() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    metadata = {
        "name": "a",
        "namespace": "b",
        "uid": "c",
        "resourceVersion": "5",
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "labels": {"app": "web"},
        "finalizers": ["f"],
        "ownerReferences": [owner],
    }
    item = {"metadata": metadata, "spec": {"x": 1}}
    (found,) = RawReader().list(compact({"items": [item]})).items
    assert found.data == compact(item)
    assert found.owners == (Owner("v1", "Node", "n", "u", True),)
    assert (found.name, found.namespace, found.uid, found.resource_version) == ("a", "b", "c", "5")
    assert (found.generation, dict(found.labels), found.finalizers) == (2, {"app": "web"}, ["f"])
    assert found.deletion_timestamp == "2026-01-02T00:00:00Z"


def test_objects_do_not_keep_the_list_alive() -> None:
    item = {"metadata": {"labels": {"a": "b"}, "ownerReferences": [{"name": "n"}], "managedFields": FIELDS}}
    body = bytearray(compact({"items": [item]}))
    kept = RawReader().list(bytes(body)).items
    assert [type(getattr(kept[0], name)) for name in RawObject.__struct_fields__].count(msgspec.Raw) == 0
    assert type(kept[0].data) is bytes


def test_equal_labels_and_owners_are_shared_and_cannot_be_changed() -> None:
    item = {"metadata": {"labels": {"app": "web"}, "ownerReferences": [{"name": "n"}]}}
    first, second = RawReader().list(compact({"items": [item, item]})).items
    assert first.labels is second.labels
    assert first.owners is second.owners
    with pytest.raises(TypeError):
        first.labels["app"] = "other"  # type: ignore[index] # pyright: ignore


@pytest.mark.parametrize(
    "text",
    [
        '{"metadata":{"managedFields":%s}}',
        '{"metadata":{"name":"a","managedFields":%s}}',
        '{"metadata":{"managedFields":%s,"name":"a"}}',
        '{"metadata":{"name":"a","managedFields":%s,"uid":"u"},"spec":{}}',
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":%s}}',
        '{"spec":{"template":{"metadata":{"managedFields":%s}}},"metadata":{"managedFields":%s}}',
        '{"metadata":{"annotations":{"a":"\\"managedFields\\":[]"},"managedFields":%s}}',
        '{"metadata":{"labels":{"managedFields":"x"},"managedFields":%s}}',
        '{ "metadata" : { "name" : "a" , "managedFields" : %s } }',
        '{"metadata":{"name":"a", "managedFields":%s }}',
        '{"metadata":{"name":"a", "managedFields":%s, "uid":"u"}}',
    ],
)
def test_managed_fields_are_cut_out_of_the_metadata_only(text: str) -> None:
    fields = json.dumps(FIELDS, separators=(",", ":"))
    body = text.replace("%s", fields).encode()
    wanted = json.loads(body)
    del wanted["metadata"]["managedFields"]
    assert json.loads(RawReader().object(body).data) == wanted
    assert RawReader(keep_managed_fields=True).object(body).data == body


def test_what_is_left_is_byte_for_byte_what_was_received() -> None:
    head, tail = b'{"metadata":{"name":"\xc3\xa4\\u00e4"', b',"uid":"u"},"spec":{"n":1.50,"big":12345678901234567890}}'
    assert RawReader().object(head + b',"managedFields":' + compact(FIELDS) + tail).data == head + tail


@pytest.mark.parametrize("name", ["items", "metadata"])
def test_null_is_accepted(name: str) -> None:
    assert RawReader().list(compact({"items": [], "metadata": {}, name: None})).items == []


def test_null_is_accepted_in_metadata() -> None:
    metadata = dict.fromkeys(["name", "labels", "finalizers", "ownerReferences", "generation", "managedFields"])
    found = RawReader().object(compact({"metadata": metadata}))
    del metadata["managedFields"]
    assert json.loads(found.data) == {"metadata": metadata}
    assert (found.name, found.generation, dict(found.labels), found.owners) == ("", 0, {}, ())


def test_what_is_no_list_is_refused() -> None:
    for body in (b"<html>", b"[]", b""):
        with pytest.raises(msgspec.DecodeError):
            RawReader().list(body)


keys = st.sampled_from(["a", "managedFields", "metadata"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8) | st.just('"managedFields":[]'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "managedFields", "metadata"]), inner)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["apiVersion", "spec", "status"]), values), values, st.booleans(), st.booleans())
def test_cutting_equals_deleting(parts: dict[str, Any], fields: Any, last: bool, pretty: bool) -> None:
    metadata = {"name": "a", "managedFields": fields, "uid": "u"} if last else {"name": "a", "managedFields": fields}
    item = {**parts, "metadata": metadata} if last else {"metadata": metadata, **parts}
    body = json.dumps(item, indent=1).encode() if pretty else compact(item)
    wanted = json.loads(body)
    del wanted["metadata"]["managedFields"]
    assert json.loads(RawReader().object(body).data) == wanted

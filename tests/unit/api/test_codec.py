"""From bytes to objects and back: everything is readable, nothing is invented."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from flyball.api import (
    DynamicObject,
    ObjectMeta,
    Quantity,
    Resource,
    Spec,
    Status,
    decode,
    encode,
    from_dict,
    origin,
    to_dict,
)
from flyball.k8s.core.v1 import Container, Pod, PodSpec, ResourceRequirements, Secret


class BoxSpec(Spec):
    size: int = 1
    memory: Quantity = Quantity("1Gi")


class BoxStatus(Status):
    ready: int = 0


class Box(Resource, group="example.org", version="v1"):
    spec: BoxSpec
    status: BoxStatus


RAW = b'{"kind":"Box","metadata":{"name":"a"},"spec":{"size":2,"unknown":1},"status":{"ready":0}}'


def test_the_bytes_stay_with_the_object() -> None:
    box = decode(Box, RAW)
    assert origin(box) == RAW
    assert origin(decode(Box, bytearray(RAW))) == RAW
    assert origin(decode(Box, memoryview(RAW))) == RAW
    assert origin(Box.new("x")) is None
    assert origin(copy.deepcopy(box)) is None
    assert origin(ObjectMeta()) is None


def test_the_kind_is_filled_in_where_a_list_leaves_it_out() -> None:
    box = decode(Box, b'{"metadata":{"name":"a"}}')
    assert (box.api_version, box.kind) == ("example.org/v1", "Box")


def test_a_status_that_was_read_is_written_also_when_it_is_the_default() -> None:
    assert b'"status":{"ready":0}' in encode(decode(Box, RAW))
    assert b"status" not in encode(Box.new("x"))


def test_plain_values_lists_and_maps() -> None:
    box = Box.new("x")
    assert encode([box, 1, None]) == b"[" + encode(box) + b",1,null]"
    assert encode({"a": [box]}) == b'{"a":[' + encode(box) + b"]}"
    assert encode(Quantity("1Gi")) == b'"1Gi"'
    assert decode(list[Box], b"[" + RAW + b"]")[0].spec.size == 2
    assert decode(dict[str, int], b'{"a":1}') == {"a": 1}


def test_dicts_both_ways() -> None:
    box = from_dict(Box, {"metadata": {"name": "a"}, "spec": {"size": 3}})
    assert to_dict(box)["spec"] == {"size": 3, "memory": "1Gi"}
    assert from_dict(DynamicObject, {"kind": "Box"}).kind == "Box"


def test_quantities_of_built_in_kinds_are_text_until_looked_at_and_take_both() -> None:
    container = Container(name="a", resources=ResourceRequirements(requests={"cpu": Quantity("1"), "memory": "1Gi"}))
    raw = encode(container)
    assert b'"requests":{"cpu":"1","memory":"1Gi"}' in raw
    read = decode(Container, raw).resources
    assert read is not None
    assert read.requests == {"cpu": "1", "memory": "1Gi"}
    assert decode(ResourceRequirements, b'{"requests":{"cpu":0.5,"memory":1}}').requests == {"cpu": 0.5, "memory": 1}


def test_secrets_are_bytes() -> None:
    secret = Secret.new("s", data={"a": b"\x00\xff"})
    assert b'"data":{"a":"AP8="}' in encode(secret)
    assert decode(Secret, encode(secret)).data == {"a": b"\x00\xff"}


def test_what_is_no_json_is_an_error() -> None:
    for raw in (b"", b"{", b"<html>", b'{"a":1}x'):
        with pytest.raises(msgspec.DecodeError):
            decode(Box, raw)


def test_managed_fields_are_decoded_when_asked_for() -> None:
    meta = decode(
        ObjectMeta,
        b'{"managedFields":[{"manager":"m","operation":"Apply","time":"2026-01-02T03:04:05Z","fieldsV1":{"f:x":{}}}]}',
    )
    [entry] = meta.managers()
    assert (entry.manager, entry.operation) == ("m", "Apply")
    assert bytes(entry.fields_v1) == b'{"f:x":{}}'
    assert ObjectMeta().managers() == []
    assert decode(ObjectMeta, b'{"managedFields":null}').managers() == []
    assert b"managedFields" in encode(meta)


def test_empty_metadata_is_not_sent() -> None:
    assert encode(ObjectMeta(name="a")) == b'{"name":"a"}'
    assert encode(ObjectMeta(name="a", labels={"x": "y"})) == b'{"name":"a","labels":{"x":"y"}}'


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"spec": {"containers": None}}, lambda pod: pod.spec.containers == []),
        ({"spec": {"containers": "x"}}, lambda pod: pod.spec.containers == "x"),
        ({"spec": {"priority": "high"}}, lambda pod: pod.spec.priority == "high"),
        ({"spec": {"priority": 2**70}}, lambda pod: pod.spec.priority == 2**70),
        ({"spec": None}, lambda pod: pod.spec == PodSpec()),
        ({"metadata": {"name": "a", "labels": None}}, lambda pod: pod.metadata.labels == {}),
        ({"metadata": {"name": None}}, lambda pod: pod.metadata.name == ""),
        ({"metadata": {"creationTimestamp": "yesterday"}}, lambda pod: pod.metadata.creation_timestamp == "yesterday"),
        (
            {"metadata": {"generation": 1.5, "uid": "u"}},
            lambda pod: (pod.metadata.generation, pod.metadata.uid) == (1.5, "u"),
        ),
        (
            {
                "spec": {
                    "containers": [
                        {"name": "a"},
                        {"name": 3, "ports": [{"containerPort": "x", "protocol": "TCP"}]},
                        None,
                    ]
                }
            },
            lambda pod: (
                [type(c).__name__ for c in pod.spec.containers] == ["Container", "Container", "NoneType"]
                and pod.spec.containers[1].ports[0].protocol == "TCP"
            ),
        ),
    ],
)
def test_whatever_a_server_stores_is_readable(part: dict[str, Any], expected: Any) -> None:
    raw = msgspec.json.encode({"metadata": {"name": "kept"}, **part})
    pod = decode(Pod, raw)
    assert expected(pod)
    assert origin(pod) == raw


def test_enumerations_of_a_newer_version_are_readable() -> None:
    from tests.support.everything import Everything

    thing: Any = from_dict(
        Everything,
        {"spec": {"color": "violet", "level": 9, "timeout": "long", "memory": "much", "name": "a", "opaque": [1]}},
    )
    assert (thing.spec.color, thing.spec.level, thing.spec.name) == ("violet", 9, "a")
    assert (thing.spec.timeout, thing.spec.memory) == ("long", "much")
    assert to_dict(thing)["spec"]["opaque"] == [1]


def test_times_of_the_server() -> None:
    meta = decode(ObjectMeta, b'{"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":null}')
    assert meta.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, 0, UTC)
    assert encode(meta) == b'{"creationTimestamp":"2026-01-02T03:04:05Z"}'

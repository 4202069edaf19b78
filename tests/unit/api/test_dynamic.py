"""Objects without a class."""

from __future__ import annotations

from flyball.api import DynamicObject, PartialObjectMetadata, decode, encode, origin, to_dict
from flyball.api.changes import difference, merged

RAW = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"u","labels":null},"x":[1]}'


def test_names_are_read_and_written_through_the_metadata() -> None:
    pod = decode(DynamicObject, RAW)
    assert (pod.api_version, pod.kind) == ("v1", "Pod")
    assert (pod.metadata.name, pod.metadata.namespace, pod.metadata.uid) == ("a", "b", "u")
    assert (pod.metadata.resource_version, pod.metadata.generation, pod.metadata.deletion_timestamp) == ("", 0, None)
    pod.metadata.labels["k"] = "v"
    pod.metadata.finalizers.append("f")
    pod.metadata.name, pod.metadata.resource_version = "c", "3"
    pod.metadata.namespace = None
    assert pod["metadata"]["labels"] == {"k": "v"}
    assert pod["metadata"]["finalizers"] == ["f"]
    assert (pod.metadata.name, pod.metadata.namespace, pod.metadata.resource_version) == ("c", None, "3")
    assert pod.metadata.annotations == {}
    assert pod.metadata.owner_references == []


def test_an_empty_object_has_no_names() -> None:
    nothing = DynamicObject()
    assert (nothing.api_version, nothing.kind, nothing.metadata.name) == ("", "", "")
    nothing.metadata.name = "x"
    assert nothing == {"metadata": {"name": "x"}}
    assert repr(nothing) == "<DynamicObject x>"
    assert repr(decode(DynamicObject, RAW)) == "<Pod b/a>"


def test_changes_are_found() -> None:
    pod = decode(DynamicObject, RAW)
    assert origin(pod) == RAW
    assert difference(pod) == {}
    pod["x"] = [1, 2]
    del pod["metadata"]["uid"]
    assert difference(pod) == {"metadata": {"uid": None}, "x": [1, 2]}
    assert merged(pod) == to_dict(pod) == dict(pod)
    assert encode(pod) == encode(dict(pod))


def test_metadata_only() -> None:
    read = decode(PartialObjectMetadata, RAW)
    assert (read.kind, read.metadata.name) == ("Pod", "a")
    read.metadata.labels["k"] = "v"
    assert difference(read) == {"metadata": {"labels": {"k": "v"}}}

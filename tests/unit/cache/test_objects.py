from __future__ import annotations

import pytest
from tests.support.cached import WIDGETS, cached
from tests.support.scripted import ScriptedTransport
from tests.support.widgets import Widget

from flyball.api import encode
from flyball.api.rawlist import RawReader
from flyball.cache import CachedObject
from flyball.cache.objects import is_newer, key_of
from flyball.client import Client, RefusedRequest, dynamic, metadata_of
from flyball.k8s.core.v1 import Pod


def test_each_reader_gets_an_object_of_its_own() -> None:
    held = cached("a", 7, labels={"x": "1"}, spec={"size": 3, "unknown": True})
    one, two = held.decode(Widget), held.decode(Widget)
    one.spec.size = 9
    one.metadata.labels["x"] = "2"
    assert two.spec.size == 3
    assert held.decode(Widget).metadata.labels == {"x": "1"}
    assert b'"unknown":true' in held.raw


def test_one_version_is_read_in_every_form() -> None:
    held = cached("a", 7)
    assert held.decode(dynamic("example.org/v1", "Widget"))["spec"] == {"size": 1}
    assert held.decode(WIDGETS).kind == "Widget"
    assert held.decode(metadata_of(Widget)).metadata.resource_version == "7"
    assert (held.name, held.namespace, held.uid, held.resource_version) == ("a", "ns", "uid-a", "7")
    assert repr(held) == "<Widget ns/a at 7>"


@pytest.mark.parametrize("text", [b'{"metadata":{"name":"p"},"spec":{}}', b'{"spec":{},"metadata":{"name":"p"}}'])
def test_names_that_a_list_left_out_are_put_back(text: bytes) -> None:
    record = RawReader().object(text)
    held = CachedObject(key_of(record), record, Pod.resource_type)
    assert held.key == (None, "p")
    assert held.plain()["kind"] == "Pod"
    assert held.decode(dynamic("v1", "Pod")).api_version == "v1"
    assert b'"kind":"Pod"' in encode(held.decode(Pod))


async def test_what_is_not_whole_cannot_be_put_back() -> None:
    whole = cached("a", 7)
    part = CachedObject(whole.key, whole.record, whole.resource, whole=False)
    client = Client(transport=ScriptedTransport())
    with pytest.raises(RefusedRequest, match="was not read from the server"):
        await client.update(part.decode(Widget))


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [("2", "1", True), ("10", "9", True), ("9", "10", False), ("5", "5", False), ("a", "5", None), ("", "5", None)],
)
def test_versions_are_compared_as_numbers(one: str, other: str, newer: bool | None) -> None:
    assert is_newer(one, other) is newer

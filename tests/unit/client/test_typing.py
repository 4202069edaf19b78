"""What the type checkers make of the client: `assert_type` holds them to it whenever the tests are linted."""

from __future__ import annotations

from typing import assert_type

from tests.support.fakeapi import FakeApi
from tests.support.widgets import Widget

from flyball.api import DynamicObject, PartialObjectMetadata
from flyball.client import Client, ListResult, MergePatch, WatchEvent, dynamic, metadata_of, raw_of, ref
from flyball.k8s.core.v1 import ConfigMap
from flyball.sync import Client as Synchronous


async def test_the_answer_has_the_type_of_the_question() -> None:
    async with Client(transport=FakeApi(), field_manager="me") as client:
        assert_type(await client.apply(Widget.new("w")), Widget)
        widget = await client.get(Widget, "w")
        assert_type(widget, Widget)
        assert_type(widget.spec.size, int)
        assert_type(await client.get(dynamic("example.org/v1", "Widget"), "w"), DynamicObject)
        assert_type(await client.get(Widget.resource_type, "w"), DynamicObject)
        assert_type(await client.get(metadata_of(Widget), "w"), PartialObjectMetadata)
        assert_type(await client.get(raw_of(Widget), "w"), bytes)
        assert_type(await client.list(Widget), ListResult[Widget])
        assert_type(await client.list(metadata_of(Widget)), ListResult[PartialObjectMetadata])
        async for item in client.list(Widget):
            assert_type(item, Widget)
        async for change in client.watch(Widget):
            assert_type(change, WatchEvent[Widget])
            break
        assert_type(await client.patch(ref(Widget, "w"), MergePatch({})), Widget)
        assert_type(await client.patch(widget, guard=False), Widget)
        assert_type(await client.delete(ConfigMap, "none", missing_ok=True), ConfigMap | None)
        assert_type(await client.delete(Widget, "w"), Widget | None)
        assert_type(await client.delete_collection(Widget), ListResult[Widget])


def test_so_does_the_synchronous_front() -> None:
    with Synchronous(transport=FakeApi(), field_manager="me") as client:
        assert_type(client.create(Widget.new("w")), Widget)
        assert_type(client.get(Widget, "w"), Widget)
        assert_type(client.list(metadata_of(Widget)), ListResult[PartialObjectMetadata])
        for item in client.iterate(Widget):
            assert_type(item, Widget)

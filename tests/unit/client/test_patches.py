from __future__ import annotations

import pytest

from flyball.client.patches import JsonPatch, MergePatch, StrategicPatch


def test_each_patch_has_its_content_type() -> None:
    assert [kind.content_type for kind in (JsonPatch, MergePatch, StrategicPatch)] == [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ]


@pytest.mark.parametrize("kind", [MergePatch, StrategicPatch])
def test_a_guard_is_the_version_in_the_document(kind: type[MergePatch] | type[StrategicPatch]) -> None:
    given = {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}
    assert kind(given).guarded("7").content() == {
        "metadata": {"labels": {"a": "b"}, "resourceVersion": "7"},
        "spec": {"x": 1},
    }
    assert given["metadata"] == {"labels": {"a": "b"}}
    assert kind({}).guarded("7").content() == {"metadata": {"resourceVersion": "7"}}


def test_a_guard_of_operations_comes_first() -> None:
    patch = JsonPatch([{"op": "remove", "path": "/spec/x"}])
    assert patch.guarded("7").content() == [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "remove", "path": "/spec/x"},
    ]

from __future__ import annotations

from typing import Any

import pytest
from tests.support.widgets import Plain, Widget

from flyball.api import DynamicObject, PartialObjectMetadata, ResourceType
from flyball.client.kinds import (
    GroupVersionKind,
    Kind,
    address,
    dynamic,
    kind_from,
    kind_of,
    metadata_of,
    raw_of,
    ref,
    ref_of,
    resource_type_of,
)
from flyball.client.refusals import RefusedRequest, UnregisteredKind
from flyball.k8s.core.v1 import Namespace

WIDGETS = Widget.resource_type
RAW = (
    b'{"apiVersion":"example.org/v1","kind":"Widget",'
    b'"metadata":{"name":"w","namespace":"n","uid":"u","resourceVersion":"7"}}'
)


@pytest.mark.capability("C1")
def test_each_form_reads_the_same_bytes_in_its_way() -> None:
    forms: list[Kind[Any]] = [
        kind_from(Widget),
        kind_from(dynamic("example.org/v1", "Widget")),
        kind_from(WIDGETS),
        metadata_of(Widget),
        raw_of(Widget),
    ]
    read = [form.read(RAW, WIDGETS) for form in forms]
    assert [type(obj) for obj in read] == [Widget, DynamicObject, DynamicObject, PartialObjectMetadata, bytes]
    assert {form.word for form in forms} == {"Widget"}
    assert [obj.metadata.name for obj in read[:4]] == ["w"] * 4
    assert read[4] == RAW


def test_metadata_only_objects_have_the_kind_of_the_whole() -> None:
    raw = b'{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"w"}}'
    found = metadata_of(dynamic("example.org/v1", "Widget")).read(raw, WIDGETS)
    assert (found.api_version, found.kind) == ("example.org/v1", "Widget")
    assert kind_of(found).source == GroupVersionKind("example.org/v1", "Widget")
    assert "PartialObjectMetadata" in metadata_of(Widget).accept
    assert "PartialObjectMetadataList" in metadata_of(Widget).list_accept
    assert raw_of(metadata_of(Widget)).accept == metadata_of(Widget).accept


def test_objects_lead_back_to_their_kind() -> None:
    assert kind_of(Widget.new("w")).source == WIDGETS
    assert kind_of(DynamicObject(apiVersion="v1", kind="Pod")).source == GroupVersionKind("v1", "Pod")
    with pytest.raises(RefusedRequest, match=r"no apiVersion"):
        kind_of(DynamicObject(kind="Pod"))


@pytest.mark.parametrize("cls", [Plain, dict, str])
def test_a_class_that_is_no_kind_is_refused_with_the_remedy(cls: type[Any]) -> None:
    with pytest.raises(UnregisteredKind, match=r"stands for no Kubernetes kind.*Resource, group="):
        resource_type_of(cls)


def test_a_ref_of_an_object_says_which_one_it_is() -> None:
    found = ref_of(kind_from(Widget).read(RAW, WIDGETS))
    assert (found.name, found.namespace, found.uid, found.resource_version) == ("w", "n", "u", "7")
    bare = ref_of(Widget.new("w"))
    assert (bare.namespace, bare.uid, bare.resource_version) == (None, None, None)
    assert ref(Widget, "w", namespace="n") == ref(Widget, "w", namespace="n")


@pytest.mark.parametrize("name", ["a/b", "..", ".", "", "a%2fb", "a\nb", "../x"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(RefusedRequest):
        address(WIDGETS, "n", name, None)
    with pytest.raises(RefusedRequest):
        address(WIDGETS, name, "w", None)


@pytest.mark.parametrize("subresource", ["", "..", "proxy/../../x", "status?x"])
def test_subresources_that_lead_elsewhere_are_refused(subresource: str) -> None:
    with pytest.raises(RefusedRequest):
        address(WIDGETS, "n", "w", subresource)


def test_addresses() -> None:
    assert address(WIDGETS, "n", "w", "status") == "/apis/example.org/v1/namespaces/n/widgets/w/status"
    assert address(WIDGETS, None, None, None) == "/apis/example.org/v1/widgets"
    assert address(Namespace.resource_type, None, "n", None) == "/api/v1/namespaces/n"
    role = ResourceType("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False)
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
    assert address(role, None, "system:node", None) == path + "system:node"
    assert address(role, None, "a b?c#ü", None) == path + "a%20b%3Fc%23%C3%BC"

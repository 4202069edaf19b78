"""CustomResourceDefinitions: names, versions, columns, subresources."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pytest
import yaml

from flyball.api import (
    IntOrString,
    PrintColumn,
    Resource,
    Scale,
    SchemaError,
    SelectableField,
    Spec,
    Status,
    crd_of,
)
from flyball.k8s.core.v1 import Pod


class GadgetSpec(Spec):
    replicas: Annotated[int, PrintColumn] = 1
    color: Annotated[str, SelectableField] = "red"
    until: Annotated[datetime, PrintColumn("Until", priority=1, description="Then it ends")] | None = None
    port: Annotated[IntOrString, PrintColumn] = 80
    on: Annotated[bool, PrintColumn] = True
    ratio: Annotated[float, PrintColumn(format="double")] = 0.5
    tags: list[str] | None = None


class GadgetStatus(Status):
    replicas: int = 0
    selector: str | None = None


class Gadget(
    Resource,
    group="example.org",
    version="v1",
    short_names=["gd"],
    categories=["all"],
    scale=Scale(selector=".status.selector"),
    columns=[
        PrintColumn("Ready", '.status.conditions[?(@.type=="Ready")].status', type="string"),
        PrintColumn("Now", ".status.replicas"),
    ],
    selectable_fields=[".spec.on"],
    labels={"a": "b"},
    annotations={"c": "d"},
    storage=True,
):
    """A gadget."""

    spec: GadgetSpec
    status: GadgetStatus


class GadgetOld(
    Resource, group="example.org", version="v1beta1", kind="Gadget", deprecated=True, served=False, scope="Namespaced"
):
    spec: GadgetSpec


class GadgetOlder(Resource, group="example.org", version="v1alpha2", kind="Gadget", deprecated="use v1"):
    spec: GadgetSpec


@pytest.mark.capability("C69")
def test_names_and_metadata() -> None:
    crd = crd_of(Gadget)
    assert crd["apiVersion"] == "apiextensions.k8s.io/v1"
    assert crd["metadata"] == {"name": "gadgets.example.org", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    assert crd["spec"]["names"] == {
        "plural": "gadgets",
        "singular": "gadget",
        "kind": "Gadget",
        "listKind": "GadgetList",
        "shortNames": ["gd"],
        "categories": ["all"],
    }
    assert crd["spec"]["scope"] == "Namespaced"


@pytest.mark.capability("C69")
def test_columns_subresources_and_selectable_fields() -> None:
    [version] = crd_of(Gadget)["spec"]["versions"]
    assert version["additionalPrinterColumns"] == [
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Until", "type": "date", "description": "Then it ends", "jsonPath": ".spec.until", "priority": 1},
        {"name": "Port", "type": "string", "jsonPath": ".spec.port"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "Ratio", "type": "number", "format": "double", "jsonPath": ".spec.ratio"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Now", "type": "integer", "jsonPath": ".status.replicas"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert version["selectableFields"] == [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.on"}]


@pytest.mark.capability("C69")
def test_several_classes_are_several_versions_newest_first() -> None:
    versions = crd_of(GadgetOlder, Gadget, GadgetOld)["spec"]["versions"]
    heads = [{key: value for key, value in version.items() if key not in ("schema",)} for version in versions]
    assert [head["name"] for head in heads] == ["v1", "v1beta1", "v1alpha2"]
    assert [(head["served"], head["storage"]) for head in heads] == [(True, True), (False, False), (True, False)]
    assert [head.get("deprecated") for head in heads] == [None, True, True]
    assert [head.get("deprecationWarning") for head in heads] == [None, None, "use v1"]
    assert "subresources" not in heads[1]


def test_a_conversion_is_passed_on() -> None:
    conversion: dict[str, Any] = {"strategy": "None"}
    assert crd_of(Gadget, conversion=conversion)["spec"]["conversion"] == conversion
    assert "conversion" not in crd_of(Gadget)["spec"]


def test_it_is_plain_data_without_shared_parts() -> None:
    text = yaml.safe_dump(crd_of(Gadget, GadgetOld), sort_keys=False)
    assert "&id" not in text
    assert yaml.safe_load(text) == crd_of(Gadget, GadgetOld)


class Other(Resource, group="example.org", version="v2"):
    spec: GadgetSpec


class Plain(Resource):
    spec: GadgetSpec


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ((GadgetOld, GadgetOlder), "GadgetOld, GadgetOlder: no version is the stored one; write storage=True"),
        ((Gadget, Other), "Other: its kind is 'Other', but that of Gadget is 'Gadget'"),
        ((Gadget, Gadget), "several versions are the stored one"),
        ((Plain,), "Plain: the class has no group and version"),
        ((Pod,), "Pod: the kind is built in"),
    ],
)
def test_classes_that_do_not_belong_together(classes: tuple[type[Resource], ...], words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        crd_of(*classes)
    assert words in str(caught.value)
    with pytest.raises(TypeError, match="at least one class"):
        crd_of()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": Scale(spec=".spec.size")}, "the path '.spec.size' must lead to a whole number"),
        ({"scale": Scale(spec=".spec.color")}, "must lead to a whole number"),
        ({"scale": Scale(spec=".status.replicas")}, "does not begin with .spec."),
        ({"scale": Scale(selector=".status.replicas")}, "must lead to a text"),
        ({"columns": [PrintColumn("Size", ".spec.size")]}, "does not tell a type; add it"),
        ({"columns": [PrintColumn("Tags", ".spec.tags")]}, "does not tell a type"),
        ({"columns": [PrintColumn("Size")]}, "needs a name and a path"),
        ({"selectable_fields": [".spec.tags"]}, "does not lead to a text"),
        ({"selectable_fields": [".metadata.name"]}, "does not lead to a text"),
    ],
)
def test_paths_must_lead_somewhere(options: dict[str, Any], words: str) -> None:
    meta: Any = type(Gadget)
    body = {"__annotations__": {"spec": GadgetSpec, "status": GadgetStatus}, "__module__": __name__}
    with pytest.raises(SchemaError) as caught:
        crd_of(meta("Wrong", (Resource,), body, group="a.b", version="v1", **options))
    assert words in str(caught.value)


def test_well_known_columns_need_no_type() -> None:
    class Named(
        Resource,
        group="a.b",
        version="v1",
        columns=[PrintColumn("Where", ".metadata.namespace"), PrintColumn("Since", ".metadata.creationTimestamp")],
    ):
        spec: GadgetSpec

    columns = crd_of(Named)["spec"]["versions"][0]["additionalPrinterColumns"][-2:]
    assert [(column["name"], column["type"]) for column in columns] == [("Where", "string"), ("Since", "date")]

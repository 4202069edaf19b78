"""Built-in types inside custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.k8s.apiextensions.v1 import JSONSchemaProps
from flyball.k8s.core.v1 import PodTemplateSpec, ResourceRequirements
from flyball.k8s.facts import load
from flyball.k8s.schemas import RecursiveSchemaError, published_name, structural


def test_names() -> None:
    assert published_name(PodTemplateSpec) == "io.k8s.api.core.v1.PodTemplateSpec"
    assert published_name(JSONSchemaProps) == (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    )
    assert published_name(str) is None


def test_a_pod_template() -> None:
    schema = structural("io.k8s.api.core.v1.PodTemplateSpec")
    assert schema["properties"]["metadata"] == {"type": "object"}
    containers = schema["properties"]["spec"]["properties"]["containers"]
    assert (containers["x-kubernetes-list-type"], containers["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    port = containers["items"]["properties"]["ports"]["items"]
    assert port["properties"]["protocol"]["default"] == "TCP"
    assert port["required"] == ["containerPort"]
    assert schema["properties"]["spec"]["required"] == ["containers"]


def test_quantities_are_numbers_or_text() -> None:
    schema = structural(str(published_name(ResourceRequirements)))
    limits = schema["properties"]["limits"]["additionalProperties"]
    assert limits["x-kubernetes-int-or-string"] is True


def test_keys_of_lists_are_required_or_have_a_default() -> None:
    def check(schema: dict[str, Any]) -> None:
        for inner in schema.get("properties", {}).values():
            check(inner)
        for part in ("items", "additionalProperties"):
            if part in schema:
                check(schema[part])
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            item = schema["items"]
            assert key in item.get("required", ()) or "default" in item["properties"][key]

    check(structural("io.k8s.api.core.v1.PodTemplateSpec"))
    check(structural("io.k8s.api.core.v1.PersistentVolumeClaimSpec"))


def test_nothing_but_structural_words_is_left() -> None:
    words: set[str] = set()

    def gather(schema: dict[str, Any]) -> None:
        words.update(schema)
        for inner in schema.get("properties", {}).values():
            gather(inner)
        for part in ("items", "additionalProperties"):
            if part in schema:
                gather(schema[part])

    for name in load()["schemas"]:
        if not name.endswith(("JSONSchemaProps", ".CustomResourceDefinition", "CustomResourceDefinitionList")) and (
            "apiextensions" not in name
        ):
            gather(structural(name))
    assert "$ref" not in words
    assert not {word for word in words if "patch" in word or word in ("allOf", "description", "oneOf")}


def test_a_type_inside_itself_is_refused() -> None:
    with pytest.raises(RecursiveSchemaError, match="JSONSchemaProps -> JSONSchemaProps"):
        structural(str(published_name(JSONSchemaProps)))

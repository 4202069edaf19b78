"""The fact file holds facts and no texts."""

from __future__ import annotations

from typing import Any

from flyball.k8s.facts import load

LONGEST_FACT = 120


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in strings(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in strings(inner)]
    return [value] if isinstance(value, str) else []


def keywords(schema: dict[str, Any]) -> set[str]:
    found = set(schema)
    for name, value in schema.items():
        if name == "properties":
            for inner in value.values():
                found |= keywords(inner)
        elif name in ("items", "additionalProperties") and isinstance(value, dict):
            found |= keywords(value)
        elif name == "allOf":
            for inner in value:
                found |= keywords(inner)
    return found


def test_there_are_no_texts() -> None:
    found: set[str] = set()
    for schema in load()["schemas"].values():
        found |= keywords(schema)
    assert found <= {
        "$ref",
        "additionalProperties",
        "allOf",
        "default",
        "enum",
        "format",
        "items",
        "oneOf",
        "properties",
        "required",
        "type",
        "x-kubernetes-group-version-kind",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-patch-merge-key",
        "x-kubernetes-patch-strategy",
        "x-kubernetes-unions",
    }
    assert max(len(text) for text in strings(load())) < LONGEST_FACT


def test_pods_are_as_the_server_says() -> None:
    core = next(group for group in load()["groups"] if group["group"] == "")
    pods = next(resource for resource in core["versions"][0]["resources"] if resource["plural"] == "pods")
    assert (pods["singular"], pods["namespaced"], pods.get("shortNames")) == ("pod", True, ["po"])
    below = {each["name"]: each for each in pods.get("subresources", [])}
    assert below["eviction"]["group"] == "policy"
    assert below["status"]["verbs"] == ["get", "patch", "update"]


def test_lists_know_how_they_merge_and_fields_their_order() -> None:
    schemas = load()["schemas"]
    ports = schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["x-kubernetes-patch-merge-key"] == "containerPort"
    port = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]
    assert list(port) == ["name", "hostPort", "containerPort", "protocol", "hostIP"]
    assert port["protocol"]["enum"] == ["SCTP", "TCP", "UDP"]


def test_preferred_versions_come_first() -> None:
    versions = {group["group"]: [each["version"] for each in group["versions"]] for group in load()["groups"]}
    assert versions["autoscaling"] == ["v2", "v1"]
    assert versions["resource.k8s.io"][0] == "v1"

"""Every built-in kind can be read and written without a loss."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from tests.unit.k8s import samples

from flyball.api import Resource, decode, encode, origin
from flyball.k8s import find, kinds
from flyball.k8s._index import SCHEMAS
from flyball.k8s.facts import load

KINDS = samples.kinds()
IDS = [f"{group or 'core'}/{version} {kind}" for _, group, version, kind in KINDS]


def class_of(group: str, version: str, kind: str) -> type[Resource]:
    found = find(f"{group}/{version}".lstrip("/"), kind)
    assert found is not None
    return found


@pytest.mark.parametrize(("schema", "group", "version", "kind"), KINDS, ids=IDS)
def test_a_full_object_survives(schema: str, group: str, version: str, kind: str) -> None:
    sent = samples.server_object(schema, group, version, kind)
    read = decode(class_of(group, version, kind), json.dumps(sent).encode())
    assert json.loads(encode(read)) == {name: part for name, part in sent.items() if part != {}}


@pytest.mark.parametrize(("schema", "group", "version", "kind"), KINDS, ids=IDS)
def test_null_is_read_everywhere(schema: str, group: str, version: str, kind: str) -> None:
    sent = with_nulls(samples.server_object(schema, group, version, kind))
    read = decode(class_of(group, version, kind), json.dumps(sent).encode())
    encode(read)


def with_nulls(sent: dict[str, Any]) -> dict[str, Any]:
    """The object with null for every field of its parts, and for every other field of its own."""
    names = [name for name in sent if name not in ("apiVersion", "kind")]
    parts = {name: dict.fromkeys(sent[name]) if isinstance(sent[name], dict) else None for name in names}
    return {**sent, **parts}


@pytest.mark.parametrize(("schema", "group", "version", "kind"), KINDS, ids=IDS)
def test_names_are_those_of_discovery(schema: str, group: str, version: str, kind: str) -> None:
    resources = [
        resource
        for each in load()["groups"]
        if each["group"] == group
        for one in each["versions"]
        if one["version"] == version
        for resource in one["resources"]
        if resource["kind"] == kind
    ]
    names = class_of(group, version, kind).resource_type
    assert (names.group, names.version, names.kind) == (group, version, kind)
    if resources:
        resource = resources[0]
        assert (names.plural, names.namespaced) == (resource["plural"], resource["namespaced"])
        assert names.singular == resource["singular"]
        options = class_of(group, version, kind).kind_options
        assert list(options.short_names) == resource.get("shortNames", [])
        assert list(options.categories) == resource.get("categories", [])
    else:
        assert names.plural == ""


def test_every_kind_is_listed() -> None:
    assert set(kinds()) == {(f"{group}/{version}".lstrip("/"), kind) for _, group, version, kind in KINDS}


def test_unknown_kinds_are_not_found() -> None:
    assert find("apps/v1", "Pod") is None
    assert find("example.org/v1", "Deployment") is None


def test_unknown_fields_stay_in_the_origin() -> None:
    from flyball.k8s.core.v1 import Pod

    raw = b'{"apiVersion":"v1","kind":"Pod","spec":{"futureField":{"a":1},"containers":[]}}'
    pod = decode(Pod, raw)
    assert origin(pod) == raw


def test_a_value_that_is_new_in_an_enumeration_is_read() -> None:
    from flyball.k8s.core.v1 import Pod

    pod = decode(Pod, b'{"spec":{"restartPolicy":"OnFullMoon"},"status":{"phase":"Dreaming"}}')
    assert (pod.spec.restart_policy, pod.status.phase) == ("OnFullMoon", "Dreaming")


def test_attributes_are_words() -> None:
    from flyball.k8s.core.v1 import PodStatus, ServiceSpec
    from flyball.k8s.networking.v1 import NetworkPolicyIngressRule, NetworkPolicyPeer

    assert json.loads(encode(ServiceSpec(cluster_ip="None", cluster_ips=["None"], external_ips=[]))) == {
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "externalIPs": [],
    }
    assert json.loads(encode(PodStatus(host_ip="10.0.0.1", pod_ip="10.1.0.1"))) == {
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
    }
    assert json.loads(encode(NetworkPolicyIngressRule(from_=[NetworkPolicyPeer()]))) == {"from": [{}]}


def test_spec_and_status_are_always_there() -> None:
    from flyball.k8s.apps.v1 import Deployment

    assert Deployment().status.ready_replicas is None
    assert json.loads(encode(Deployment())) == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}}


def test_secrets_hold_bytes() -> None:
    from flyball.k8s.core.v1 import Secret

    secret = Secret(data={"password": b"hello"})
    assert json.loads(encode(secret))["data"] == {"password": "aGVsbG8="}
    assert decode(Secret, encode(secret)).data == {"password": b"hello"}


LISTS = [name for name in load()["schemas"] if name.endswith("List") and ".meta.v1." not in name]


@pytest.mark.parametrize("schema", LISTS)
def test_lists_of_kinds_survive(schema: str) -> None:
    prefix, _, name = schema.rpartition(".")
    path = next(path for path, schemas in SCHEMAS.items() if schemas == prefix)
    cls = getattr(import_module(f"flyball.k8s.{path}"), name)
    sent = samples.filled(schema)
    kind = load()["schemas"][schema]["x-kubernetes-group-version-kind"][0]
    sent |= {"apiVersion": f"{kind['group']}/{kind['version']}".lstrip("/"), "kind": kind["kind"]}
    assert json.loads(encode(decode(cls, json.dumps(sent).encode()))) == sent
    assert json.loads(encode(cls()))["kind"] == name

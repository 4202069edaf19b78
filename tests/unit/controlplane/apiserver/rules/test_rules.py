"""The rules of built-in kinds, one fault at a time. The recorded answers hold the words; here is what they miss."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.controlplane.apiserver.rules import RULES, without_rules

Object = dict[str, Any]

CONTAINER: Object = {
    "name": "c",
    "image": "i",
    "imagePullPolicy": "Always",
    "resources": {},
    "terminationMessagePolicy": "File",
}
POD: Object = {"containers": [CONTAINER], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
TEMPLATE: Object = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTOR: Object = {"matchLabels": {"a": "b"}}


def told(resource: str, obj: Object, old: Object | None = None) -> list[str]:
    whole = {"kind": "Role", "metadata": {"name": "x", "namespace": "n"}, **obj}
    parts = RULES[resource].parts()
    before = None if old is None else {"kind": "Role", "metadata": {"name": "x", "namespace": "n"}, **old}
    errors = parts["validate"](whole) if before is None else parts["validate_update"](whole, before)
    return [str(error) for error in errors]


def container(**fields: Any) -> Object:
    return {"spec": {**POD, "containers": [{**CONTAINER, **fields}]}}


GOOD: list[tuple[str, Object]] = [
    ("pods", {"spec": POD}),
    ("deployments.apps", {"spec": {"selector": SELECTOR, "template": TEMPLATE, "strategy": {"type": "Recreate"}}}),
    ("replicasets.apps", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("configmaps", {"data": {"a": "b"}}),
    ("secrets", {"type": "Opaque", "data": {"a": "Yg=="}}),
    ("events", {"involvedObject": {"namespace": "n"}}),
    ("leases.coordination.k8s.io", {"spec": {"leaseDurationSeconds": 1}}),
]


@pytest.mark.parametrize(("resource", "obj"), GOOD)
def test_what_is_right_is_let_through(resource: str, obj: Object) -> None:
    assert told(resource, obj) == []


FAULTS: list[tuple[str, Object, str]] = [
    ("pods", container(ports=[{"containerPort": 1, "protocol": "TCP", "name": "-x"}]), "must not begin or end"),
    ("pods", container(env=[{"name": "A", "valueFrom": {}}]), "env[0].valueFrom: Invalid value"),
    ("pods", container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}]), "`value` is"),
    ("pods", container(livenessProbe={"successThreshold": 2, "exec": {"command": ["x"]}}), "must be 1"),
    ("pods", container(lifecycle={"preStop": {}}), "preStop: Required value: must specify a handler type"),
    ("pods", container(resources={"requests": {"cpu": "-1"}}), "resources.requests[cpu]: Invalid value"),
    ("pods", container(resources={"limits": {"gpu": "1"}}), "must be a standard resource"),
    ("pods", {"spec": {**POD, "volumes": [{"name": "v"}]}}, "spec.volumes[0]: Required value"),
    ("pods", {"spec": {**POD, "volumes": [{"name": "v", "configMap": {}}]}}, "configMap.name: Required value"),
    ("pods", {"spec": {**POD, "tolerations": [{"operator": "Equal"}]}}, "operator must be Exists"),
    ("pods", {"spec": {**POD, "activeDeadlineSeconds": 0}}, "must be between 1 and 2147483647"),
    (
        "deployments.apps",
        {"spec": {"selector": {}, "template": TEMPLATE, "strategy": {"type": "Recreate"}}},
        "empty sel",
    ),
    (
        "deployments.apps",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "strategy": {"type": "X"}}},
        "Unsupport",
    ),
    ("statefulsets.apps", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}, "podManagementPolicy: Required"),
    ("cronjobs.batch", {"spec": {"schedule": "* * * * *", "timeZone": "Nowhere/X"}}, "unknown time zone Nowhere/X"),
    ("services", {"spec": {"type": "ExternalName", "sessionAffinity": "None"}}, "spec.externalName: Required value"),
    ("services", {"spec": {"clusterIP": "x", "clusterIPs": ["x"], "type": "ClusterIP"}}, "must be a valid IP"),
    ("configmaps", {"data": {"a": "x" * (1024 * 1024 + 1)}}, "Too long: may not be more than 1048576 bytes"),
    ("secrets", {"type": "kubernetes.io/tls"}, "data[tls.crt]: Required value"),
    ("persistentvolumeclaims", {"spec": {"accessModes": ["All"]}}, "spec.accessModes: Unsupported value"),
    ("leases.coordination.k8s.io", {"spec": {"leaseDurationSeconds": 0}}, "must be greater than 0"),
    ("roles.rbac.authorization.k8s.io", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, "namespaced rules"),
]


@pytest.mark.parametrize(("resource", "obj", "words"), FAULTS)
def test_what_is_wrong_is_named(resource: str, obj: Object, words: str) -> None:
    assert any(words in error for error in told(resource, obj)), told(resource, obj)


CHANGES: list[tuple[str, Object, Object, str]] = [
    ("pods", {"spec": {**POD, "hostname": "h"}}, {"spec": POD}, "spec: Forbidden: pod updates may not change"),
    (
        "pods",
        {"spec": {**POD, "containers": [CONTAINER, CONTAINER]}},
        {"spec": POD},
        "may not add or remove containers",
    ),
    (
        "replicasets.apps",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        {"spec": {"selector": {"matchLabels": {"a": "c"}}}},
        "spec.selector: Invalid value",
    ),
    ("secrets", {"immutable": True, "data": {}}, {"immutable": True, "data": {"a": "Yg=="}}, "data: Forbidden"),
    ("services", {"spec": {"clusterIP": "10.0.0.2"}}, {"spec": {"clusterIP": "10.0.0.1"}}, "may not change once set"),
    ("rolebindings.rbac.authorization.k8s.io", {"roleRef": {"name": "a"}}, {"roleRef": {"name": "b"}}, "cannot change"),
]


@pytest.mark.parametrize(("resource", "obj", "old", "words"), CHANGES)
def test_what_may_not_change_stays(resource: str, obj: Object, old: Object, words: str) -> None:
    assert any(words in error for error in told(resource, obj, old)), told(resource, obj, old)


def test_the_image_of_a_pod_may_change() -> None:
    after = {"spec": {**POD, "containers": [{**CONTAINER, "image": "other"}]}}
    assert told("pods", after, {"spec": POD}) == []


def test_kinds_without_rules_are_named() -> None:
    assert without_rules(["pods", "nodes", "ingresses.networking.k8s.io"]) == ["ingresses.networking.k8s.io", "nodes"]

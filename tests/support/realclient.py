"""Clients of a real control plane, each test in a namespace of its own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from flyball.api import DynamicObject
from flyball.client import Client, dynamic
from flyball.errors import AlreadyExists
from flyball.k8s.core.v1 import Container, Namespace, Pod, PodSpec, ServiceAccount
from flyball.testing.eventually import eventually
from flyball.testing.realcluster import RealCluster

CRDS = dynamic("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@asynccontextmanager
async def client_of(cluster: RealCluster, **options: Any) -> AsyncGenerator[Client]:
    """A client whose namespace is new."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    async with Client(cluster.config) as admin:
        await admin.create(Namespace.new(name))
    given: dict[str, Any] = {"namespace": name, "field_manager": "flyball-test"} | options
    async with Client(cluster.config, **given) as client:
        yield client


async def pods_can_be_made(client: Client) -> None:
    """Wait for the ServiceAccount without which no pod is admitted."""
    await eventually(lambda: client.get(ServiceAccount, "default"))


def pod(name: str, **labels: str) -> Pod:
    """A pod that asks for nothing."""
    return Pod.new(name, spec=PodSpec(containers=[Container(name="c", image="i")]), labels=labels)


async def widgets_are_served(client: Client) -> None:
    """Install the CRD of `tests.support.widgets.Widget`: with fields that the class does not know."""
    text, number = {"type": "string"}, {"type": "integer"}
    parts = {"type": "array", "items": {"type": "object", "properties": {"name": text, "weight": number}}}
    spec = {"type": "object", "properties": {"size": number, "color": text, "shape": text, "parts": parts}}
    status = {"type": "object", "properties": {"ready": number, "mood": text}}
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
        },
    }
    crd = DynamicObject(
        apiVersion="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        metadata={"name": "widgets.example.org"},
        spec={
            "group": "example.org",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "scope": "Namespaced",
            "versions": [version],
        },
    )
    try:
        await client.create(crd)
    except AlreadyExists:
        return
    await eventually(lambda: client.get(CRDS, "widgets.example.org"), _established)
    probe = dynamic("example.org/v1", "Widget")
    await eventually(lambda: _lists(client, probe))


async def _lists(client: Client, kind: Any) -> bool:
    await client.list(kind)
    return True


def _established(crd: DynamicObject) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


__all__ = ["CRDS", "client_of", "pod", "pods_can_be_made", "widgets_are_served"]

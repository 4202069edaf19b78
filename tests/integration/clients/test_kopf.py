"""An operator of our own writing on kopf, from its first list to its end, against the embedded API server over TLS."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.clients.environment import clients_python
from tests.integration.clients.playing import SCRIPTS, environment
from tests.integration.clients.scripts._cases import gadget, gadgets

from flyball import errors
from flyball.api import DynamicObject
from flyball.client import Client, MergePatch, dynamic
from flyball.k8s.core.v1 import ConfigMap, Event, Namespace
from flyball.testing import Cluster, eventually

GROUP, SPACE = "kopf.example.org", "kopf"
GADGET = dynamic(f"{GROUP}/v1", "Gadget")
CRD = dynamic("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@contextlib.asynccontextmanager
async def operator(cluster: Cluster, log: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The operator as a process. It must end by itself, without a failure, when it is told to."""
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            clients_python(),
            SCRIPTS / "kopf_operator.py",
            SPACE,
            GROUP,
            env=environment(cluster.kubeconfig),
            stdout=out,
            stderr=out,
        )
        try:
            yield process
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 20) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


@pytest.fixture
async def client(cluster: Cluster) -> Client:
    """A client of a cluster that knows Gadgets and the namespace of the operator."""
    client = cluster.client
    await client.create(Namespace.new(SPACE))
    definition = gadgets(GROUP)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await client.create(DynamicObject(definition))
    await eventually(lambda: client.get(CRD, f"gadgets.{GROUP}"), lambda crd: len(crd["status"]["conditions"]) == 2)
    return client


def wanted(name: str, size: int, **spec: Any) -> DynamicObject:
    made = DynamicObject(gadget(GROUP, name, size, **spec))
    made["metadata"]["namespace"] = SPACE
    return made


def reference(name: str) -> DynamicObject:
    return DynamicObject(apiVersion=f"{GROUP}/v1", kind="Gadget", metadata={"name": name, "namespace": SPACE})


async def gadget_is(client: Client, name: str, **status: Any) -> None:
    def right(found: DynamicObject) -> bool:
        told = found.get("status") or {}
        return all(told.get(key) == value for key, value in status.items())

    await eventually(lambda: client.get(GADGET, name, namespace=SPACE), right, timeout=30)


async def data_is(client: Client, name: str, **data: str) -> None:
    await eventually(lambda: client.get(ConfigMap, name, namespace=SPACE), lambda found: found.data == data, timeout=30)


async def test_an_operator_lives_its_life(cluster: Cluster, client: Client, tmp_path: Path) -> None:
    log = tmp_path / "operator.log"
    async with operator(cluster, log):
        await client.create(wanted("one", 1))
        await gadget_is(client, "one", phase="made", create={"attempt": 1}, ticks=3, peers=["one"])
        await data_is(client, "one", size="1")
        made = await client.get(GADGET, "one", namespace=SPACE)
        assert made["metadata"]["finalizers"] == ["kopf.example.org/hold"]
        child = await client.get(ConfigMap, "one", namespace=SPACE)
        assert [owner.uid for owner in child.metadata.owner_references or []] == [made["metadata"]["uid"]]

        await eventually(
            lambda: client.get(ConfigMap, "one", namespace=SPACE),
            lambda found: (found.metadata.labels or {}).get("guarded") == "yes",
            timeout=30,
        )
        await client.create(wanted("two", 2))
        await client.create(wanted("three", 3, color="red"))
        await gadget_is(client, "one", peers=["one", "two"])
        await gadget_is(client, "three", peers=["three"])

        await client.patch(reference("one"), MergePatch({"spec": {"size": 5}}))
        await data_is(client, "one", size="5", before="1")
        await gadget_is(client, "one", ready=5)

        await client.create(ConfigMap.new("note", namespace=SPACE, labels={"seen-by": "kopf"}))
        await eventually(
            lambda: client.get(ConfigMap, "note", namespace=SPACE),
            lambda found: (found.metadata.annotations or {}).get("seen") == "yes",
            timeout=30,
        )
        await eventually(
            lambda: client.list(Event, namespace=SPACE),
            lambda events: "made one of size 1" in [event.message for event in events],
            timeout=30,
        )

    await client.patch(reference("two"), MergePatch({"spec": {"size": 6}}))  # while nobody is there
    async with operator(cluster, log):
        await gadget_is(client, "three", resumed=1)
        await data_is(client, "two", size="6", before="2")
        await client.delete(GADGET, "two", namespace=SPACE)
        await eventually(lambda: client.get(ConfigMap, "farewell-two", namespace=SPACE), timeout=30)
        await eventually(lambda: gone(client, "two"), timeout=30)
    server_errors = [request for request in cluster.requests if request.status >= 500]
    assert server_errors == []


async def test_an_operator_outlives_bad_times(cluster: Cluster, client: Client, tmp_path: Path) -> None:
    """Throttled, disconnected, with watches that expire and answers that are lost, it still does its work."""
    faults = cluster.faults
    faults.expire_watch(resource="gadgets", first=2)
    faults.drop_watch(after=2, resource="gadgets", first=2)
    faults.status(429, retry_after=1, verb="patch", resource="gadgets", first=2)
    faults.status(503, verb="list", first=2)
    async with operator(cluster, tmp_path / "operator.log"):
        for index in range(5):
            await client.create(wanted(f"g{index}", index))
        for index in range(5):
            await data_is(client, f"g{index}", size=str(index))
            await gadget_is(client, f"g{index}", phase="made", peers=[f"g{each}" for each in range(5)])
    assert {request.fault for request in cluster.requests} >= {"status 429", "status 503"}


async def gone(client: Client, name: str) -> bool:
    try:
        await client.get(GADGET, name, namespace=SPACE)
    except errors.NotFound:
        return True
    return False

"""kube-controller-manager as a client: fifty informers, discovery, quota and garbage collection on the embedded server.

The embedded cluster's own control loops are switched off: what happens, the real controllers have done.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import yaml
from tests.integration.clients.scripts._cases import gadget, gadgets

from flyball import errors
from flyball.api import DynamicObject
from flyball.client import Client, dynamic
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import ConfigMap, Container, Namespace, Pod, PodSpec, PodTemplateSpec, ServiceAccount
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing import Cluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries
from flyball.testing.processes import Supervisor

pytestmark = pytest.mark.real

SPACE = "managed"
SECONDS = 60


@contextlib.asynccontextmanager
async def controllers(cluster: Cluster, folder: Path) -> AsyncGenerator[Path]:
    """The program, with a user for each controller; its log."""
    try:
        program = find_binaries().path("kube-controller-manager")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    authority, log = folder / "ca.crt", folder / "kube-controller-manager.log"
    known = yaml.safe_load(cluster.kubeconfig.read_bytes())["clusters"][0]["cluster"]
    authority.write_bytes(base64.b64decode(known["certificate-authority-data"]))
    command = [
        str(program),
        f"--kubeconfig={cluster.kubeconfig_for('system:kube-controller-manager')}",
        f"--root-ca-file={authority}",
        "--use-service-account-credentials=true",
        "--leader-elect=true",
        "--secure-port=0",
        "--concurrent-gc-syncs=2",
    ]
    with Supervisor() as supervisor:
        supervisor.start("kube-controller-manager", command, log=log)
        yield log


@pytest.fixture
async def managed(tmp_path: Path) -> AsyncGenerator[tuple[Cluster, Path]]:
    async with Cluster(controllers=False) as cluster, controllers(cluster, tmp_path) as log:
        yield cluster, log


def deployment(name: str, replicas: int) -> Deployment:
    labels = {"app": name}
    pod = PodSpec(containers=[Container(name="main", image="registry.test/main:1")])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod)
    spec = DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=template)
    return Deployment.new(name, namespace=SPACE, spec=spec)


async def count(client: Client, kind: type[Pod] | type[ReplicaSet]) -> int:
    return len(await client.list(kind, namespace=SPACE))


async def test_the_real_controllers_work_on_the_embedded_server(managed: tuple[Cluster, Path]) -> None:
    cluster, log = managed
    client = cluster.client
    await client.create(Namespace.new(SPACE))
    await eventually(lambda: client.get(ServiceAccount, "default", namespace=SPACE), timeout=SECONDS)
    await eventually(lambda: client.get(ConfigMap, "kube-root-ca.crt", namespace=SPACE), timeout=SECONDS)

    await client.create(deployment("web", 3))
    await eventually(lambda: count(client, Pod), lambda found: found == 3, timeout=SECONDS)
    (owner,) = await client.list(ReplicaSet, namespace=SPACE)
    assert owner.spec.replicas == 3
    await eventually(
        lambda: client.get(Deployment, "web", namespace=SPACE),
        lambda found: (
            found.status.unavailable_replicas == 3 and found.status.observed_generation == found.metadata.generation
        ),
        timeout=SECONDS,
    )
    await client.scale(await client.get(Deployment, "web", namespace=SPACE), replicas=1)
    await eventually(lambda: count(client, Pod), lambda found: found == 1, timeout=SECONDS)

    job = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}]}}}}
    place = {"name": "once", "namespace": SPACE}
    await client.create(DynamicObject(apiVersion="batch/v1", kind="Job", metadata=place, **job))
    await eventually(
        lambda: client.get(Job, "once", namespace=SPACE), lambda found: found.status.active == 1, timeout=SECONDS
    )

    await client.delete(Deployment, "web", namespace=SPACE, propagation="Foreground")
    await eventually(lambda: gone(client), timeout=SECONDS)
    assert await count(client, ReplicaSet) == 0

    group = "managed.example.org"  # the collector learns of a new kind from discovery
    await client.create(DynamicObject(gadgets(group)))
    owned = DynamicObject(gadget(group, "owned", 1))
    owned["metadata"]["namespace"] = SPACE
    boss = await client.create(ConfigMap.new("boss", namespace=SPACE))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": boss.metadata.uid}
    owned["metadata"]["ownerReferences"] = [reference]
    await eventually(lambda: client.create(owned), timeout=SECONDS)
    await client.delete(boss)
    kind = dynamic(f"{group}/v1", "Gadget")
    await eventually(lambda: client.list(kind, namespace=SPACE), lambda found: not found, timeout=SECONDS)

    await client.delete(Namespace, SPACE)
    await eventually(lambda: namespace_gone(client), timeout=SECONDS)

    assert [request for request in cluster.requests if request.status >= 500] == []
    users = {request.user for request in cluster.requests}
    assert "system:serviceaccount:kube-system:replicaset-controller" in users
    assert complaints(log) == []


def complaints(log: Path) -> list[str]:
    """What its informers could not do."""
    wrong = re.compile(r"[Ff]ailed to (list|watch)|unable to (decode|sync)|[Pp]anic|timed out waiting for caches")
    return [line for line in log.read_text().splitlines() if wrong.search(line)]


async def gone(client: Client) -> bool:
    try:
        await client.get(Deployment, "web", namespace=SPACE)
    except errors.NotFound:
        return True
    return False


async def namespace_gone(client: Client) -> bool:
    try:
        await client.get(Namespace, SPACE)
    except errors.NotFound:
        return True
    return False

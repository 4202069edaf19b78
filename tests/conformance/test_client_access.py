"""Who asks, and what can be done beside reading and writing, against a real API server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.support.realclient import client_of, pod, pods_can_be_made, widgets_are_served
from tests.support.widgets import Widget, WidgetSpec

from flyball.api import DynamicObject
from flyball.client import Client, ClusterConfig, MergePatch, dynamic, ref
from flyball.client.config import ExecConfig, Impersonation
from flyball.errors import CredentialError, Forbidden, NotFound, TooManyRequests, Unauthorized
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap, Pod, ServiceAccount
from flyball.sync import Client as Synchronous
from flyball.testing.eventually import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real

REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
BUDGETS = dynamic("policy/v1", "PodDisruptionBudget")


async def whoami(client: Client) -> str:
    answer = await client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=REVIEW)
    name: str = json.loads(answer)["status"]["userInfo"]["username"]
    return name


def without_identity(config: ClusterConfig) -> ClusterConfig:
    """The same server, and nobody who asks."""
    return replace(config, client_cert_data=None, client_key_data=None)


# -- who asks


@pytest.mark.capability("S6")
async def test_the_token_of_a_service_account(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await c.create(ServiceAccount.new("robot"))
        token = await c.token("robot", expires_in=timedelta(minutes=10))
        assert token.expires is not None
        assert token.expires > datetime.now(UTC) + timedelta(minutes=9)
        async with Client(replace(without_identity(real_cluster.config), token=token.token)) as robot:
            assert await whoami(robot) == f"system:serviceaccount:{c.namespace}:robot"
            with pytest.raises(Forbidden, match=rf"grant it to serviceaccount {c.namespace}/robot"):
                await robot.list(ConfigMap, namespace=c.namespace)


@pytest.mark.capability("S6")
async def test_impersonation(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        jane = replace(real_cluster.config, impersonate=Impersonation("jane", groups=("readers",)))
        async with Client(jane, namespace=c.namespace) as as_jane:
            assert await whoami(as_jane) == "jane"
            wanted = (
                rf'^list ConfigMap in {c.namespace}: .*User "jane" cannot list resource "configmaps".*; add @rbac\('
            )
            with pytest.raises(Forbidden, match=wanted):
                await as_jane.list(ConfigMap)
            await c.create(
                DynamicObject(
                    apiVersion="rbac.authorization.k8s.io/v1",
                    kind="Role",
                    metadata={"name": "read"},
                    rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
                )
            )
            group = {"kind": "Group", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"}
            await c.create(
                DynamicObject(
                    apiVersion="rbac.authorization.k8s.io/v1",
                    kind="RoleBinding",
                    metadata={"name": "read"},
                    roleRef={"kind": "Role", "name": "read", "apiGroup": "rbac.authorization.k8s.io"},
                    subjects=[group],
                )
            )
            assert await eventually(lambda: _count(as_jane), lambda count: count >= 0) >= 0


async def _count(client: Client) -> int:
    return len(await client.list(ConfigMap))


PLUGIN = """
import json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "runs"), "a") as runs:
    runs.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
with open(os.path.join(folder, "status.json")) as status:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": json.load(status)}
print(json.dumps(answer))
"""


def plugin_in(folder: Path) -> tuple[ExecConfig, Callable[[Any], None], Callable[[], int]]:
    """An exec plugin, a way to say what it hands out, and how often it ran."""
    program = folder / "plugin.py"
    program.write_text(PLUGIN)

    def hand_out(status: Any) -> None:
        (folder / "status.json").write_text(json.dumps(status))

    def runs() -> int:
        return len((folder / "runs").read_text().splitlines())

    return ExecConfig(sys.executable, (str(program),), interactive_mode="Never"), hand_out, runs


@pytest.mark.capability("S6")
async def test_an_exec_plugin_hands_out_tokens(real_cluster: RealCluster, tmp_path: Path) -> None:
    plugin, hand_out, runs = plugin_in(tmp_path)
    async with client_of(real_cluster) as c:
        tokens: dict[str, str] = {}
        for name in ("first", "second"):
            await c.create(ServiceAccount.new(name))
            tokens[name] = (await c.token(name)).token
        hand_out({"token": tokens["first"]})
        async with Client(replace(without_identity(real_cluster.config), exec_plugin=plugin)) as robot:
            assert {await whoami(robot) for _ in range(3)} == {f"system:serviceaccount:{c.namespace}:first"}
            assert runs() == 1
            await c.delete(ServiceAccount, "first")
            hand_out({"token": tokens["second"]})
            assert await eventually(lambda: whoami(robot), lambda name: name.endswith(":second"), timeout=60)
            assert runs() == 2


@pytest.mark.capability("S6")
async def test_an_exec_plugin_hands_out_certificates(real_cluster: RealCluster, tmp_path: Path) -> None:
    plugin, hand_out, _ = plugin_in(tmp_path)
    pair = real_cluster.authority.client("by-certificate")
    assert x509.load_pem_x509_certificate(pair.certificate)
    hand_out({"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()})
    async with Client(replace(without_identity(real_cluster.config), exec_plugin=plugin)) as robot:
        assert await whoami(robot) == "by-certificate"


async def test_an_exec_plugin_that_fails_says_so(real_cluster: RealCluster, tmp_path: Path) -> None:
    plugin = ExecConfig(sys.executable, ("-c", "raise SystemExit('no ticket')"), interactive_mode="Never")
    async with Client(replace(without_identity(real_cluster.config), exec_plugin=plugin)) as robot:
        with pytest.raises(CredentialError, match=r"no ticket"):
            await whoami(robot)


@pytest.mark.capability("C12")
@pytest.mark.capability("S6")
async def test_a_token_file_that_rotates(real_cluster: RealCluster, tmp_path: Path) -> None:
    file = tmp_path / "token"
    async with client_of(real_cluster) as c:
        tokens: dict[str, str] = {}
        for name in ("first", "second"):
            await c.create(ServiceAccount.new(name))
            tokens[name] = (await c.token(name)).token
        file.write_text(tokens["first"])
        async with Client(replace(without_identity(real_cluster.config), token_file=file)) as robot:
            assert (await whoami(robot)).endswith(":first")
            file.write_text(tokens["second"])
            await c.delete(ServiceAccount, "first")
            assert await eventually(lambda: whoami(robot), lambda name: name.endswith(":second"), timeout=60)


async def test_a_token_that_nobody_knows(real_cluster: RealCluster) -> None:
    async with Client(replace(without_identity(real_cluster.config), token="nonsense")) as nobody:
        with pytest.raises(Unauthorized, match=r"^get ConfigMap default/a: [Uu]nauthorized; 127.0.0.1"):
            await nobody.get(ConfigMap, "a")


# -- what can be done with an object


async def test_scale(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await widgets_are_served(c)
        widget = await c.create(Widget.new("w", spec=WidgetSpec(size=2)))
        assert (await c.scale(widget)).replicas == 2
        assert (await c.scale(widget, replicas=0)).replicas == 0
        assert (await c.get(Widget, "w")).spec.size == 0
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        await c.create(DynamicObject(apiVersion="apps/v1", kind="Deployment", metadata={"name": "web"}, spec=spec))
        found = await c.scale(dynamic("apps/v1", "Deployment"), "web", replicas=1)
        assert (found.replicas, found.selector) == (1, "app=web")
        assert (await c.scale(Deployment, "web")).replicas == 1
        with pytest.raises(NotFound, match=f"^scale Deployment {c.namespace}/nobody to 2: "):
            await c.scale(Deployment, "nobody", replicas=2)


async def test_eviction_keeps_to_the_budget(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await pods_can_be_made(c)
        made = await c.create(pod("p", app="web"))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await c.patch(made, MergePatch({"status": ready}), subresource="status")
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        budget = DynamicObject(apiVersion="policy/v1", kind="PodDisruptionBudget", metadata={"name": "b"}, spec=spec)
        await c.create(budget)
        await eventually(  # the controller of budgets looks after its own start only now and then
            lambda: c.get(BUDGETS, "b"),
            lambda found: found.get("status", {}).get("currentHealthy") == 1,
            timeout=60,
        )
        with pytest.raises(TooManyRequests, match=f"^evict Pod {c.namespace}/p: .*disruption budget") as caught:
            await c.evict("p")
        assert [cause["reason"] for cause in caught.value.causes] == ["DisruptionBudget"]
        await c.delete(BUDGETS, "b")
        await c.evict(made, grace_period=0, dry_run=True)
        assert (await c.get(Pod, "p")).metadata.uid == made.metadata.uid
        await c.evict(made, grace_period=0)
        await eventually(lambda: _is_gone(c, "p"))


async def _is_gone(client: Client, name: str) -> bool:
    try:
        await client.get(Pod, name)
    except NotFound:
        return True
    return False


async def test_a_pod_is_bound(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await pods_can_be_made(c)
        await c.create(pod("p"))
        await c.bind("p", "nowhere")
        assert (await c.get(Pod, "p")).spec.node_name == "nowhere"
        assert await c.delete(ref(Pod, "p"), grace_period=0) is None


async def test_the_log_of_a_pod_without_a_node_is_empty(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await pods_can_be_made(c)
        await c.create(pod("p"))
        assert await c.logs("p") == ""
        with pytest.raises(NotFound, match=f"^read the log of Pod {c.namespace}/nobody: "):
            await c.logs("nobody")


# -- without a loop


@pytest.mark.capability("S6")
async def test_the_synchronous_front(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:

        def script() -> list[str]:
            with Synchronous(real_cluster.config, namespace=c.namespace, field_manager="script") as client:
                client.apply(ConfigMap.new("a", labels={"mine": ""}))
                changes = client.watch(ConfigMap, labels="mine")
                first = next(changes).object.metadata.name
                client.create(ConfigMap.new("b", labels={"mine": ""}))
                second = next(changes).object.metadata.name
                names = [cm.metadata.name for cm in client.iterate(ConfigMap, labels="mine", page_size=1)]
                return [first, second, *names]

        assert await asyncio.to_thread(script) == ["a", "b", "a", "b"]

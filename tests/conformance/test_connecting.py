"""Every way to show a real API server who we are, and what it says when it does not know us."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from flyball.client.cluster_config import ClusterConfig, Impersonation
from flyball.client.config import in_cluster_config, load_config
from flyball.client.http_transport import HttpTransport
from flyball.client.interceptors import chain
from flyball.client.retry import Retry
from flyball.client.transport import HttpRequest
from flyball.clock import Clock, ManualClock
from flyball.errors import Forbidden, NotFound, TlsError, Unauthorized, error_from
from flyball.testing.realcluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.capability("S6")]

WHO_AM_I = HttpRequest(
    "POST",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    headers={"Content-Type": "application/json"},
    body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}',
    action="ask who I am",
)


@asynccontextmanager
async def transport(config: ClusterConfig, clock: Clock | None = None) -> AsyncGenerator[HttpTransport]:
    found = HttpTransport(config, clock=clock)
    try:
        yield found
    finally:
        await found.close()


async def ask(found: HttpTransport, request: HttpRequest) -> Any:
    """The answer's JSON, or the error of its Status."""
    answer = await chain(found.send, [Retry()])(request)
    body = await answer.read()
    if answer.status >= 400:
        raise error_from(answer.status, answer.headers, body, action=request.action, host=found.host)
    return json.loads(body)


async def user(found: HttpTransport) -> dict[str, Any]:
    info: dict[str, Any] = (await ask(found, WHO_AM_I))["status"]["userInfo"]
    return info


def bare(cluster: RealCluster) -> ClusterConfig:
    """How to reach and trust it, without saying who we are."""
    return ClusterConfig(server=cluster.server, ca_data=cluster.authority.certificate)


async def account_token(cluster: RealCluster) -> str:
    request = HttpRequest(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        headers={"Content-Type": "application/json"},
        body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":600}}',
        action="create a token",
    )
    async with transport(cluster.config) as found:
        token: str = (await ask(found, request))["status"]["token"]
        return token


async def test_a_client_certificate_of_a_kubeconfig(real_cluster: RealCluster) -> None:
    async with transport(load_config(real_cluster.kubeconfig_for("jane", ["dev"]))) as found:
        info = await user(found)

    assert info["username"] == "jane"
    assert "dev" in info["groups"]


async def test_impersonation(real_cluster: RealCluster) -> None:
    who = Impersonation("jane", "u-1", ("dev", "ops"), {"acme.com/project": ("a", "b")})
    async with transport(replace(real_cluster.config, impersonate=who)) as found:
        info = await user(found)

    assert (info["username"], info["uid"]) == ("jane", "u-1")
    assert {"dev", "ops"} <= set(info["groups"])
    assert info["extra"] == {"acme.com/project": ["a", "b"]}


@pytest.mark.capability("C12")
async def test_the_files_of_a_pod_and_the_rotation_of_its_token(real_cluster: RealCluster, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(await account_token(real_cluster))
    (tmp_path / "ca.crt").write_bytes(real_cluster.authority.certificate)
    host, _, port = real_cluster.server.removeprefix("https://").partition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    clock = ManualClock()
    async with transport(in_cluster_config(environ=environ, directory=tmp_path), clock) as found:
        assert (await user(found))["username"] == "system:serviceaccount:default:default"

        (tmp_path / "token").write_text("not.a.token")
        clock.jump(2)
        with pytest.raises(Unauthorized):
            await user(found)

        (tmp_path / "token").write_text(await account_token(real_cluster))
        assert (await user(found))["username"] == "system:serviceaccount:default:default", "at once, after a 401"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("kind", ["token", "certificate"])
async def test_an_exec_plugin(real_cluster: RealCluster, tmp_path: Path, version: str, kind: str) -> None:
    pair = real_cluster.authority.client("jane")
    status = (
        {"token": await account_token(real_cluster)}
        if kind == "token"
        else {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()}
    )
    answer = {"apiVersion": f"client.authentication.k8s.io/{version}", "kind": "ExecCredential", "status": status}
    (tmp_path / "login").write_text(f"#!{sys.executable}\nprint({json.dumps(answer)!r})\n")
    (tmp_path / "login").chmod(0o755)
    kubeconfig = yaml.safe_load(real_cluster.kubeconfig.read_text())
    plugin = {"apiVersion": answer["apiVersion"], "command": "./login", "interactiveMode": "Never"}
    for entry in kubeconfig["users"]:
        entry["user"] = {"exec": plugin}
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig))

    async with transport(load_config(tmp_path / "config")) as found:
        name = (await user(found))["username"]

    assert name == ("system:serviceaccount:default:default" if kind == "token" else "jane")


async def test_credentials_that_it_does_not_know(real_cluster: RealCluster) -> None:
    async with transport(replace(bare(real_cluster), token="not.a.token")) as found:
        with pytest.raises(Unauthorized) as caught:
            await user(found)

    assert str(caught.value).startswith(f"ask who I am: Unauthorized; {found.host} refuses these credentials: renew")


async def test_an_expired_client_certificate(real_cluster: RealCluster, tmp_path: Path) -> None:
    expires = datetime.now(UTC) - timedelta(hours=1)
    me = real_cluster.authority.client("jane", expires=expires)
    (tmp_path / "crt").write_bytes(me.certificate)
    config = replace(bare(real_cluster), client_cert_file=tmp_path / "crt", client_key_data=me.key)
    async with transport(config) as found:
        with pytest.raises(TlsError, match=f"{found.host}: the client certificate {tmp_path / 'crt'} expired on"):
            await user(found)


async def test_without_its_ca_it_is_not_talked_to(real_cluster: RealCluster) -> None:
    async with transport(ClusterConfig(server=real_cluster.server, token="secret")) as found:
        with pytest.raises(TlsError, match="signed by an unknown CA"):
            await user(found)


async def test_what_it_refuses_becomes_the_error_of_its_reason(real_cluster: RealCluster) -> None:
    async with transport(real_cluster.config) as found:
        with pytest.raises(NotFound) as missing:
            await ask(found, HttpRequest("GET", "/api/v1/namespaces/default/configmaps/nope", action="get it"))
    async with transport(load_config(real_cluster.kubeconfig_for("jane"))) as found:
        with pytest.raises(Forbidden) as forbidden:
            await ask(found, HttpRequest("GET", "/api/v1/namespaces/default/configmaps", action="list them"))

    assert missing.value.details == {"name": "nope", "kind": "configmaps"}
    assert str(forbidden.value).endswith('; add @rbac("", "configmaps", "list") or grant it to user "jane"')


async def test_a_list_of_twenty_megabytes(real_cluster: RealCluster) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    data = {"blob": "x" * 1_000_000}
    async with transport(real_cluster.config) as found:
        for number in range(21):
            body = json.dumps({"metadata": {"name": f"large-{number}", "labels": {"large": "yes"}}, "data": data})
            headers = {"Content-Type": "application/json"}
            await ask(found, HttpRequest("POST", path, headers=headers, body=body.encode(), action="create it"))
        large = (("labelSelector", "large=yes"),)
        whole = await (await found.send(HttpRequest("GET", path, large))).read()
        pieces = b"".join([chunk async for chunk in (await found.send(HttpRequest("GET", path, large))).chunks()])
        await ask(found, HttpRequest("DELETE", path, large, action="delete them"))

    assert len(whole) > 21_000_000
    assert len(pieces) == len(whole)

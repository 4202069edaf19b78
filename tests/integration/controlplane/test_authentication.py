"""Who asks: certificates, static tokens, tokens of ServiceAccounts; and what is said to those who ask who they are."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flyball import errors
from flyball.api import ObjectMeta
from flyball.client import Client
from flyball.client.transport import HttpRequest
from flyball.clock import ManualClock
from flyball.controlplane.apiserver.request import Request, User
from flyball.controlplane.kubeconfig import Access, write_kubeconfig
from flyball.k8s.core.v1 import Container, Pod, PodSpec, Secret, ServiceAccount
from flyball.testing import Cluster
from flyball.testing.binaries import BinariesMissing, find_binaries

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/robot/token"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
async def turned() -> AsyncIterator[tuple[Cluster, ManualClock]]:
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        await cluster.client.create(ServiceAccount.new("robot"))
        yield cluster, clock


async def ask(cluster: Cluster, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    """A request with a token, or as the administrator without one."""
    raw = json.dumps(body).encode() if body is not None else b""
    if token:
        request = Request(method, path, (), {"authorization": f"Bearer {token}"}, raw)
        answer = await cluster.embedded.server.handle(request)
        return answer.status, json.loads(answer.body)
    response = await cluster.transport.send(HttpRequest(method, path, body=raw))
    return response.status, json.loads(await response.read())


async def issue(cluster: Cluster, **spec: Any) -> str:
    status, answer = await ask(cluster, "POST", ACCOUNT, {"spec": spec})
    assert status == 201, answer
    return str(answer["status"]["token"])


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))))


async def test_a_token_speaks_for_its_service_account(turned: tuple[Cluster, ManualClock]) -> None:
    cluster, clock = turned
    token = await issue(cluster)
    uid = (await cluster.client.get(ServiceAccount, "robot")).metadata.uid
    said = claims(token)
    now = int(clock.now().timestamp())
    assert (said["aud"], said["iat"], said["exp"]) == (["https://kubernetes.default.svc"], now, now + 3600)
    assert said["kubernetes.io"] == {"namespace": "default", "serviceaccount": {"name": "robot", "uid": uid}}
    status, answer = await ask(cluster, "POST", SELF, {}, token)
    assert status == 201
    assert answer["status"]["userInfo"] == {
        "username": "system:serviceaccount:default:robot",
        "uid": uid,
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={said['jti']}"]},
    }


async def test_a_token_ends_by_the_clock_of_the_server(turned: tuple[Cluster, ManualClock]) -> None:
    cluster, clock = turned
    token = await issue(cluster, expirationSeconds=600)
    await clock.advance(599)
    assert (await ask(cluster, "GET", "/api/v1/pods", token=token))[0] == 200
    await clock.advance(2)
    status, answer = await ask(cluster, "GET", "/api/v1/pods", token=token)
    assert (status, answer["reason"]) == (401, "Unauthorized")


async def test_a_token_is_for_its_audience(turned: tuple[Cluster, ManualClock]) -> None:
    cluster, _ = turned
    token = await issue(cluster, audiences=["me"])
    assert (await ask(cluster, "GET", "/api/v1/pods", token=token))[0] == 401
    _, review = await ask(cluster, "POST", REVIEW, {"spec": {"token": token, "audiences": ["you", "me"]}})
    assert review["status"]["authenticated"] is True
    assert review["status"]["audiences"] == ["me"]
    _, review = await ask(cluster, "POST", REVIEW, {"spec": {"token": token}})
    assert review["status"] == {
        "user": {},
        "error": '[invalid bearer token, token audiences ["me"] is invalid for the target audiences '
        '["https://kubernetes.default.svc"]]',
    }


async def test_a_token_ends_with_its_service_account(turned: tuple[Cluster, ManualClock]) -> None:
    cluster, _ = turned
    token = await issue(cluster)
    await cluster.client.delete(ServiceAccount, "robot")
    assert (await ask(cluster, "GET", "/api/v1/pods", token=token))[0] == 401
    await cluster.client.create(ServiceAccount.new("robot"))
    assert (await ask(cluster, "GET", "/api/v1/pods", token=token))[0] == 401


async def test_a_bound_token_ends_with_its_object(turned: tuple[Cluster, ManualClock]) -> None:
    cluster, clock = turned
    secret = await cluster.client.create(Secret.new("s"))
    spec = PodSpec(service_account_name="robot", containers=[Container(name="a", image="i")])
    pod = await cluster.client.create(Pod.new("p", spec=spec))
    tokens = [
        await issue(cluster, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name})
        for kind, name in (("Secret", "s"), ("Pod", "p"))
    ]
    assert claims(tokens[0])["kubernetes.io"]["secret"] == {"name": "s", "uid": secret.metadata.uid}
    _, review = await ask(cluster, "POST", REVIEW, {"spec": {"token": tokens[1]}})
    assert review["status"]["user"]["extra"]["authentication.kubernetes.io/pod-uid"] == [pod.metadata.uid]
    await cluster.client.delete(secret)
    await cluster.client.delete(pod)
    await clock.advance(120)
    for token in tokens:
        assert (await ask(cluster, "GET", "/api/v1/pods", token=token))[0] == 401


@pytest.mark.parametrize(
    ("spec", "status", "told"),
    [
        ({"expirationSeconds": 10}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 1 << 33}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"expirationSeconds": "x"}, 400, "cannot be handled as a TokenRequest"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "x"}}, 404, 'pods "x" not found'),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
    ],
)
async def test_requests_for_tokens_that_are_refused(
    turned: tuple[Cluster, ManualClock], spec: Any, status: int, told: str
) -> None:
    found, answer = await ask(turned[0], "POST", ACCOUNT, {"spec": spec})
    assert found == status
    assert told in answer["message"]


@pytest.mark.parametrize("token", ["garbage", "a.b.c", "e30.e30.AAAA", "..", "é.é.é"])
async def test_what_is_no_token_is_nobody(turned: tuple[Cluster, ManualClock], token: str) -> None:
    cluster, _ = turned
    assert (await ask(cluster, "GET", "/api/v1/pods", token=token))[0] == 401
    _, review = await ask(cluster, "POST", REVIEW, {"spec": {"token": token}})
    assert review["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_a_changed_token_is_nobody(turned: tuple[Cluster, ManualClock]) -> None:
    cluster, _ = turned
    head, body, signature = (await issue(cluster)).split(".")
    other = json.dumps({**claims(f"{head}.{body}.x"), "sub": "system:serviceaccount:kube-system:root"})
    forged = base64.urlsafe_b64encode(other.encode()).rstrip(b"=").decode()
    for token in (f"{head}.{forged}.{signature}", f"{head}.{body}.{signature[::-1]}", f"{head}.{body}."):
        assert (await ask(cluster, "GET", "/api/v1/pods", token=token))[0] == 401


async def test_static_tokens(cluster: Cluster) -> None:
    cluster.embedded.server.authenticator.tokens["t0ken"] = User("jane", ("dev",))
    _, answer = await ask(cluster, "POST", SELF, {}, "t0ken")
    assert answer["status"]["userInfo"] == {"username": "jane", "groups": ["dev", "system:authenticated"]}
    _, review = await ask(cluster, "POST", REVIEW, {"spec": {"token": "t0ken"}})
    assert review["status"]["user"]["username"] == "jane"


async def test_others_can_verify_tokens(turned: tuple[Cluster, ManualClock]) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    cluster, _ = turned
    _, found = await ask(cluster, "GET", "/.well-known/openid-configuration")
    assert found["issuer"] == "https://kubernetes.default.svc"
    assert found["jwks_uri"].endswith("/openid/v1/jwks")
    _, keys = await ask(cluster, "GET", "/openid/v1/jwks")

    def raw(text: str) -> bytes:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

    x, y = (int.from_bytes(raw(keys["keys"][0][name]), "big") for name in "xy")
    head, body, signature = (await issue(cluster)).split(".")
    assert json.loads(raw(head)) == {"alg": "ES256", "kid": keys["keys"][0]["kid"]}
    halves = raw(signature)
    pair = utils.encode_dss_signature(int.from_bytes(halves[:32], "big"), int.from_bytes(halves[32:], "big"))
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    public.verify(pair, f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))


async def test_the_client_gets_tokens_and_uses_them(cluster_server: Cluster) -> None:
    await cluster_server.client.create(ServiceAccount.new("robot"))
    token = await cluster_server.client.token("robot", expires_in=timedelta(minutes=20))
    config = replace(cluster_server.config, client_cert_data=None, client_key_data=None, token=token.token)
    async with Client(config) as client:
        await client.list(Pod)
    assert cluster_server.requests[-1].user == "system:serviceaccount:default:robot"


async def test_nobody_gets_nothing(cluster_server: Cluster) -> None:
    nobody = replace(cluster_server.config, client_cert_data=None, client_key_data=None)
    async with Client(nobody, retry=None) as client:
        with pytest.raises(errors.Forbidden, match='User "system:anonymous" cannot list resource "pods"'):
            await client.list(Pod)
    stranger = replace(nobody, token="wrong")
    async with Client(stranger, retry=None) as client:
        with pytest.raises(errors.Unauthorized):
            await client.list(Pod)


ADMISSION = "/apis/admissionregistration.k8s.io/v1"
ACCESS = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"{ADMISSION}/validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        (f"{ADMISSION}/mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        (f"{ADMISSION}/validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        (f"{ADMISSION}/validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        (f"{ACCESS}/selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        (f"{ACCESS}/selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        (f"{ACCESS}/subjectaccessreviews", "SubjectAccessReview"),
        (f"{ACCESS}/namespaces/default/localsubjectaccessreviews", "LocalSubjectAccessReview"),
    ],
)
async def test_what_nobody_would_act_on_is_refused(cluster: Cluster, path: str, kind: str) -> None:
    status, answer = await ask(cluster, "POST", path, {"metadata": {"name": "a"}, "spec": {}})
    assert (status, answer["reason"]) == (501, "NotImplemented")
    assert answer["message"].startswith(f"{kind} is not supported by this server: ")
    if path.startswith(ADMISSION):
        response = await cluster.transport.send(
            HttpRequest(
                "PATCH",
                f"{path}/a",
                (("fieldManager", "me"),),
                {"Content-Type": "application/apply-patch+yaml"},
                json.dumps(
                    {"kind": kind, "apiVersion": path[6:].rpartition("/")[0], "metadata": {"name": "a"}}
                ).encode(),
            )
        )
        assert response.status == 501
        assert (await ask(cluster, "GET", path))[1]["items"] == []


async def test_impersonation_is_refused(cluster: Cluster) -> None:
    request = Request("GET", "/api/v1/pods", (), {"impersonate-user": "jane"})
    answer = await cluster.embedded.server.handle(request, User("root"))
    assert answer.status == 400
    assert b"impersonation is not supported" in answer.body


def test_kubectl_knows_who_it_is(cluster_server: Cluster, tmp_path: Path) -> None:
    try:
        kubectl = str(find_binaries().path("kubectl"))
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    cluster_server.sync.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))

    def run(*words: str) -> str:
        done = subprocess.run(
            [kubectl, f"--kubeconfig={cluster_server.kubeconfig}", *words], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "kubernetes-admin" in run("auth", "whoami")
    access = Access(cluster_server.url, b"", token=run("create", "token", "robot").strip())
    as_robot = tmp_path / "robot"
    write_kubeconfig(as_robot, replace(access, authority=cluster_server.embedded.keys.authority.certificate))
    assert "system:serviceaccount:default:robot" in run("auth", "whoami", f"--kubeconfig={as_robot}")

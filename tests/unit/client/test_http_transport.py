"""Requests over HTTP: what goes out, what comes back, and what is said when nothing useful does."""

from __future__ import annotations

import asyncio
import gzip
import math
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support.servers import expired_server_pair, http_server, raw_server, server_tls, tls_refusal, unused_port

from flyball.client.cluster_config import ClusterConfig, Impersonation
from flyball.client.http_transport import HttpTransport
from flyball.client.transport import HttpRequest
from flyball.clock import ManualClock
from flyball.errors import (
    ConfigError,
    ConnectError,
    ConnectionLost,
    CredentialError,
    MalformedAnswer,
    RequestTimeout,
    TlsError,
    TransportError,
)
from flyball.testing.certificates import CertificateAuthority, KeyPair

GET = HttpRequest("GET", "/api/v1/pods/a", action="get Pod default/a")


@asynccontextmanager
async def transport(server: str, **options: Any) -> AsyncGenerator[HttpTransport]:
    given = {name: options.pop(name) for name in ("timeout", "clock") if name in options}
    found = HttpTransport(ClusterConfig(server=server, **options), **given)
    try:
        yield found
    finally:
        await found.close()


async def echo(request: web.Request) -> web.Response:
    """Answers with what came."""
    headers = [[name, value] for name, value in request.headers.items()]
    body = (await request.read()).decode()
    return web.json_response(
        {"method": request.method, "path": request.raw_path, "headers": headers, "body": body},
        headers={"X-Mark": "yes"},
    )


async def ask(found: HttpTransport, request: HttpRequest = GET) -> Any:
    import json

    return json.loads(await (await found.send(request)).read())


class TestRequests:
    async def test_everything_goes_out_as_it_was_written(self) -> None:
        request = HttpRequest(
            "POST",
            "/apis/x.io/v1/namespaces/a/foos",
            (("labelSelector", "a in (b,c),d!=e&f"), ("fieldValidation", "Strict"), ("x", "ü+ ")),
            {"Content-Type": "application/json", "Accept": "application/json;as=Table"},
            b'{"a":1}',
        )
        async with http_server(echo) as url, transport(url) as found:
            answer = await found.send(request)
            head = (answer.status, answer.headers["x-mark"], answer.headers["X-Mark"])
            await answer.close()
            seen = await ask(found, request)

        headers = {name.lower(): value for name, value in seen["headers"]}
        assert head == (200, "yes", "yes")
        assert (seen["method"], seen["body"]) == ("POST", '{"a":1}')
        assert seen["path"] == (
            "/apis/x.io/v1/namespaces/a/foos?labelSelector=a%20in%20%28b%2Cc%29%2Cd%21%3De%26f&fieldValidation=Strict"
            "&x=%C3%BC%2B%20"
        )
        assert headers["accept"] == "application/json;as=Table"
        assert headers["content-type"] == "application/json"
        assert headers["user-agent"] == "flyball"
        assert headers["accept-encoding"] == "gzip"

    @pytest.mark.parametrize(
        ("path", "sent"),
        [
            ("/a/system:controller:x", "/a/system:controller:x"),
            ("/a/b%2Fc", "/a/b%2Fc"),
            ("/a/b c?d#e", "/a/b%20c%3Fd%23e"),
            ("/a/ü\r\nHost: evil", "/a/%C3%BC%0D%0AHost:%20evil"),
            ("/a/../b", "/a/../b"),
        ],
    )
    async def test_no_path_can_become_more_than_a_path(self, path: str, sent: str) -> None:
        async with http_server(echo) as url, transport(url) as found:
            assert (await ask(found, HttpRequest("GET", path)))["path"] == sent

    async def test_the_path_of_the_server_comes_first(self) -> None:
        async with http_server(echo) as url, transport(f"{url}/k8s/clusters/c-1/") as found:
            assert (await ask(found))["path"] == "/k8s/clusters/c-1/api/v1/pods/a"

    async def test_who_asks_and_in_whose_name(self) -> None:
        who = Impersonation("jané", "7", ("a", "b"), {"acme.com/Scopes": ("x", "y")})
        async with http_server(echo) as url, transport(url, token="abc", impersonate=who) as found:
            headers = (await ask(found))["headers"]

        assert ["Authorization", "Bearer abc"] in headers
        assert [pair for pair in headers if pair[0].startswith("Impersonate")] == [
            ["Impersonate-User", "jané"],
            ["Impersonate-Uid", "7"],
            ["Impersonate-Group", "a"],
            ["Impersonate-Group", "b"],
            ["Impersonate-Extra-acme.com%2FScopes", "x"],
            ["Impersonate-Extra-acme.com%2FScopes", "y"],
        ]

    async def test_user_name_and_password(self) -> None:
        async with http_server(echo) as url, transport(url, username="me", password="pw:ü") as found:
            assert ["Authorization", "Basic bWU6cHc6w7w="] in (await ask(found))["headers"]

    async def test_compression_can_be_refused(self) -> None:
        async with http_server(echo) as url, transport(url, disable_compression=True) as found:
            assert ["Accept-Encoding", "identity"] in (await ask(found))["headers"]

    async def test_a_body_of_any_size_goes_out(self) -> None:
        async def count(request: web.Request) -> web.Response:
            got = sum([len(chunk) async for chunk in request.content.iter_any()])
            return web.json_response([got, request.headers.get("Content-Length")])

        body = b"x" * 5_000_000
        async with http_server(count) as url, transport(url) as found:
            assert await ask(found, HttpRequest("PUT", "/", body=body)) == [5_000_000, "5000000"]

    async def test_connections_are_kept(self) -> None:
        peers: set[Any] = set()

        async def handler(request: web.Request) -> web.Response:
            assert request.transport is not None
            peers.add(request.transport.get_extra_info("peername"))
            return web.Response(status=404, text="no")

        async with http_server(handler) as url, transport(url) as found:
            for _ in range(5):
                await (await found.send(GET)).read()

        assert len(peers) == 1

    async def test_many_requests_run_at_once(self) -> None:
        arrived = 0
        all_there = asyncio.Event()

        async def handler(_: web.Request) -> web.Response:
            nonlocal arrived
            arrived += 1
            if arrived == 150:
                all_there.set()
            await all_there.wait()
            return web.Response()

        async with http_server(handler) as url, transport(url) as found:
            answers = await asyncio.gather(*(found.send(GET) for _ in range(150)))
            assert {answer.status for answer in answers} == {200}
            for answer in answers:
                await answer.close()


class TestAnswers:
    async def test_refusals_come_back_unraised(self) -> None:
        async def handler(_: web.Request) -> web.Response:
            return web.Response(status=500, text="<html>")

        async with http_server(handler) as url, transport(url) as found:
            answer = await found.send(GET)
            assert (answer.status, await answer.read()) == (500, b"<html>")

    async def test_redirections_are_not_followed(self) -> None:
        seen: list[str] = []

        async def handler(request: web.Request) -> web.Response:
            seen.append(request.path)
            return web.Response(status=302, headers={"Location": "/elsewhere"})

        async with http_server(handler) as url, transport(url, token="abc") as found:
            answer = await found.send(GET)
            assert (answer.status, answer.headers["Location"]) == (302, "/elsewhere")
            await answer.close()

        assert seen == ["/api/v1/pods/a"]

    async def test_one_line_of_twenty_megabytes(self) -> None:
        async def handler(_: web.Request) -> web.Response:
            return web.Response(body=b"x" * 20_000_000)

        async with http_server(handler) as url, transport(url) as found:
            assert len(await (await found.send(GET)).read()) == 20_000_000
            chunks = [len(chunk) async for chunk in (await found.send(GET)).chunks()]

        assert sum(chunks) == 20_000_000
        assert len(chunks) > 1

    async def test_compressed_answers_are_unpacked(self) -> None:
        async def handler(_: web.Request) -> web.Response:
            return web.Response(body=gzip.compress(b"y" * 100_000), headers={"Content-Encoding": "gzip"})

        async with http_server(handler) as url, transport(url) as found:
            assert await (await found.send(GET)).read() == b"y" * 100_000

    async def test_large_headers_are_taken(self) -> None:
        async def handler(_: web.Request) -> web.Response:
            return web.Response(headers={"Warning": f'299 - "{"w" * 60_000}"'})

        async with http_server(handler) as url, transport(url) as found:
            answer = await found.send(GET)
            assert len(answer.headers["Warning"]) > 60_000
            await answer.close()

    async def test_a_stream_comes_piece_by_piece(self) -> None:
        more = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"one")
            await more.wait()
            await answer.write(b"two")
            return answer

        async with http_server(handler) as url, transport(url) as found:
            chunks = (await found.send(HttpRequest("GET", "/", timeout=math.inf))).chunks()
            assert await anext(chunks) == b"one"
            more.set()
            assert await anext(chunks) == b"two"
            assert [chunk async for chunk in chunks] == []

    async def test_a_stream_may_be_dropped(self) -> None:
        gone = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            try:
                while True:
                    await answer.write(b"x" * 100_000)
            except ConnectionError:
                gone.set()
                raise

        async with http_server(handler) as url, transport(url) as found:
            answer = await found.send(GET)
            await answer.close()
            await answer.close()
            async with asyncio.timeout(10):
                await gone.wait()

    async def test_a_closed_client_says_so(self) -> None:
        async with transport("http://127.0.0.1:1") as found:
            await found.close()
            await found.close()
            with pytest.raises(TransportError, match="the client is closed; make a new one"):
                await found.send(GET)


async def failure(found: HttpTransport, kind: type[TransportError], request: HttpRequest = GET) -> str:
    with pytest.raises(TransportError) as caught:
        await (await found.send(request)).read()
    assert type(caught.value) is kind, repr(caught.value)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"{request.action}: {found.host}: "), line
    assert "; " in line, "cause; remedy"
    return line.removeprefix(f"{request.action}: {found.host}: ")


async def nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


def says(*parts: bytes, stay: bool = False) -> Callable[..., Any]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
        if stay:
            await asyncio.Event().wait()

    return talk


class TestFailures:
    """Each is one line that names host, cause and remedy, and its class tells whether the server can have acted."""

    async def test_nobody_listens(self) -> None:
        async with transport(f"http://127.0.0.1:{await unused_port()}") as found:
            assert (await failure(found, ConnectError)).startswith("connection refused; check that the server runs")

    async def test_the_name_is_unknown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def unknown(*_: object, **__: object) -> object:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
        async with transport("https://cluster.invalid:6443") as found:
            line = await failure(found, ConnectError)

        assert line == (
            "the host name cannot be resolved (Name or service not known); check it in the configuration, and DNS"
        )

    async def test_no_connection_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("flyball.client.http_transport.CONNECT_SECONDS", 0.05)
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            with socket.create_connection(full.getsockname()):
                async with transport(f"https://127.0.0.1:{full.getsockname()[1]}") as found:
                    assert (await failure(found, ConnectError)).startswith("no connection within")

    async def test_silence_before_the_answer(self) -> None:
        async with raw_server(says(stay=True)) as host, transport(f"http://{host}", timeout=0.05) as found:
            line = await failure(found, RequestTimeout)

        assert line == "the server was silent for 0.05 s; look at its load, or set a longer timeout"

    async def test_silence_within_the_answer(self) -> None:
        part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"
        async with raw_server(says(part, stay=True)) as host, transport(f"http://{host}") as found:
            slow = HttpRequest("GET", "/", timeout=0.05, action="list Pods")
            assert "silent for 0.05 s" in await failure(found, RequestTimeout, slow)
            answer = await found.send(slow)
            with pytest.raises(RequestTimeout):
                assert [chunk async for chunk in answer.chunks()] == [b"abc"]

    async def test_silence_is_counted_from_the_last_byte(self) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
            for _ in range(8):
                await asyncio.sleep(0.04)
                writer.write(b"x")
                await writer.drain()

        async with raw_server(talk) as host, transport(f"http://{host}", timeout=0.25) as found:
            assert await (await found.send(GET)).read() == b"x" * 8

    async def test_the_default_is_thirty_seconds(self) -> None:
        found = HttpTransport(ClusterConfig(server="http://h"))

        assert found._timeout_of(30.0).sock_read == 30  # pyright: ignore[reportPrivateUsage]
        assert found._timeout == 30  # pyright: ignore[reportPrivateUsage]

    async def test_hung_up_before_the_answer(self) -> None:
        async with raw_server(nothing) as host, transport(f"http://{host}") as found:
            line = await failure(found, ConnectionLost)

        assert line == "the connection broke before the answer came (closed by the server); try again"

    async def test_reset_before_the_answer(self) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            reset(writer)

        async with raw_server(talk) as host, transport(f"http://{host}") as found:
            assert "the connection broke before the answer came" in await failure(found, ConnectionLost)

    @pytest.mark.parametrize(
        "head", [b"Content-Length: 100\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"]
    )
    @pytest.mark.parametrize("rude", [True, False])
    async def test_broken_off_in_its_middle(self, head: bytes, rude: bool) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n" + head)
            await writer.drain()
            if rude:
                reset(writer)

        async with raw_server(talk) as host, transport(f"http://{host}") as found:
            line = await failure(found, ConnectionLost)
            assert line.startswith("the answer broke off in its middle; try again")
            answer = await found.send(GET)
            with pytest.raises(ConnectionLost):
                assert [chunk async for chunk in answer.chunks()] == [b"abc"]

    async def test_not_http(self) -> None:
        async with raw_server(says(b"SSH-2.0-OpenSSH_9.6\r\n")) as host, transport(f"http://{host}") as found:
            line = await failure(found, MalformedAnswer)

        assert line.startswith("the answer is not HTTP (")
        assert "check that the server runs" in line

    async def test_a_write_is_never_sent_twice(self) -> None:
        seen: list[bytes] = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            first = await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            seen.append(first.split()[0])
            second = await reader.readuntil(b"\r\n\r\n")
            seen.append(second.split()[0])

        async with raw_server(talk) as host, transport(f"http://{host}") as found:
            await (await found.send(GET)).read()
            await failure(found, ConnectionLost, HttpRequest("PUT", "/", action="update Pod a"))

        assert seen == [b"GET", b"PUT"]

    async def test_a_header_that_is_none(self) -> None:
        async with http_server(echo) as url, transport(url) as found:
            line = await failure(
                found, TransportError, HttpRequest("GET", "/", headers={"A": "b\r\nC: d"}, action="get")
            )

        assert line.endswith("; check its path and headers")


def reset(writer: asyncio.StreamWriter) -> None:
    import struct

    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture(scope="module")
def stranger() -> CertificateAuthority:
    return CertificateAuthority("stranger")


@pytest.fixture(scope="module")
def pair(authority: CertificateAuthority) -> KeyPair:
    return authority.server(["127.0.0.1", "kubernetes"])


async def peer(request: web.Request) -> web.Response:
    """Answers with the name in the client's certificate; without one it refuses, as an API server does."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert")
    if not certificate:
        return web.json_response({"kind": "Status", "reason": "Unauthorized", "code": 401}, status=401)
    return web.json_response([value for part in certificate["subject"] for _, value in part])


class TestTls:
    async def test_the_clusters_ca_is_enough(self, authority: CertificateAuthority, pair: KeyPair) -> None:
        async with (
            http_server(echo, server_tls(pair)) as url,
            transport(url, ca_data=authority.certificate) as found,
        ):
            assert (await ask(found))["method"] == "GET"

    async def test_without_ca_the_systems_are_asked(self, pair: KeyPair) -> None:
        async with http_server(echo, server_tls(pair)) as url, transport(url) as found:
            line = await failure(found, TlsError)

        assert line.startswith("the server's certificate is signed by an unknown CA (")
        assert line.endswith("; set certificate-authority to the right CA")

    async def test_a_strange_server_is_not_talked_to(self, stranger: CertificateAuthority, pair: KeyPair) -> None:
        async with (
            http_server(echo, server_tls(pair)) as url,
            transport(url, ca_data=stranger.certificate, token="abc") as found,
        ):
            assert "unknown CA" in await failure(found, TlsError)

    async def test_another_name(self, authority: CertificateAuthority) -> None:
        elsewhere = server_tls(authority.server(["kubernetes"]))
        async with http_server(echo, elsewhere) as url:
            async with transport(url, ca_data=authority.certificate) as found:
                line = await failure(found, TlsError)
            async with transport(url, ca_data=authority.certificate, tls_server_name="kubernetes") as found:
                assert (await ask(found))["method"] == "GET"

        assert line.startswith("the server's certificate is for another name (")
        assert "set tls-server-name" in line

    async def test_an_expired_server(self, authority: CertificateAuthority) -> None:
        expired = expired_server_pair(authority, "kubernetes", datetime.now(UTC) - timedelta(days=1))
        async with (
            http_server(echo, server_tls(expired)) as url,
            transport(url, ca_data=authority.certificate, tls_server_name="kubernetes") as found,
        ):
            line = await failure(found, TlsError)

        assert line == "the server's certificate has expired; renew it on the server, or correct this machine's clock"

    async def test_unchecked_with_a_warning(self, pair: KeyPair, caplog: pytest.LogCaptureFixture) -> None:
        async with (
            http_server(echo, server_tls(pair)) as url,
            transport(url, insecure_skip_tls_verify=True) as found,
        ):
            assert (await ask(found))["method"] == "GET"

        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "is not checked (insecure-skip-tls-verify); set certificate-authority" in caplog.text

    async def test_https_to_a_server_without_tls(self) -> None:
        async with http_server(echo) as url, transport(url.replace("http:", "https:")) as found:
            line = await failure(found, TlsError)

        assert line.startswith("the server does not speak TLS (")
        assert "http://" in line

    async def test_a_client_certificate(self, authority: CertificateAuthority, pair: KeyPair) -> None:
        me = authority.client("me", ["devs"])
        async with (
            http_server(peer, server_tls(pair, client_ca=authority.certificate)) as url,
            transport(
                url, ca_data=authority.certificate, client_cert_data=me.certificate, client_key_data=me.key
            ) as found,
        ):
            assert sorted(await ask(found)) == ["devs", "me"]

    @pytest.mark.capability("C12")
    async def test_certificates_are_taken_up_when_their_files_change(
        self, authority: CertificateAuthority, stranger: CertificateAuthority, pair: KeyPair, tmp_path: Path
    ) -> None:
        ca, cert, key = tmp_path / "ca", tmp_path / "cert", tmp_path / "key"
        clock = ManualClock()
        one, two = authority.client("one"), authority.client("two")
        ca.write_bytes(authority.certificate)
        cert.write_bytes(one.certificate)
        key.write_bytes(one.key)
        config: dict[str, Any] = {"ca_file": ca, "client_cert_file": cert, "client_key_file": key, "clock": clock}
        async with (
            http_server(peer, server_tls(pair, client_ca=authority.certificate)) as url,
            transport(url, **config) as found,
        ):
            assert await ask(found) == ["one"]

            cert.write_bytes(two.certificate)
            clock.jump(2)
            assert await ask(found) == ["one"], "half a change is not taken up"

            key.write_bytes(two.key)
            clock.jump(2)
            assert await ask(found) == ["two"]

            ca.write_bytes(stranger.certificate)
            clock.jump(2)
            assert "unknown CA" in await failure(found, TlsError)

    async def test_an_expired_client_certificate_that_the_server_ignores(
        self, authority: CertificateAuthority, pair: KeyPair, tmp_path: Path
    ) -> None:
        expires = datetime.now(UTC) - timedelta(days=1)
        me = authority.client("me", expires=expires)
        (tmp_path / "cert").write_bytes(me.certificate)
        async with (
            http_server(peer, server_tls(pair)) as url,
            transport(
                url,
                ca_data=authority.certificate,
                client_cert_file=tmp_path / "cert",
                client_key_data=me.key,
            ) as found,
        ):
            line = await failure(found, TlsError)

        assert line == (
            f"the client certificate {tmp_path / 'cert'} expired on {expires:%Y-%m-%d %H:%M} UTC; "
            "renew it (kubeadm certs renew, or ask who issued it)"
        )

    async def test_an_expired_client_certificate_that_the_server_refuses(
        self, authority: CertificateAuthority, pair: KeyPair
    ) -> None:
        me = authority.client("me", expires=datetime.now(UTC) - timedelta(days=1))
        mine = {"client_cert_data": me.certificate, "client_key_data": me.key}
        with tls_refusal(server_tls(pair, client_ca=authority.certificate, insist=True)) as url:
            async with transport(url, ca_data=authority.certificate, **mine) as found:
                line = await failure(found, TlsError)

        assert "the client certificate of the configuration expired on" in line

    async def test_a_client_certificate_that_is_demanded(self, authority: CertificateAuthority, pair: KeyPair) -> None:
        with tls_refusal(server_tls(pair, client_ca=authority.certificate, insist=True)) as url:
            async with transport(url, ca_data=authority.certificate) as found:
                line = await failure(found, TlsError)

        assert line.startswith("the server refused our TLS (")
        assert line.endswith("; check the client certificate and its CA")


class TestCredentials:
    @pytest.mark.capability("C12")
    async def test_a_token_file_is_read_again(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("one\n")
        clock = ManualClock()
        async with http_server(echo) as url, transport(url, token_file=file, clock=clock) as found:
            assert ["Authorization", "Bearer one"] in (await ask(found))["headers"]
            file.write_text("second")
            clock.jump(2)
            assert ["Authorization", "Bearer second"] in (await ask(found))["headers"]

    @pytest.mark.capability("C12")
    async def test_a_refused_token_is_looked_up_at_once_and_the_request_repeated(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("old")
        seen: list[tuple[str, bytes]] = []

        async def handler(request: web.Request) -> web.Response:
            seen.append((request.headers["Authorization"], await request.read()))
            return web.Response(status=200 if seen[-1][0] == "Bearer fresh" else 401)

        async with http_server(handler) as url, transport(url, token_file=file, clock=ManualClock()) as found:
            assert (await found.send(GET)).status == 401, "the file holds nothing newer"
            file.write_text("fresh")
            assert (await found.send(HttpRequest("POST", "/", body=b"x"))).status == 200

        assert seen == [("Bearer old", b""), ("Bearer old", b"x"), ("Bearer fresh", b"x")]

    async def test_a_token_file_that_is_not_there(self, tmp_path: Path) -> None:
        async with transport("http://h", token_file=tmp_path / "token") as found:
            with pytest.raises(CredentialError) as caught:
                await found.send(GET)

        assert str(caught.value) == (
            f"token file {tmp_path / 'token'}: no such file; "
            "check the path, or whether the pod's service account is mounted"
        )

    async def test_an_exec_plugin_is_asked_again_after_a_refusal(self, tmp_path: Path) -> None:
        from flyball.client.cluster_config import ExecConfig

        counter = tmp_path / "count"
        script = tmp_path / "login"
        script.write_text(
            f"#!/bin/sh\necho x >> {counter}\n"
            f'echo "{{\\"kind\\":\\"ExecCredential\\",\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",'
            f'\\"status\\":{{\\"token\\":\\"t$(wc -l < {counter} | tr -d " ")\\"}}}}"\n'
        )
        script.chmod(0o755)
        good = {"Bearer t1"}
        seen: list[str] = []

        async def handler(request: web.Request) -> web.Response:
            seen.append(request.headers["Authorization"])
            return web.Response(status=200 if seen[-1] in good else 401)

        plugin = ExecConfig(str(script), interactive_mode="Never")
        async with http_server(handler) as url, transport(url, exec_plugin=plugin) as found:
            first = await asyncio.gather(*(found.send(GET) for _ in range(5)))
            assert [answer.status for answer in first] == [200] * 5
            good = {"Bearer t2"}
            again = await asyncio.gather(*(found.send(GET) for _ in range(5)))
            assert [answer.status for answer in again] == [200] * 5
            for answer in (*first, *again):
                await answer.close()

        assert counter.read_text().count("x") == 2, "once for all that wait, once for all that were refused"
        assert seen.count("Bearer t2") == 5


class TestProxies:
    @pytest.mark.parametrize("secure", [False, True])
    async def test_a_tunnel_through_a_proxy(self, secure: bool, authority: CertificateAuthority, pair: KeyPair) -> None:
        asked: list[bytes] = []
        tls = server_tls(pair) if secure else None
        async with (
            http_server(echo, server_tls(pair)) as url,
            raw_server(tunnel(asked), tls) as proxy,
            transport(
                url,
                ca_data=authority.certificate,
                proxy_url=f"{'https' if secure else 'http'}://me:pw@{proxy}",
                token="abc",
            ) as found,
        ):
            assert (await ask(found))["method"] == "GET"

        head = asked[0].decode()
        assert head.startswith(f"CONNECT {url.removeprefix('https://')} HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic bWU6cHc=" in head
        assert "abc" not in head, "the proxy sees no token"

    async def test_a_proxy_that_is_not_there(self) -> None:
        proxy = f"127.0.0.1:{await unused_port()}"
        async with transport("https://cluster:6443", proxy_url=f"http://me:hidden@{proxy}") as found:
            line = await failure(found, ConnectError)

        assert line == f"the proxy {proxy} cannot be reached (connection refused); check proxy-url"

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (b"407 Proxy Authentication Required", "asks for credentials (407); write them into proxy-url"),
            (b"403 Forbidden", "refused the way to the server (403 Forbidden); check its rules"),
        ],
    )
    async def test_a_proxy_that_refuses(self, answer: bytes, said: str) -> None:
        no = b"HTTP/1.1 " + answer + b"\r\nContent-Length: 0\r\n\r\n"
        async with (
            raw_server(says(no)) as proxy,
            transport("https://cluster:6443", proxy_url=f"http://{proxy}") as found,
        ):
            assert await failure(found, ConnectError) == f"the proxy {proxy} {said}"

    def test_a_proxy_that_is_not_supported(self) -> None:
        with pytest.raises(ConfigError, match="SOCKS proxies are not supported; use an http:// or https:// proxy"):
            HttpTransport(ClusterConfig(server="https://h", proxy_url="socks5://h:1"))


def tunnel(asked: list[bytes]) -> Callable[..., Any]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head)
        host, _, port = head.split()[1].decode().partition(":")
        onward = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(pump(reader, onward[1]), pump(onward[0], writer))
        finally:
            onward[1].close()

    return talk


async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        target.write(data)
        await target.drain()
    target.close()

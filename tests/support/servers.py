"""Small servers on loopback for tests: polite ones that speak HTTP, and rude ones that do what a test tells them."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from flyball.testing.certificates import CertificateAuthority, KeyPair

__all__ = ["expired_server_pair", "http_server", "raw_server", "server_tls", "tls_refusal", "unused_port"]

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def http_server(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[str]:
    """An HTTP server that gives every request to one handler; yields its URL."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", r"/{path:[\s\S]*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_server(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """A TCP server that lets a test speak for itself; yields `host:port`. Connections end when `talk` returns."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def tls_refusal(tls: ssl.SSLContext) -> Generator[str]:
    """A server that only shakes hands, says why it refuses (which asyncio's servers don't), and hangs up."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(5)
                    with connection.dup() as plain:
                        with suppress(ssl.SSLError), tls.wrap_socket(connection, server_side=True):
                            continue
                        while plain.recv(65_536):  # until the other side has read why
                            continue

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def server_tls(pair: KeyPair, *, client_ca: bytes | None = None, insist: bool = False) -> ssl.SSLContext:
    """The TLS side of a server; with `client_ca` it asks for a client certificate, with `insist` it demands one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        cert, key = Path(folder, "cert"), Path(folder, "key")
        cert.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(cert, key)
    if client_ca is not None:
        context.load_verify_locations(cadata=client_ca.decode())
        context.verify_mode = ssl.CERT_REQUIRED if insist else ssl.CERT_OPTIONAL
    return context


def expired_server_pair(authority: CertificateAuthority, host: str, expires: datetime) -> KeyPair:
    """A serving certificate that is of no use any more."""
    name = x509.SubjectAlternativeName([x509.DNSName(host)])
    subject = [(NameOID.COMMON_NAME, host)]
    return authority._sign(subject, ExtendedKeyUsageOID.SERVER_AUTH, name, expires)  # pyright: ignore[reportPrivateUsage]


async def unused_port() -> int:
    """A port on which nobody listens."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port

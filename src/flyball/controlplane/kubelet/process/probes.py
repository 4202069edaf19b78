"""Probes and hooks: small questions to a container that runs."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import aiohttp

from flyball.api import IntOrString
from flyball.clock import Clock
from flyball.controlplane.kubelet.process.containers import Running
from flyball.controlplane.kubelet.process.guarding import Guard, GuardLost, NotStarted
from flyball.controlplane.kubelet.process.output import Pump, nothing
from flyball.k8s.core.v1 import Container, ExecAction, HTTPGetAction, Probe, SleepAction, TCPSocketAction

__all__ = ["Answer", "Asking", "Handler", "ask", "probing", "unsupported"]

_OUTPUT: Final = 10 * 1024
_BODY: Final = 10 * 1024
_HOOK_TIME: Final = 365 * 24 * 3600.0


class Answer(NamedTuple):
    """What a probe found, and the words for people."""

    good: bool
    words: str = ""


class Handler(Protocol):
    """What a probe or a hook does."""

    @property
    def exec(self) -> ExecAction | None: ...
    @property
    def http_get(self) -> HTTPGetAction | None: ...
    @property
    def tcp_socket(self) -> TCPSocketAction | None: ...


class Asking(NamedTuple):
    """Whom to ask."""

    running: Running
    guard: Guard
    address: str
    clock: Clock


def unsupported(container: Container) -> str:
    """Say which probe of a container cannot be asked here; empty when all can."""
    named = (
        ("liveness", container.liveness_probe),
        ("readiness", container.readiness_probe),
        ("startup", container.startup_probe),
    )
    for word, probe in named:
        if probe is not None and probe.grpc is not None:
            return f"{word}Probe of container {container.name}: grpc is not supported by Pods as processes; use exec"
    return ""


async def ask(asking: Asking, handler: Handler, seconds: float = _HOOK_TIME) -> Answer:
    """Ask once; `seconds` of real time are given for the answer."""
    sleep: SleepAction | None = getattr(handler, "sleep", None)
    try:
        if handler.exec is not None:
            return await _run(asking, handler.exec.command or [], seconds)
        if handler.http_get is not None:
            return await _get(asking, handler.http_get, seconds)
        if handler.tcp_socket is not None:
            return await _connect(asking, handler.tcp_socket, seconds)
        if sleep is not None:
            await asking.clock.sleep(sleep.seconds)
        return Answer(True)
    except _Unresolved as error:
        return Answer(False, str(error))


class _Unresolved(Exception):
    """A port has no number."""


def _port(container: Container, port: IntOrString) -> int:
    if isinstance(port, int):
        return port
    for one in container.ports or ():
        if one.name == port:
            return one.container_port
    if str(port).isdecimal():
        return int(port)
    raise _Unresolved(f"couldn't find port {port!r} in container {container.name}")


async def _run(asking: Asking, command: list[str], seconds: float) -> Answer:
    running = asking.running
    if running.process is None or running.launch is None:
        return Answer(False, "the container does not run")
    pieces: list[bytes] = []

    def keep(data: bytes) -> None:
        if sum(map(len, pieces)) < _OUTPUT:
            pieces.append(data)

    ours, theirs = os.pipe()
    pump = Pump(ours, keep)
    launch = replace(running.launch, argv=command, tty=False)
    process = asking.guard.beside(running.process, launch, nothing(), theirs, os.dup(theirs))
    try:
        async with asyncio.timeout(seconds):
            await process.started()
            exit_ = await process.exit()
            await asyncio.wait({pump.ended}, timeout=1.0)
    except (NotStarted, GuardLost) as error:
        if isinstance(error, NotStarted) and error.step == "gone":
            await running.process.exit()  # which the kubelet learns in a moment
        return Answer(False, str(error))
    except TimeoutError:
        return Answer(False, f"command timed out: {_quoted(command)} timed out after {seconds:g}s")
    finally:
        process.kill()
        pump.close()
    return Answer(exit_.code == 0, b"".join(pieces)[:_OUTPUT].decode(errors="replace"))


def _quoted(command: list[str]) -> str:
    return '"' + " ".join(command) + '"'


async def _connect(asking: Asking, action: TCPSocketAction, seconds: float) -> Answer:
    host, port = action.host or asking.address, _port(asking.running.known.spec, action.port)
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return Answer(False, f"dial tcp {host}:{port}: i/o timeout")
    except OSError as error:
        return Answer(False, f"dial tcp {host}:{port}: connect: {_reason(error)}")
    writer.close()
    return Answer(True)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)


async def _get(asking: Asking, action: HTTPGetAction, seconds: float) -> Answer:
    host, port = action.host or asking.address, _port(asking.running.known.spec, action.port)
    path = action.path or "/"
    url = f"{(action.scheme or 'HTTP').lower()}://{host}:{port}{path if path.startswith('/') else f'/{path}'}"
    headers = {"User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close"}
    headers.update({one.name: one.value for one in action.http_headers or ()})
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE  # as a kubelet does: it asks whether anybody answers
    try:
        async with (
            asyncio.timeout(seconds),
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=tls) as answer,
        ):
            await answer.content.read(_BODY)
            good = 200 <= answer.status < 400
            return Answer(good, "" if good else f"HTTP probe failed with statuscode: {answer.status}")
    except TimeoutError:
        return Answer(False, f'Get "{url}": context deadline exceeded')
    except aiohttp.ClientConnectorError as error:
        return Answer(False, f'Get "{url}": dial tcp {host}:{port}: connect: {_reason(error.os_error)}')
    except (aiohttp.ClientError, OSError) as error:
        return Answer(False, f'Get "{url}": {error}')


async def probing(asking: Asking, probe: Probe, told: Callable[[Answer], None], turned: Callable[[bool], None]) -> None:
    """Ask again and again by the cluster's clock.

    `told` hears each answer; `turned` hears that enough answers in a row were good, or bad, and hears it again with
    each further answer of that kind.
    """
    clock = asking.clock
    await clock.sleep(probe.initial_delay_seconds or 0)
    good = bad = 0
    while True:
        answer = await ask(asking, probe, probe.timeout_seconds or 1)
        good, bad = (good + 1, 0) if answer.good else (0, bad + 1)
        told(answer)
        if good >= (probe.success_threshold or 1):
            turned(True)
        elif bad >= (probe.failure_threshold or 3):
            turned(False)
        await clock.sleep(probe.period_seconds or 10)

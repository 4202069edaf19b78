"""Credentials from a program: the `exec` plugins of a kubeconfig.

The program gets an `ExecCredential` in `KUBERNETES_EXEC_INFO`, writes one with a token or a client certificate to its
standard output, and is run again when that has expired or the server refuses it. It is started directly, never
through a shell, and what it writes never reaches a log or a message.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from flyball.client.cluster_config import ClusterConfig, ExecConfig
from flyball.errors import CredentialError, one_line

__all__ = ["ExecCredential", "exec_info", "run_plugin"]


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a plugin handed out."""

    token: str | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    """Client certificate and key, PEM, one after the other."""
    expires: datetime | None = None

    def valid_at(self, now: datetime) -> bool:
        """Whether it can still be used; without an expiry it can until the server refuses it."""
        return self.expires is None or now < self.expires


async def run_plugin(plugin: ExecConfig, config: ClusterConfig) -> ExecCredential:
    """Run the plugin once and read what it says; every failure is a `CredentialError` with the plugin's install
    hint.
    """
    interactive = _may_ask(plugin)
    output = await _run(plugin, config, interactive)
    return _parse(plugin, output)


def exec_info(plugin: ExecConfig, config: ClusterConfig, *, interactive: bool) -> bytes:
    """The `ExecCredential` that tells the plugin who asks for what."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(plugin, config)
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})


def _cluster_info(plugin: ExecConfig, config: ClusterConfig) -> dict[str, Any]:
    ca = config.ca_data
    if ca is None and config.ca_file is not None:
        with suppress(OSError):
            ca = Path(config.ca_file).read_bytes()
    info = {
        "server": config.server,
        "tls-server-name": config.tls_server_name,
        "insecure-skip-tls-verify": config.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(ca).decode() if ca else None,
        "proxy-url": config.proxy_url,
        "disable-compression": config.disable_compression,
        "config": plugin.cluster_extension,
    }
    return {name: value for name, value in info.items() if value}


def _may_ask(plugin: ExecConfig) -> bool:
    if plugin.interactive_mode == "Never":
        return False
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise _failed(
            plugin, "it must ask a person (interactiveMode Always), but there is no terminal; log in by hand first"
        )
    return terminal


async def _run(plugin: ExecConfig, config: ClusterConfig, interactive: bool) -> bytes:
    info = exec_info(plugin, config, interactive=interactive).decode()
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env={**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": info},
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
            start_new_session=not interactive,
        )
    except FileNotFoundError:
        raise _failed(plugin, "no such program; install it and put it into PATH") from None
    except PermissionError:
        raise _failed(plugin, "it may not be executed; check its mode (chmod +x)") from None
    except (OSError, ValueError) as error:
        raise _failed(plugin, f"it cannot be started: {one_line(str(error))}; check the command") from None
    try:
        async with asyncio.timeout(None if interactive else plugin.timeout):
            output, complaint = await process.communicate()
    except TimeoutError:
        raise _failed(
            plugin, f"no answer within {plugin.timeout:g} s; run it by hand to see what it waits for"
        ) from None
    finally:
        await _end(process, alone=not interactive)
    if process.returncode != 0:
        said = one_line((complaint or b"").decode("utf-8", "replace"))[-300:]
        how = f"exit code {process.returncode}" + (f": {said}" if said else "")
        raise _failed(plugin, f"{how}; run it by hand, or log in again")
    return output


async def _end(process: asyncio.subprocess.Process, *, alone: bool) -> None:
    """Leave no process behind: one that is still running is killed, with its children when it has a session of its
    own.
    """
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        if alone:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(TimeoutError):  # a child that got away may hold the pipes
        async with asyncio.timeout(5):
            await process.communicate()


def _parse(plugin: ExecConfig, output: bytes) -> ExecCredential:
    try:
        found: object = msgspec.json.decode(output)
    except (msgspec.MsgspecError, ValueError):
        raise _failed(plugin, "its output is not JSON; it must print an ExecCredential") from None
    if not isinstance(found, dict) or cast("dict[str, Any]", found).get("kind") != "ExecCredential":
        raise _failed(plugin, "its output is not an ExecCredential; check that it is a credential plugin")
    answer = cast("dict[str, Any]", found)
    version = answer.get("apiVersion")
    if version != plugin.api_version:
        raise _failed(
            plugin, f"it answers in {version}, asked for {plugin.api_version}; set apiVersion to what it speaks"
        )
    status: object = answer.get("status")
    if not isinstance(status, dict):
        raise _failed(plugin, "its answer has no status; check that it is a credential plugin")
    return _credential(plugin, cast("dict[str, Any]", status))


def _credential(plugin: ExecConfig, status: Mapping[str, Any]) -> ExecCredential:
    token, certificate, key = (
        _text(plugin, status, name) for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if (certificate is None) != (key is None):
        raise _failed(plugin, "it hands out only one of client certificate and key; it must give both")
    if token is None and certificate is None:
        raise _failed(plugin, "it hands out neither a token nor a certificate; log in again")
    pem = f"{certificate}\n{key}\n".encode() if certificate is not None else None
    return ExecCredential(token, pem, _expiry(plugin, status))


def _expiry(plugin: ExecConfig, status: Mapping[str, Any]) -> datetime | None:
    text = _text(plugin, status, "expirationTimestamp")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _failed(plugin, f"expirationTimestamp {text!r} is not an RFC 3339 time; update the plugin")
    return moment


def _text(plugin: ExecConfig, status: Mapping[str, Any], name: str) -> str | None:
    value = status.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise _failed(plugin, f"status.{name} is not text; update the plugin")
    return value


def _failed(plugin: ExecConfig, problem: str) -> CredentialError:
    hint = f" ({one_line(plugin.install_hint)})" if plugin.install_hint else ""
    return CredentialError(f"exec plugin {plugin.command}: {problem}{hint}")

"""Who we are: the headers and the client certificate that go with every request.

`Credentials` answers two questions: what to send now, and, after the server refused that (401), whether there is
something newer. Token files and exec plugins are asked again; what stands in the configuration stays as it is.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from flyball.client.cluster_config import ClusterConfig, ExecConfig, Impersonation
from flyball.client.exec_plugin import ExecCredential, run_plugin
from flyball.client.rotating import RotatingFile
from flyball.clock import Clock
from flyball.errors import CredentialError

__all__ = ["Credentials", "Identity", "credentials_of", "impersonation_headers"]

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """What shows the server who asks; the same object as long as nothing changed."""

    headers: Headers = field(default=(), repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    """PEM of a client certificate and its key, when a plugin handed one out."""


class Credentials(Protocol):
    """Where identities come from.

    Guarantees: `current` is cheap when nothing changed; however many requests wait for it, a plugin runs once. Failures
    are `CredentialError`.
    """

    async def current(self) -> Identity:
        """The identity to use now."""
        ...

    async def renew(self, refused: Identity) -> Identity | None:
        """A newer one than the one that was refused, or None when there is none."""
        ...


def credentials_of(config: ClusterConfig, clock: Clock) -> Credentials:
    """The credentials that a configuration asks for. A token or password given outright goes before a plugin."""
    more = impersonation_headers(config.impersonate)
    if config.token_file is not None:
        return _TokenFile(config, clock, more)
    if config.token is not None:
        return _Fixed(Identity((_bearer(config.token, config.source or "the configuration"), *more)))
    if config.username is not None:
        pair = base64.b64encode(f"{config.username}:{config.password or ''}".encode()).decode()
        return _Fixed(Identity((("Authorization", f"Basic {pair}"), *more)))
    if config.exec_plugin is not None:
        return _Plugin(config.exec_plugin, config, clock, more)
    return _Fixed(Identity(more))


def impersonation_headers(who: Impersonation | None) -> Headers:
    """The headers that ask the server to act as somebody else."""
    if who is None:
        return ()
    headers = [("Impersonate-User", who.user)]
    headers += [("Impersonate-Uid", who.uid)] if who.uid else []
    headers += [("Impersonate-Group", group) for group in who.groups]
    for name, values in who.extra.items():
        headers += [(f"Impersonate-Extra-{quote(name, safe='')}", value) for value in values]
    return tuple(headers)


class _Fixed:
    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def current(self) -> Identity:
        return self._identity

    async def renew(self, refused: Identity) -> Identity | None:
        return None


class _TokenFile:
    def __init__(self, config: ClusterConfig, clock: Clock, more: Headers) -> None:
        remedy = "check the path, or whether the pod's service account is mounted"
        self._file = RotatingFile("token file", config.token_file or "", clock, remedy=remedy)
        self._fallback = config.token
        self._more = more
        self._read = b""
        self._identity = Identity()

    async def current(self) -> Identity:
        return self._look(insist=False)

    async def renew(self, refused: Identity) -> Identity | None:
        found = self._look(insist=True)
        return found if found.headers != refused.headers else None

    def _look(self, *, insist: bool) -> Identity:
        try:
            content = self._file.read(insist=insist)
        except CredentialError:
            if self._fallback is None:
                raise
            content = self._fallback.encode()
        if content != self._read or not self._identity.headers:
            token = content.decode("utf-8", "replace").strip()
            self._identity = Identity((_bearer(token, f"token file {self._file.path}"), *self._more))
            self._read = content
        return self._identity


class _Plugin:
    def __init__(self, plugin: ExecConfig, config: ClusterConfig, clock: Clock, more: Headers) -> None:
        self._plugin = plugin
        self._config = config
        self._clock = clock
        self._more = more
        self._lock = asyncio.Lock()
        self._credential: ExecCredential | None = None
        self._identity = Identity()

    async def current(self) -> Identity:
        if self._usable():
            return self._identity
        async with self._lock:
            if not self._usable():
                await self._ask()
            return self._identity

    async def renew(self, refused: Identity) -> Identity | None:
        async with self._lock:
            if self._identity is refused:
                await self._ask()
            return self._identity if self._identity != refused else None

    def _usable(self) -> bool:
        return self._credential is not None and self._credential.valid_at(self._clock.now())

    async def _ask(self) -> None:
        found = await run_plugin(self._plugin, self._config)
        headers = (_bearer(found.token, f"exec plugin {self._plugin.command}"),) if found.token else ()
        identity = Identity((*headers, *self._more), found.certificate)
        self._credential = found
        if identity != self._identity:
            self._identity = identity


def _bearer(token: str, source: str) -> tuple[str, str]:
    if not token:
        raise CredentialError(f"{source}: the token is empty; log in again, or write one")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise CredentialError(f"{source}: the token has blanks or other characters no token has; write it again")
    return ("Authorization", f"Bearer {token}")

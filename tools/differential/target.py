"""A server to play against: address and credentials. Plain `http.client`: nothing of Flyball is in between."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import urllib.parse
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Answer", "Target", "Watching"]

AGENT = "differential/1"
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass
class Target:
    """One server, as one user; `for_user` gives the same server as another one. It serves one thread at a time."""

    base_url: str
    context: ssl.SSLContext | None = None
    anonymous: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    users: Callable[[str], Target] | None = None

    def __post_init__(self) -> None:
        self._connection: http.client.HTTPConnection | None = None
        self._others: dict[str, Target] = {}

    @classmethod
    def from_kubeconfig(cls, path: Path, users: Callable[[str], Path] | None = None) -> Target:
        """The current context of a kubeconfig: certificates inline or in files, or a token."""
        config: dict[str, Any] = yaml.safe_load(path.read_text())
        chosen = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == chosen["cluster"])
        user = next(u["user"] for u in config["users"] if u["name"] == chosen["user"])
        context = anonymous = None
        if cluster["server"].startswith("https"):
            authority = _pem(cluster, "certificate-authority", path).decode()
            context, anonymous = (ssl.create_default_context(cadata=authority) for _ in range(2))
            if "client-certificate-data" in user or "client-certificate" in user:
                _load_pair(context, _pem(user, "client-certificate", path), _pem(user, "client-key", path))
        headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        others = None if users is None else (lambda name: cls.from_kubeconfig(users(name)))
        return cls(cluster["server"], context, anonymous, headers, others)

    def for_user(self, name: str | None) -> Target:
        """The same server as another user; `anonymous` sends no credentials."""
        if name is None:
            return self
        if name == "anonymous":
            return self._others.setdefault(name, Target(self.base_url, self.anonymous))
        if self.users is None:
            raise LookupError(f"this server has no credentials for {name}")
        if name not in self._others:
            self._others[name] = self.users(name)
        return self._others[name]

    def another(self) -> Target:
        """The same server over a connection of its own: a target serves one thread."""
        return Target(self.base_url, self.context, self.anonymous, self.headers, self.users)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """One request, its whole answer."""
        for attempt in (1, 2):
            connection = self._connection = self._connection or self._connect()
            try:
                connection.request(method, path, body, self._headers(headers))
                answer = connection.getresponse()
                found = Answer(answer.status, answer.getheaders(), answer.read())
            except (http.client.HTTPException, ConnectionError):
                self.close()
                if attempt == 2:
                    raise
                continue
            if answer.will_close:
                self.close()
            return found
        raise AssertionError("unreachable")

    def watch(self, path: str, headers: Mapping[str, str], seconds: float) -> Watching:
        """A watch on a connection of its own."""
        connection = self._connect(seconds)
        connection.request("GET", path, None, self._headers(headers))
        return Watching(connection, connection.getresponse())

    def close(self) -> None:
        """Forget the connections."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for other in self._others.values():
            other.close()

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {"User-Agent": AGENT, "Accept": "application/json"} | dict(self.headers) | dict(headers)

    def _connect(self, seconds: float = SECONDS) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self.base_url)
        host = parts.hostname or "127.0.0.1"
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=self.context)
        return http.client.HTTPConnection(host, parts.port, timeout=seconds)


class Watching:
    """An open watch, event by event."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        self.status = answer.status
        self.headers = answer.getheaders()

    def events(self) -> Generator[dict[str, Any]]:
        """The events until the server ends the watch; TimeoutError when nothing comes for too long."""
        for line in self._answer:
            yield json.loads(line)

    def rest(self) -> bytes:
        """What came instead of events."""
        return self._answer.read()

    def close(self) -> None:
        """End it from our side."""
        self._answer.close()
        self._connection.close()


def _pem(holder: dict[str, Any], name: str, config: Path) -> bytes:
    if f"{name}-data" in holder:
        return base64.b64decode(str(holder[f"{name}-data"]))
    return (config.parent / str(holder[name])).read_bytes()


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL takes files only."""
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder) / "pair.pem"
        pair.touch(mode=0o600)
        pair.write_bytes(certificate + b"\n" + key)
        context.load_cert_chain(pair)

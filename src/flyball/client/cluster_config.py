"""How one API server is reached and as whom: plain values, checked, nothing opened yet.

`flyball.client.config` finds a `ClusterConfig` as kubectl does; one may also be written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from flyball.errors import ConfigError

__all__ = ["ClusterConfig", "ExecConfig", "Impersonation", "InteractiveMode", "split_server"]

InteractiveMode = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """A program that hands out credentials (a kubeconfig's `exec`); never run through a shell."""

    command: str
    """A name that is looked for in PATH, or an absolute path."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Added to the environment of this process."""
    api_version: str = "client.authentication.k8s.io/v1"
    interactive_mode: InteractiveMode = "IfAvailable"
    """Whether the program may ask a person on the terminal."""
    provide_cluster_info: bool = False
    cluster_extension: Any = field(default=None, repr=False)
    """The cluster's extension `client.authentication.k8s.io/exec`, handed to the program with the cluster."""
    install_hint: str = ""
    timeout: float = 60.0
    """Seconds after which a program that asks nobody is stopped."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Somebody else in whose name requests are made; the server checks that this is allowed."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """An API server, how to trust it, and who we are.

    Where something can be given as data and as a file, data wins; of the token file and the token, the file wins as
    long as it can be read. Files are read again when they change. Secrets are left out of `repr()`.
    """

    server: str
    namespace: str = "default"
    ca_file: str | Path | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    client_cert_file: str | Path | None = None
    client_cert_data: bytes | None = field(default=None, repr=False)
    client_key_file: str | Path | None = None
    client_key_data: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_file: str | Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    exec_plugin: ExecConfig | None = None
    impersonate: Impersonation | None = None
    tls_server_name: str | None = None
    """The name in the server's certificate, where it is not the host of `server`."""
    proxy_url: str | None = field(default=None, repr=False)
    """None takes the proxy of the environment, an empty text takes none."""
    insecure_skip_tls_verify: bool = False
    disable_compression: bool = False
    context: str = ""
    """The name of the kubeconfig's context, where there was one."""
    source: str = ""
    """Where all this was found, for messages."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        split_server(self.server, self.source)
        for check in (_check_client_certificate, _check_trust, _check_one_identity, _check_impersonation):
            problem = check(self)
            if problem:
                raise ConfigError(f"{self.source}: {problem}" if self.source else problem)


def split_server(server: str, source: str = "") -> SplitResult:
    """The parts of a server's URL, or a `ConfigError` that says what is wrong with it."""
    before = f"{source}: " if source else ""
    try:
        parts = urlsplit(server)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = SplitResult("", "", "", "", "")
    if not usable:
        raise ConfigError(f"{before}server {server!r} is not a URL; write it as https://host:port")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{before}server carries a user name or password; give them as username and password")
    if parts.query or parts.fragment:
        raise ConfigError(f"{before}server {server!r} has a query or fragment; end it after the path")
    return parts


def _check_client_certificate(config: ClusterConfig) -> str:
    has_cert = config.client_cert_data is not None or config.client_cert_file is not None
    has_key = config.client_key_data is not None or config.client_key_file is not None
    if has_cert == has_key:
        return ""
    given, missing = ("client-certificate", "client-key") if has_cert else ("client-key", "client-certificate")
    return f"{given} is given without {missing}; give both or none"


def _check_trust(config: ClusterConfig) -> str:
    if config.insecure_skip_tls_verify and (config.ca_data is not None or config.ca_file is not None):
        return "certificate-authority and insecure-skip-tls-verify exclude each other; remove one (better the second)"
    return ""


def _check_one_identity(config: ClusterConfig) -> str:
    has_token = config.token is not None or config.token_file is not None
    has_basic = config.username is not None or config.password is not None
    if has_token and has_basic:
        return "both a token and a user name with password are given; keep one of them"
    if has_basic and not config.username:
        return "a password is given without username; give both"
    return ""


def _check_impersonation(config: ClusterConfig) -> str:
    if config.impersonate is not None and not config.impersonate.user:
        return "as-uid, as-groups or as-user-extra are given without `as`; name the user to impersonate"
    return ""

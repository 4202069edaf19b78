"""Whether a proxy stands between us and the server, and which.

`proxy-url` of the kubeconfig decides; without it the environment does (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, upper
or lower case), as for kubectl. Loopback is never reached through a proxy of the environment.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from flyball.client.cluster_config import ClusterConfig, split_server
from flyball.errors import ConfigError

__all__ = ["proxy_of"]


def proxy_of(config: ClusterConfig, environ: Mapping[str, str] = os.environ) -> str | None:
    """The proxy's URL, or None; a kind of proxy that is not supported is a `ConfigError`."""
    if config.proxy_url is not None:
        return _checked(config.proxy_url, f"{config.source or 'the configuration'}: proxy-url") or None
    server = split_server(config.server)
    name = "HTTPS_PROXY" if server.scheme == "https" else "HTTP_PROXY"
    found = environ.get(name) or environ.get(name.lower())
    if not found or _excluded(server.hostname or "", server.port or 443, environ):
        return None
    return _checked(found if "://" in found else f"http://{found}", name)


def _checked(url: str, where: str) -> str:
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigError(f"{where} is not a URL; write it as http://host:port") from None
    if parts.scheme.startswith("socks"):
        raise ConfigError(
            f"{where}: SOCKS proxies are not supported; use an http:// or https:// proxy, or a tunnel (ssh -L)"
        )
    if parts.scheme not in {"http", "https"} or not usable:
        raise ConfigError(f"{where} is not a URL; write it as http://host:port")
    return url


def _excluded(host: str, port: int, environ: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    rules = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return any(_matches(rule.strip().lower(), host.lower(), port, address) for rule in rules.split(",") if rule.strip())


def _matches(rule: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if rule == "*":
        return True
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    name, _, only_port = rule.partition(":")
    if only_port and only_port != str(port):
        return False
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None

"""Kubeconfigs of an embedded cluster: whole in one file, certificates inline, or merged into a person's own."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from flyball.controlplane.files import write_private
from flyball.errors import ConfigError

__all__ = ["Access", "merge_kubeconfig", "write_kubeconfig"]

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Access:
    """How a server is reached, and as whom: by certificate and key, or by token."""

    server: str
    authority: bytes
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    name: str = "flyball"
    """What cluster, user and context are called."""
    namespace: str = "default"

    def config(self) -> Config:
        """A kubeconfig with one cluster, one user and one context."""
        cluster = {"server": self.server}
        if self.authority:
            cluster["certificate-authority-data"] = _encoded(self.authority)
        user = {"token": self.token} if self.token else {}
        if self.certificate:
            user |= {"client-certificate-data": _encoded(self.certificate), "client-key-data": _encoded(self.key)}
        context = {"cluster": self.name, "namespace": self.namespace, "user": self.name}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": self.name, "user": user}],
            "contexts": [{"name": self.name, "context": context}],
            "current-context": self.name,
        }


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def write_kubeconfig(path: Path, access: Access) -> None:
    """Write a complete kubeconfig that only its owner may read."""
    write_private(path, _text(access.config()))


def merge_kubeconfig(path: Path, access: Access) -> None:
    """Put cluster, user and context into a kubeconfig, in place of those of the same name, and make it the current one.

    Everything else in the file stays. Raises ConfigError for a file that is no kubeconfig; it is not touched then.
    """
    present = _read(path)
    for name, value in access.config().items():
        if isinstance(value, list):
            kept = [entry for entry in present.get(name) or [] if _name_of(entry) != access.name]
            present[name] = kept + value
        elif name == "current-context":
            present[name] = value
        else:
            present.setdefault(name, value)
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    write_private(path, _text(present))


def _name_of(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, dict) else None


def _read(path: Path) -> Config:
    if not path.exists():
        return {}
    try:
        found = yaml.safe_load(path.read_bytes()) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {path}: it is no YAML ({' '.join(str(error).split())}); repair it") from None
    lists = ("clusters", "users", "contexts")
    if not isinstance(found, dict) or not all(isinstance(found.get(name) or [], list) for name in lists):
        raise ConfigError(f"kubeconfig {path}: it is no kubeconfig; name another file")
    return found


def _text(config: Config) -> bytes:
    return yaml.safe_dump(config, sort_keys=False, width=1 << 20).encode()

"""Kubeconfig files: found, merged and read as kubectl does.

Several files (`$KUBECONFIG`, separated by `:`) become one: the first file that has an entry of a name, or a current
context, wins, whole entries at a time. Paths within a file are relative to that file. Only what the chosen context
needs is looked at closely, so a broken entry of another cluster harms nobody.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from flyball.client.cluster_config import ClusterConfig, ExecConfig, Impersonation, InteractiveMode
from flyball.errors import ConfigError, one_line

__all__ = ["Kubeconfig", "default_paths", "read_kubeconfig"]

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MODES: dict[str, InteractiveMode] = {"Never": "Never", "IfAvailable": "IfAvailable", "Always": "Always"}
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_INSTEAD_OF_PROVIDER = {
    "gcp": "the exec plugin gke-gcloud-auth-plugin",
    "azure": "the exec plugin kubelogin",
    "oidc": "the exec plugin oidc-login (kubelogin)",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One mapping of a kubeconfig, with where it stands; every reader names that place when it refuses."""

    values: Mapping[str, Any] = field(repr=False)
    file: Path
    where: str

    def _at(self, name: str) -> str:
        if not self.where:
            return name
        return f"{self.where} {name}" if self.where.endswith(":") else f"{self.where}.{name}"

    def refuse(self, name: str, problem: str) -> ConfigError:
        """The error to raise about one of the values."""
        return ConfigError(f"kubeconfig {self.file}: {self._at(name)} {problem}")

    def text(self, name: str) -> str | None:
        """A text; None when it is missing or empty."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise self.refuse(name, f"must be text, not {_kind_of(value)}; put it in quotes")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false when missing."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.refuse(name, f"must be true or false, not {_kind_of(value)}")

    def data(self, name: str) -> bytes | None:
        """Bytes written as base64."""
        value = self.text(name)
        if value is None:
            return None
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.refuse(name, f"is not base64 ({error}); copy it again, or name a file instead") from None

    def path(self, name: str) -> Path | None:
        """A path, relative to the kubeconfig."""
        value = self.text(name)
        return None if value is None else _beside(self.file, value)

    def part(self, name: str) -> Entry | None:
        """A mapping within this one."""
        value = self.values.get(name)
        if value is None:
            return None
        return Entry(_mapping(value, self, name), self.file, self._at(name))

    def parts(self, name: str) -> list[Entry]:
        """A list of mappings within this one."""
        value: object = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refuse(name, f"must be a list, not {_kind_of(value)}")
        items = cast("list[object]", value)
        return [
            Entry(_mapping(item, self, f"{name}[{index}]"), self.file, self._at(f"{name}[{index}]"))
            for index, item in enumerate(items)
        ]

    def texts(self, name: str, of: object = None) -> tuple[str, ...]:
        """A list of texts."""
        value = self.values.get(name) if of is None else of
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            raise self.refuse(name, "must be a list of texts; put every item in quotes")
        return tuple(cast("list[str]", value))


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The merged files."""

    files: tuple[Path, ...]
    current_context: str | None
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]
    contexts: Mapping[str, Entry]

    def select(self, context: str | None = None, namespace: str | None = None) -> ClusterConfig:
        """What a context (None: the current one) stands for."""
        name = context if context is not None else self.current_context
        if name is None:
            raise ConfigError(
                f"{self._named()}: no current-context is set; choose a context of {_names(self.contexts)}, "
                "or run `kubectl config use-context NAME`"
            )
        chosen = self._lookup("context", self.contexts, name)
        cluster = self._lookup("cluster", self.clusters, chosen.text("cluster") or "", f'context "{name}" names ')
        user_name = chosen.text("user")
        user = self._lookup("user", self.users, user_name, f'context "{name}" names ') if user_name else None
        return ClusterConfig(
            **_cluster_values(cluster),
            **(_user_values(user, cluster) if user else {}),
            namespace=namespace or chosen.text("namespace") or "default",
            context=name,
            source=f"kubeconfig {chosen.file}, context {name}",
        )

    def _lookup(self, kind: str, entries: Mapping[str, Entry], name: str, before: str = "") -> Entry:
        found = entries.get(name)
        if found is None:
            raise ConfigError(
                f'{self._named()}: {before}{kind} "{name}", which does not exist; {_there_are(kind, entries)}'
            )
        return found

    def _named(self) -> str:
        return "kubeconfig " + os.pathsep.join(str(file) for file in self.files)


def default_paths(environ: Mapping[str, str]) -> tuple[tuple[Path, ...], bool]:
    """The files to look at, and whether a person named them (`$KUBECONFIG`) or they are just the usual place."""
    listed = tuple(Path(part).expanduser() for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part)
    if listed:
        return tuple(dict.fromkeys(listed)), True
    home = environ.get("HOME")
    return ((Path(home) if home else Path.home()) / ".kube" / "config",), False


def read_kubeconfig(paths: Sequence[Path]) -> Kubeconfig:
    """Read and merge; the first file that has an entry wins. Empty files add nothing unless all are empty."""
    roots = [root for path in paths if (root := _read(path)) is not None]
    if not roots:
        named = ", ".join(str(path) for path in paths)
        raise ConfigError(f"kubeconfig {named}: the file is empty; write one, or point KUBECONFIG at another file")
    current = next((name for root in roots if (name := root.text("current-context"))), None)
    merged = Kubeconfig(
        files=tuple(paths),
        current_context=current,
        clusters=_merge(roots, "clusters", "cluster"),
        users=_merge(roots, "users", "user"),
        contexts=_merge(roots, "contexts", "context"),
    )
    if not merged.contexts and not merged.clusters:
        named = ", ".join(str(root.file) for root in roots)
        raise ConfigError(f"kubeconfig {named}: it holds neither clusters nor contexts; is it a kubeconfig?")
    return merged


def _read(path: Path) -> Entry | None:
    root = _parse(path, _content(path))
    if root is None:
        return None
    if not isinstance(root, dict):
        raise ConfigError(
            f"kubeconfig {path}: it holds {_kind_of(root)}, not a kubeconfig; point KUBECONFIG at another file"
        )
    values = cast("dict[str, Any]", root)
    kind = values.get("kind", "Config")
    if kind != "Config":
        raise ConfigError(f"kubeconfig {path}: it holds a {kind}, not a kubeconfig; point KUBECONFIG at another file")
    return Entry(values, path.absolute(), "")


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"kubeconfig {path}: no such file; create it, or point KUBECONFIG at another file") from None
    except PermissionError:
        raise ConfigError(f"kubeconfig {path}: not readable by this user; change its owner or mode") from None
    except IsADirectoryError:
        raise ConfigError(f"kubeconfig {path}: it is a directory; name the file in it") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"kubeconfig {path}: not UTF-8 text (byte {error.start}); is it a kubeconfig?") from None
    except OSError as error:
        raise ConfigError(f"kubeconfig {path}: cannot be read: {error.strerror or error}; check the path") from None


def _parse(path: Path, content: str) -> object:
    import yaml  # only a process with a kubeconfig needs it: in a pod there is none

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return cast("object", yaml.load(content, Loader=loader))  # noqa: S506 - both loaders are safe ones
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        why = one_line(error.problem or error.context or "broken")
        raise ConfigError(f"kubeconfig {path}: {at}not valid YAML: {why}; correct the file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = one_line(str(error)).partition(" in ")[0]
        raise ConfigError(f"kubeconfig {path}: not valid YAML: {why}; correct the file") from None


def _merge(roots: Sequence[Entry], plural: str, singular: str) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for root in roots:
        for name, entry in _named_entries(root, plural, singular).items():
            merged.setdefault(name, entry)
    return merged


def _named_entries(root: Entry, plural: str, singular: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for item in root.parts(plural):
        name = item.text("name") or ""
        if name in found:
            raise ConfigError(f'kubeconfig {root.file}: {plural} has "{name}" twice; rename or remove one')
        value = item.values.get(singular)
        found[name] = Entry(_mapping(value or {}, item, singular), root.file, f'{singular} "{name}":')
    return found


def _cluster_values(cluster: Entry) -> dict[str, Any]:
    server = cluster.text("server")
    if server is None:
        raise cluster.refuse("server", "is missing; write it as https://host:port")
    ca_data, insecure = cluster.data("certificate-authority-data"), cluster.flag("insecure-skip-tls-verify")
    ca_file = cluster.path("certificate-authority") if ca_data is None else None
    if "://" not in server:
        server = f"{'https' if ca_data or ca_file or insecure else 'http'}://{server}"
    return {
        "server": server,
        "ca_data": ca_data,
        "ca_file": ca_file,
        "insecure_skip_tls_verify": insecure,
        "tls_server_name": cluster.text("tls-server-name"),
        "proxy_url": cluster.text("proxy-url"),
        "disable_compression": cluster.flag("disable-compression"),
    }


def _user_values(user: Entry, cluster: Entry) -> dict[str, Any]:
    provider = user.part("auth-provider")
    if provider is not None:
        name = provider.text("name") or "unnamed"
        instead = _INSTEAD_OF_PROVIDER.get(name, "an exec plugin")
        raise user.refuse("auth-provider", f"({name}) is no longer part of Kubernetes clients; use {instead} instead")
    cert_data, key_data = user.data("client-certificate-data"), user.data("client-key-data")
    plugin = user.part("exec")
    return {
        "client_cert_data": cert_data,
        "client_cert_file": user.path("client-certificate") if cert_data is None else None,
        "client_key_data": key_data,
        "client_key_file": user.path("client-key") if key_data is None else None,
        "token": user.text("token"),
        "token_file": user.path("tokenFile"),
        "username": user.text("username"),
        "password": user.text("password"),
        "exec_plugin": _exec(plugin, cluster) if plugin else None,
        "impersonate": _impersonation(user),
    }


def _exec(plugin: Entry, cluster: Entry) -> ExecConfig:
    version = plugin.text("apiVersion")
    if version not in _EXEC_VERSIONS:
        raise plugin.refuse("apiVersion", f"is {version!r}; update the plugin and write {' or '.join(_EXEC_VERSIONS)}")
    command = plugin.text("command")
    if command is None:
        raise plugin.refuse("command", "is missing; name the program to run")
    mode = plugin.text("interactiveMode")
    if mode is None and version.endswith("/v1"):
        raise plugin.refuse("interactiveMode", "is missing; write Never, IfAvailable or Always")
    if mode is not None and mode not in _MODES:
        raise plugin.refuse("interactiveMode", f"is {mode!r}; write Never, IfAvailable or Always")
    return ExecConfig(
        command=str(_beside(plugin.file, command)) if os.sep in command else command,
        args=plugin.texts("args"),
        env=tuple((item.text("name") or "", item.text("value") or "") for item in plugin.parts("env")),
        api_version=version,
        interactive_mode=_MODES[mode or "IfAvailable"],
        provide_cluster_info=plugin.flag("provideClusterInfo"),
        cluster_extension=_extension(cluster),
        install_hint=plugin.text("installHint") or "",
    )


def _extension(cluster: Entry) -> Any:
    for item in cluster.parts("extensions"):
        if item.text("name") == _EXEC_EXTENSION:
            return item.values.get("extension")
    return None


def _impersonation(user: Entry) -> Impersonation | None:
    extra = user.part("as-user-extra")
    values = {name: extra.texts(name) for name in extra.values} if extra else {}
    found = Impersonation(user.text("as") or "", user.text("as-uid") or "", user.texts("as-groups"), values)
    return found if found != Impersonation("") else None


def _beside(file: Path, path: str) -> Path:
    return file.parent / Path(path).expanduser()


def _mapping(value: object, entry: Entry, name: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise entry.refuse(name, f"must be a mapping, not {_kind_of(value)}")


def _kind_of(value: object) -> str:
    names: dict[type, str] = {
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a mapping",
    }
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")


def _names(entries: Mapping[str, Entry]) -> str:
    return ", ".join(sorted(entries)) or "none (there are none)"


def _there_are(kind: str, entries: Mapping[str, Entry]) -> str:
    return f"there are the {kind}s {_names(entries)}" if entries else f"there are no {kind}s"

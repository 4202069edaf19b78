"""The environment of a container: what the Pod says, what the kubelet adds, and nothing of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from flyball.controlplane.kubelet.process.lookup import Address, ConfigError, Lookup, field, resource
from flyball.k8s.core.v1 import Container, EnvFromSource, EnvVar, Pod, Service

__all__ = ["Surroundings", "environment_of", "expand"]

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Put values for `$(NAME)`; a name that is not known stays as it is, and `$$` is a `$`.

    >>> expand("$(A) $(B) $$(A)", {"A": "1"})
    '1 $(B) $(A)'
    """
    return _REFERENCE.sub(lambda found: _value(found, values), text)


def _value(found: re.Match[str], values: Mapping[str, str]) -> str:
    if found[0] == "$$":
        return "$"
    return values.get(found[1], found[0])


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a node knows of itself and of its cluster."""

    lookup: Lookup
    node_ip: str
    capacity: Mapping[str, str]
    server: Callable[[], Address | None]
    """Where the API server listens; None where it has no door to the network."""


async def environment_of(pod: Pod, container: Container, around: Surroundings, pod_ip: str) -> dict[str, str]:
    """Return the variables of a container, in the order in which later ones may refer to earlier ones.

    Raises ConfigError in the kubelet's words.
    """
    namespace = pod.metadata.namespace or ""
    values: dict[str, str] = {}
    for source in container.env_from or ():
        values.update(await _from(source, namespace, around.lookup))
    services = await _services(pod, around)
    own: dict[str, str] = {}
    for variable in container.env or ():
        found = await _one(pod, container, variable, {**services, **values, **own}, around, pod_ip)
        if found is not None:
            own[variable.name] = found
    values.update(own)
    return {**{name: value for name, value in services.items() if name not in values}, **values}


async def _from(source: EnvFromSource, namespace: str, lookup: Lookup) -> dict[str, str]:
    given = source.config_map_ref or source.secret_ref
    if given is None:
        return {}
    name = given.name or ""
    found = await (lookup.config_map if source.config_map_ref is not None else lookup.secret)(namespace, name)
    if found is None:
        if given.optional:
            return {}
        raise ConfigError(f'{"configmap" if source.config_map_ref is not None else "secret"} "{name}" not found')
    return {f"{source.prefix or ''}{key}": value.decode(errors="replace") for key, value in found.items()}


async def _one(
    pod: Pod, container: Container, variable: EnvVar, known: Mapping[str, str], around: Surroundings, pod_ip: str
) -> str | None:
    source = variable.value_from
    if source is None:
        return expand(variable.value or "", known)
    if source.field_ref is not None:
        return field(pod, source.field_ref.field_path, node_ip=around.node_ip, pod_ip=pod_ip)
    if source.resource_field_ref is not None:
        asked = source.resource_field_ref
        about = _container(pod, asked.container_name) if asked.container_name else container
        return resource(about, asked.resource, asked.divisor, around.capacity)
    namespace = pod.metadata.namespace or ""
    if source.config_map_key_ref is not None:
        key = source.config_map_key_ref
        found = await around.lookup.config_map(namespace, key.name or "")
        return _key("configmap", "ConfigMap", namespace, key.name or "", key.key, bool(key.optional), found)
    if source.secret_key_ref is not None:
        secret = source.secret_key_ref
        found = await around.lookup.secret(namespace, secret.name or "")
        return _key("secret", "Secret", namespace, secret.name or "", secret.key, bool(secret.optional), found)
    raise ConfigError(f"environment variable {variable.name}: this source is not supported by Pods as processes")


def _key(
    word: str, kind: str, namespace: str, name: str, key: str, optional: bool, found: Mapping[str, bytes] | None
) -> str | None:
    if found is None:
        if optional:
            return None
        raise ConfigError(f'{word} "{name}" not found')
    if key not in found:
        if optional:
            return None
        raise ConfigError(f"couldn't find key {key} in {kind} {namespace}/{name}")
    return found[key].decode(errors="replace")


def _container(pod: Pod, name: str) -> Container:
    everyone: list[Container] = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    for one in everyone:
        if one.name == name:
            return one
    raise ConfigError(f"container {name} not found")


async def _services(pod: Pod, around: Surroundings) -> dict[str, str]:
    """Return the variables of the namespace's Services unless the Pod does not want them, and of the API server."""
    values: dict[str, str] = {}
    if pod.spec.enable_service_links is not False:
        for service in await around.lookup.services(pod.metadata.namespace or ""):
            values.update(_service(service))
    server = around.server()
    if server is not None:
        host, port = server
        values.update(_variables("KUBERNETES", host, [("https", port, "TCP")]))
    return values


def _service(service: Service) -> dict[str, str]:
    spec = service.spec
    if spec.cluster_ip in (None, "", "None") or not spec.ports:
        return {}
    prefix = service.metadata.name.upper().replace("-", "_").replace(".", "_")
    ports = [(one.name or "", one.port, one.protocol or "TCP") for one in spec.ports]
    return _variables(prefix, str(spec.cluster_ip), ports)


def _variables(prefix: str, host: str, ports: list[tuple[str, int, str]]) -> dict[str, str]:
    first = ports[0]
    values = {f"{prefix}_SERVICE_HOST": host, f"{prefix}_SERVICE_PORT": str(first[1])}
    for name, port, _ in ports:
        if name:
            values[f"{prefix}_SERVICE_PORT_{name.upper().replace('-', '_')}"] = str(port)
    values[f"{prefix}_PORT"] = f"{first[2].lower()}://{host}:{first[1]}"
    for _, port, protocol in ports:
        stem = f"{prefix}_PORT_{port}_{protocol.upper()}"
        values[stem] = f"{protocol.lower()}://{host}:{port}"
        values[f"{stem}_PROTO"] = protocol.lower()
        values[f"{stem}_PORT"] = str(port)
        values[f"{stem}_ADDR"] = host
    return values

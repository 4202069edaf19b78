"""What a Pod refers to: read from the server when it is needed, and reported in the kubelet's words when missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import ROUND_CEILING
from typing import Final

from flyball.api import Quantity
from flyball.client import Client
from flyball.client.subresources import service_accounts
from flyball.errors import ApiError, FlyballError, NotFound
from flyball.k8s.core.v1 import ConfigMap, Container, Pod, Secret, Service

__all__ = ["Address", "ConfigError", "Lookup", "field", "resource"]

Address = tuple[str, int]

_UNIT: Final = {"cpu": 1}


class ConfigError(FlyballError):
    """A Pod refers to something that is not there, or asks for something that cannot be.

    `reason` is what its container waits with.
    """

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        """Say why."""
        super().__init__(message)
        self.reason = reason


class Lookup:
    """Reads for the Pods of a node."""

    def __init__(self, client: Client) -> None:
        """Take the way to the server."""
        self._client = client

    async def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the values of a ConfigMap; None when it is not there."""
        try:
            found = await self._client.get(ConfigMap, name, namespace=namespace)
        except NotFound:
            return None
        texts = {key: value.encode() for key, value in (found.data or {}).items()}
        return {**texts, **(found.binary_data or {})}

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the values of a Secret; None when it is not there."""
        try:
            found = await self._client.get(Secret, name, namespace=namespace)
        except NotFound:
            return None
        return found.data or {}

    async def services(self, namespace: str) -> Sequence[Service]:
        """Return the Services of a namespace."""
        return list(await self._client.list(Service, namespace=namespace))

    async def token(self, pod: Pod, audience: str | None, seconds: int | None) -> bytes:
        """Return a token of the Pod's ServiceAccount. Raises ConfigError."""
        account = service_accounts(pod.spec.service_account_name or "default", pod.metadata.namespace)
        try:
            token = await self._client.token(
                account,
                audiences=[audience] if audience else [],
                expires_in=timedelta(seconds=seconds if seconds is not None else 3600),
            )
        except ApiError as error:
            raise ConfigError(f"failed to fetch token: {error}") from None
        return token.token.encode()


def field(pod: Pod, path: str, *, node_ip: str, pod_ip: str) -> str:
    """Return what a field reference means. Raises ConfigError."""
    metadata, spec = pod.metadata, pod.spec
    name, bracket, rest = path.partition("['")
    if bracket and rest.endswith("']") and name in ("metadata.labels", "metadata.annotations"):
        values = metadata.labels if name == "metadata.labels" else metadata.annotations
        return values.get(rest.removesuffix("']"), "")
    plain = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace or "",
        "metadata.uid": metadata.uid,
        "spec.nodeName": spec.node_name or "",
        "spec.serviceAccountName": spec.service_account_name or "",
        "status.hostIP": node_ip,
        "status.hostIPs": node_ip,
        "status.podIP": pod_ip,
        "status.podIPs": pod_ip,
    }
    if path in plain:
        return plain[path]
    if path in ("metadata.labels", "metadata.annotations"):
        values = metadata.labels if path == "metadata.labels" else metadata.annotations
        return "\n".join(f'{key}="{_quoted(value)}"' for key, value in sorted(values.items()))
    raise ConfigError(f"unsupported fieldPath: {path}")


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource(container: Container, name: str, divisor: object, capacity: Mapping[str, str]) -> str:
    """Return what a reference to a resource means: what the container may have, or what the node has."""
    which, _, kind = name.partition(".")
    given = container.resources
    amounts = (given.limits if which == "limits" else given.requests) if given is not None else None
    amount = (amounts or {}).get(kind)
    if amount is None:
        amount = capacity.get(kind, "0") if which == "limits" else "0"
    unit = Quantity(str(divisor)) if divisor not in (None, "", "0") else Quantity(str(_UNIT.get(kind, 1)))
    if unit.value == 0:
        unit = Quantity("1")
    return str((Quantity(str(amount)).value / unit.value).to_integral_value(ROUND_CEILING))

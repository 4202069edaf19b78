"""The ServiceAccount that a Pod runs as, and the volume with its token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.controlplane.apiserver.core import Admission, Core
from flyball.controlplane.apiserver.metadata import generate_name, is_generated
from flyball.controlplane.apiserver.preparing import sync_account
from flyball.controlplane.apiserver.render import parse
from flyball.controlplane.apiserver.status import forbidden
from flyball.controlplane.apiserver.store import Key

__all__ = ["service_account"]

Object = dict[str, Any]

_MOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_PREFIX: Final = "kube-api-access-"
_TOKEN_SECONDS: Final = 3607
_MIRROR: Final = "kubernetes.io/config.mirror"


async def service_account(core: Core, admission: Admission) -> None:
    """Give a new Pod the account that it runs as; refuse it when there is no such account."""
    pod = admission.obj
    if admission.kind.storage != "pods" or admission.verb != "CREATE" or admission.subresource or pod is None:
        return
    if _MIRROR in (pod["metadata"].get("annotations") or {}):
        return
    spec: Object = pod["spec"]
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = "default"
    sync_account(spec)
    account = _account(core, admission, spec["serviceAccountName"])
    if _wants_token(spec, account):
        _mount_token(spec)
    secrets = account.get("imagePullSecrets")
    if secrets and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in secrets]


def _account(core: Core, admission: Admission, name: str) -> Mapping[str, Any]:
    entry = core.store.get(Key("serviceaccounts", admission.namespace, name))
    if entry is None:
        where = f"{admission.namespace}/{name}"
        told = f'error looking up service account {where}: serviceaccount "{name}" not found'
        raise forbidden("pods", "", _name_given(admission), told)
    return parse(core.kinds.find("", "v1", "serviceaccounts"), entry)


def _name_given(admission: Admission) -> str:
    """Return the name that was asked for, which is only the beginning of one that is made up."""
    metadata: Mapping[str, Any] = admission.obj["metadata"] if admission.obj is not None else {}
    prefix = str(metadata.get("generateName") or "")
    return prefix if prefix and is_generated(admission.name, prefix) else admission.name


def _wants_token(spec: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _mount_token(spec: Object) -> None:
    containers: list[Object] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    without = [one for one in containers if all(m.get("mountPath") != _MOUNT for m in one.get("volumeMounts") or ())]
    volumes: list[Object] = spec.setdefault("volumes", [])
    known = next((one["name"] for one in volumes if str(one.get("name", "")).startswith(_PREFIX)), None)
    name = known or generate_name(_PREFIX)
    for container in without:
        mounts: list[Object] = container.setdefault("volumeMounts", [])
        mounts.append({"name": name, "readOnly": True, "mountPath": _MOUNT})
    if without and known is None:
        volumes.append(_token_volume(name))


def _token_volume(name: str) -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}

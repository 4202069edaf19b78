"""Who asks for a certificate stands in the request for it."""

from __future__ import annotations

from typing import Any

from flyball.controlplane.apiserver.core import Admission, Core

__all__ = ["requesting_user"]


async def requesting_user(core: Core, admission: Admission) -> None:
    """Write the user into a new CertificateSigningRequest, whatever the writer put there."""
    if admission.kind.plural != "certificatesigningrequests" or admission.verb != "CREATE" or admission.obj is None:
        return
    user, spec = admission.user, admission.obj["spec"]
    said: dict[str, Any] = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    for field, value in said.items():
        spec.pop(field, None)
        if value:
            spec[field] = value

"""What a Pod asks for that a process cannot have: said in an Event, never passed over in silence."""

from __future__ import annotations

from typing import Any, Final

from flyball.k8s.core.v1 import Container, Pod

__all__ = ["without_effect"]

_POD: Final = ("dns_config", "host_ipc", "host_pid", "overhead", "resource_claims", "runtime_class_name", "sysctls")
_POD_MORE: Final = ("set_hostname_as_fqdn", "share_process_namespace", "ephemeral_containers")
_SECURITY: Final = (
    "app_armor_profile",
    "capabilities",
    "privileged",
    "proc_mount",
    "se_linux_options",
    "seccomp_profile",
    "sysctls",
)


def without_effect(pod: Pod) -> list[str]:
    """Name the fields of a Pod that are kept and have no effect."""
    found = _set(pod.spec, (*_POD, *_POD_MORE), "")
    found += _set(pod.spec.security_context, _SECURITY, "securityContext.")
    containers: list[Container] = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    for container in containers:
        found += _set(container.security_context, _SECURITY, f"{container.name}: securityContext.")
        found += _set(container, ("volume_devices",), f"{container.name}: ")
    return found


def _set(holder: Any, names: tuple[str, ...], where: str) -> list[str]:
    return [f"{where}{_json(name)}" for name in names if getattr(holder, name, None)]


def _json(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)

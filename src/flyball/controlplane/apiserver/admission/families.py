"""IP families of Services: which ones a Service wants, and which it can have on a network that speaks IPv4 only."""

from __future__ import annotations

from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.rules.services import cluster_addresses

__all__ = ["settle_families"]

Object = dict[str, Any]

_OWN: Final = "IPv4"
_SINGLE, _BOTH = "SingleStack", "RequireDualStack"


def settle_families(spec: Object, old: Object) -> list[FieldError]:
    """Complete the families and their policy in a Service that may have an address; return what cannot be.

    Who brings his own endpoints and wants no address may have any family: nothing is given to him.
    """
    free = spec.get("clusterIP") == "None" and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = old.get("ipFamilyPolicy") or (_BOTH if free else _SINGLE)
    errors = list(cluster_addresses(spec))
    if errors:
        return errors
    policy: str = spec["ipFamilyPolicy"]
    families: list[str] = [*(spec.get("ipFamilies") or ())]
    if policy == _SINGLE and old:
        families = families[:1] if families == old.get("ipFamilies") else families
    errors = [*_too_many(spec, policy, families), *_inferred(spec, families)]
    if errors:
        return errors
    if free:
        families = families or [_OWN]
        if len(families) < 2 and policy != _SINGLE:
            families.append("IPv6" if families[0] == _OWN else _OWN)
    else:
        errors = list(_not_there(policy, families))
    spec["ipFamilies"] = families or [_OWN]
    return errors


def _too_many(spec: Object, policy: str, families: list[str]) -> list[FieldError]:
    told = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
    given = (("cluster IPs", spec.get("clusterIPs") or ()), ("IP families", families))
    if policy != _SINGLE:
        return []
    return [
        FieldError.invalid("spec.ipFamilyPolicy", policy, told.format(what)) for what, one in given if len(one) == 2
    ]


def _inferred(spec: Object, families: list[str]) -> list[FieldError]:
    """Add the families of addresses that were asked for."""
    errors: list[FieldError] = []
    addresses = spec.get("clusterIPs") or []
    for place, address in enumerate(addresses):
        if address == "None":
            break
        family = "IPv6" if ":" in address else _OWN
        if place < len(families):
            continue
        if family == _OWN:
            families.append(family)
        else:
            told = f"{family} is not configured on this cluster"
            errors.append(FieldError.invalid(f"spec.clusterIPs[{place}]", addresses, told))
    return errors


def _not_there(policy: str, families: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    if policy == _BOTH:
        told = "this cluster is not configured for dual-stack services"
        errors.append(FieldError.invalid("spec.ipFamilyPolicy", policy, told))
    for place, family in enumerate(families):
        if family != _OWN:
            errors.append(FieldError.invalid(f"spec.ipFamilies[{place}]", family, "not configured on this cluster"))
    return errors

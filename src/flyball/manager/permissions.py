"""What the code may do in the cluster: declared beside the code, and named when it is missing.

    @rbac("apps", "deployments", "get", "list", "watch", "patch")
    @controller(Shell, owns=[Deployment])
    async def reconcile(shell, ctx): ...

`rbac` only records; manifests are made of what it recorded. `Missing` names, once each, what the server's 403s say is
not granted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from flyball.cache import InformerCache, MissingPermission

__all__ = ["Missing", "Permission", "rbac", "recorded"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_VERBS: Final = frozenset(
    {
        *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
        *("bind", "escalate", "impersonate", "use", "approve", "sign", "attest"),
    }
)


@dataclass(frozen=True, slots=True)
class Permission:
    """One rule: these verbs on these resources of a group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    namespace: str | None = None
    names: tuple[str, ...] = ()


_recorded: dict[Permission, None] = {}


def rbac(
    group: str,
    resources: str | Sequence[str],
    *verbs: str,
    namespace: str | None = None,
    names: Iterable[str] = (),
) -> Callable[[T], T]:
    """Declare that the code below needs these verbs; what it decorates is left as it is.

    `group` is empty for core kinds; a subresource is `"pods/log"`. `namespace`: in this one only; `names`: on these
    objects only. Wildcards are refused: they grant what nobody thought of.
    """
    listed = (resources,) if isinstance(resources, str) else tuple(resources)
    if not verbs or not listed:
        raise ValueError(f'rbac("{group}", {resources!r}): name resources and verbs, such as "get", "list", "watch"')
    for word in (group, *listed, *verbs):
        if "*" in word:
            raise ValueError(f"rbac: {word!r} is a wildcard; name what the code needs")
    unknown = [verb for verb in verbs if verb not in _VERBS]
    if unknown:
        raise ValueError(f"rbac: {unknown[0]!r} is no verb of Kubernetes; there are {', '.join(sorted(_VERBS))}")
    _recorded[Permission(group, listed, verbs, namespace, tuple(names))] = None

    def unchanged(code: T) -> T:
        return code

    return unchanged


def recorded() -> list[Permission]:
    """All that was declared in this process, in that order."""
    return list(_recorded)


class Missing:
    """Names each missing permission once, as soon as the server has refused something for want of it."""

    def __init__(self, cache: InformerCache) -> None:
        """Look at this cache's watches."""
        self._cache = cache
        self._named: set[tuple[str, str, str, str | None]] = set()

    def look(self) -> list[MissingPermission]:
        """What is missing now; what is new is logged, and what was granted is forgotten."""
        missing = {(one.verb, one.group, one.resource, one.namespace): one for one in self._cache.missing_permissions()}
        for key, one in missing.items():
            if key not in self._named:
                log.error("%s", one, extra={"verb": one.verb, "resource": one.resource, "api_group": one.group})
        self._named = set(missing)
        return list(missing.values())

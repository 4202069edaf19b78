"""The built-in kinds of Kubernetes 1.36: one module for each version of each API group.

    from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
    from flyball.k8s.core.v1 import Container, PodSpec
    from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta

The folder is the first label of the group (`rbac` for `rbac.authorization.k8s.io`,
`core` for the group without a name).

What the room promises:

- Nothing is imported until a module is named; importing this package costs next to nothing.
- Every kind, its list and every type inside them is there, in every version that a 1.36 server serves.
- Attributes are the snake_case of the JSON names, with acronyms as words (`cluster_ip`, `pod_ips`) and an underscore
  behind Python's keywords (`from_`, `continue_`).
- What a server may send can be read: fields that may be absent are None, `null` is accepted everywhere, and an unknown
  value of an enumeration is a string like the known ones.
- The modules are generated from facts (`facts`), byte for byte, by `make generate`.

Reading order: `find` below (a kind by its names), `facts` (what the models and an API server are made of), `schemas`
(those facts as the schema of a custom resource that embeds a built-in type), then any generated module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flyball.api.resource import Resource

__all__ = ["find", "kinds"]


def find(api_version: str, kind: str) -> type[Resource] | None:
    """The class of a built-in kind, or None. Only the module that holds it is imported.

    >>> find("apps/v1", "Deployment")
    <class 'flyball.k8s.apps.v1.Deployment'>
    >>> find("example.org/v1", "Deployment") is None
    True
    """
    from flyball.k8s._index import KINDS, MODULES

    if kind not in KINDS.get(api_version, ()):
        return None
    found: Any = getattr(import_module(f"{__name__}.{MODULES[api_version]}"), kind)
    return found  # type: ignore[no-any-return]


def kinds() -> Iterator[tuple[str, str]]:
    """Every built-in kind as (apiVersion, kind), without importing any."""
    from flyball.k8s._index import KINDS

    for api_version, names in KINDS.items():
        for name in sorted(names):
            yield api_version, name

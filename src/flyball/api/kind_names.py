"""Whether the names of a kind are such as a server takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flyball.api.refusal import SchemaError

if TYPE_CHECKING:
    from flyball.api.resource import Resource

__all__ = ["check_names"]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PLURAL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})+")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_PROTECTED = ("k8s.io", "kubernetes.io")
_APPROVED = "api-approved.kubernetes.io"


def check_names(cls: type[Resource]) -> None:
    """Raise `SchemaError` for a group, version, kind or plural that cannot be."""
    options, where = cls.kind_options, f"class {cls.__name__}"
    if not _GROUP.fullmatch(options.group) or len(options.group) > 253:
        raise SchemaError(where, f"the group {options.group!r} is not a domain name", 'write one such as "example.org"')
    if not _PLURAL.fullmatch(options.version):
        raise SchemaError(where, f"the version {options.version!r} is not one", 'write one such as "v1" or "v1alpha1"')
    if not _KIND.fullmatch(options.kind):
        raise SchemaError(where, f"the kind {options.kind!r} is not a name", "use letters and digits, at most 63")
    for what, name in (("plural", options.plural), ("singular", options.singular), *_others(cls)):
        if not _PLURAL.fullmatch(name):
            raise SchemaError(where, f"the {what} {name!r} is not a name", "use lower-case letters, digits and '-'")
    if options.scope not in ("Namespaced", "Cluster"):
        raise SchemaError(where, f"the scope {options.scope!r} does not exist", 'write "Namespaced" or "Cluster"')
    protected = any(options.group == group or options.group.endswith(f".{group}") for group in _PROTECTED)
    if protected and _APPROVED not in (options.annotations or {}):
        raise SchemaError(
            where,
            f"the group {options.group!r} belongs to Kubernetes",
            f'use a domain of your own, or annotations={{"{_APPROVED}": "<url of the approval, or unapproved, why>"}}',
        )


def _others(cls: type[Resource]) -> list[tuple[str, str]]:
    options = cls.kind_options
    for option in ("short_names", "categories"):
        if isinstance(getattr(options, option), str):
            raise SchemaError(f"class {cls.__name__}", f"{option} is a text", f'write a list: {option}=["..."]')
    names = [("short name", name) for name in options.short_names]
    return names + [("category", name) for name in options.categories]

"""How an informer is: what readiness and metrics show, and what a person must do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["Health", "MissingPermission", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a reflector lists and watches, for messages."""

    group: str
    plural: str
    kind: str
    namespace: str | None = None
    selector: str = ""

    def words(self) -> str:
        """`widgets.example.org in all namespaces (labels app=web)`."""
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{name} in {where}" + (f" ({self.selector})" if self.selector else "")


@dataclass(frozen=True, slots=True)
class MissingPermission:
    """What a 403 says: who runs this may not `verb` these resources."""

    verb: str
    group: str
    resource: str
    namespace: str | None
    message: str = ""
    """The server's words."""

    def __str__(self) -> str:
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        verbs = '"list", "watch"' if self.verb in {"list", "watch"} else f'"{self.verb}"'
        return f'missing: {self.verb} {name} in {where}; add @rbac("{self.group}", "{self.resource}", {verbs})'


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a watch, since when, and why."""

    ok: bool
    since: datetime
    reason: str = ""
    """One line; what is wrong, with which kind where. Empty when all is well."""
    missing: MissingPermission | None = None
    """Set when the server says 403."""
    not_served: bool = False
    """The kind is not there (yet, or any more); it is waited for."""

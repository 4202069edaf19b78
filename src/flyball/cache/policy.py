"""Reads of kinds that nobody declared: from the server each time, or from an informer started for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from flyball.client import Kind

__all__ = ["ReadPolicy"]

_SENSITIVE: Final = (("v1", "Secret"), ("v1", "ConfigMap"))


class ReadPolicy:
    """Secrets and ConfigMaps are read live: a cluster has many of them, few matter, and a watch needs the right to read
    them all. For other kinds an informer is started by the first read.
    """

    def __init__(
        self,
        live: Iterable[tuple[str, str]] = _SENSITIVE,
        *,
        otherwise: Literal["watch", "live"] = "watch",
    ) -> None:
        """`live` are kinds as (apiVersion, kind)."""
        self._live = frozenset(live)
        self._otherwise: Literal["watch", "live"] = otherwise

    def of(self, kind: Kind[Any]) -> Literal["watch", "live"]:
        """How this kind is read when nobody declared it."""
        source = kind.source
        return "live" if (source.api_version, source.kind) in self._live else self._otherwise

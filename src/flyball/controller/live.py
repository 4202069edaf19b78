"""Reads past the cache, counted: `ctx.live`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from flyball.api import DynamicObject, Resource, ResourceType
from flyball.client.kinds import Kind, kind_from
from flyball.client.selectors import FieldQuery, LabelQuery
from flyball.errors import NotFound

if TYPE_CHECKING:
    from flyball.controller.running import RunningController

__all__ = ["LiveReader"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)


class LiveReader:
    """Asks the server itself; it can only read. `flyball_live_reads_total{controller}` counts."""

    def __init__(self, running: RunningController[Any], namespace: str | None, expect_open: Callable[[], None]) -> None:
        """For one pass; made by the context."""
        self._running = running
        self._namespace = namespace
        self._expect_open = expect_open

    def _where(self, kind: Kind[Any], namespace: str | None) -> str | None:
        source = kind.source
        if isinstance(source, ResourceType) and not source.namespaced:
            return None
        return namespace or self._namespace

    def _count(self, kind: Kind[Any]) -> None:
        self._expect_open()
        self._running.runtime.metrics.counter("flyball_live_reads_total", controller=self._running.name, kind=kind.word)

    @overload
    async def get(self, kind: type[R], name: str, namespace: str | None = None) -> R | None: ...
    @overload
    async def get(self, kind: Kind[T], name: str, namespace: str | None = None) -> T | None: ...
    @overload
    async def get(self, kind: ResourceType, name: str, namespace: str | None = None) -> DynamicObject | None: ...
    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """An object as it is now; None when it is not there."""
        wanted = kind_from(kind)
        self._count(wanted)
        try:
            return await self._running.runtime.client.get(wanted, name, namespace=self._where(wanted, namespace))
        except NotFound:
            return None

    @overload
    async def list(
        self,
        kind: type[R],
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> builtins.list[R]: ...
    @overload
    async def list(
        self,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> builtins.list[T]: ...
    @overload
    async def list(
        self,
        kind: ResourceType,
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> builtins.list[DynamicObject]: ...
    async def list(
        self,
        kind: Any,
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> builtins.list[Any]:
        """Objects as they are now: of the pass's namespace, of another one, or (`"*"`) of all."""
        wanted = kind_from(kind)
        self._count(wanted)
        where = self._where(wanted, namespace)
        return await self._running.runtime.client.list(wanted, namespace=where, labels=labels, fields=fields)

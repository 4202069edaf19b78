"""Declared children: say which there should be, and the rest follows.

    children = Pruner([Deployment, Service])

    @controller(Shop, owns=[Deployment, Service])
    async def reconcile(shop, ctx):
        deployment, service = await children.converge(ctx, [deployment_of(shop), service_of(shop)])

Each child is applied, in order. A leftover is an object of one of the pruner's kinds whose controller is this very
object (by uid), that carries the label `app.kubernetes.io/managed-by` with the controller's name, and that is not
declared any more. Leftovers are deleted one at a time: one per pass, its deletion brings the next pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flyball.api import DynamicObject, Resource
from flyball.client.kinds import kind_from, kind_of
from flyball.controller.naming import MANAGED_BY
from flyball.controller.sources import AnyKind

if TYPE_CHECKING:
    from flyball.controller.context import Context

__all__ = ["Declared", "Pruner"]

T = TypeVar("T")

Child = Resource | DynamicObject
_Place = tuple[str, str, str | None, str]


class Pruner:
    """Applies what is declared and deletes what is left over."""

    def __init__(self, kinds: Sequence[AnyKind]) -> None:
        """`kinds` may be deleted; a controller that prunes them should own them."""
        self.kinds = [kind_from(kind) for kind in kinds]

    async def converge(self, ctx: Context, desired: Iterable[Child]) -> list[Any]:
        """Make the children be as declared; returns them as the server has them, in the order given."""
        applied: list[Any] = []
        kept: set[_Place] = set()
        for child in desired:
            child.metadata.labels.setdefault(MANAGED_BY, ctx.running.name)
            found = await ctx.apply(child)
            applied.append(found)
            kept.add(_place(found))
        await self._prune(ctx, kept)
        return applied

    async def _prune(self, ctx: Context, kept: set[_Place]) -> None:
        for kind in self.kinds:
            for present in await ctx.owned(kind):
                if present.metadata.deletion_timestamp is not None or _place(present) in kept:
                    continue
                if present.metadata.labels.get(MANAGED_BY) == ctx.running.name:
                    await ctx.delete(present)
                    return


def _place(obj: Any) -> _Place:
    source = kind_of(obj).source
    return (source.api_version, source.kind, obj.metadata.namespace or None, obj.metadata.name)


class Declared:
    """A reconciler that is nothing but its declaration: `controller(Shop, owns=KINDS)(Declared(desired, KINDS))`.

    `report(obj, children)` may put what is seen into the object's status.
    """

    def __init__(
        self,
        desired: Callable[[Any], Iterable[Child]],
        kinds: Sequence[AnyKind],
        report: Callable[[Any, list[Any]], None] | None = None,
    ) -> None:
        """`desired(obj)` answers the children that should be there; `kinds` may be pruned."""
        self._desired = desired
        self._pruner = Pruner(kinds)
        self._report = report

    async def reconcile(self, obj: Any, ctx: Context) -> None:
        """One pass."""
        children = await self._pruner.converge(ctx, self._desired(obj))
        if self._report is not None:
            self._report(obj, children)

"""The context: everything a pass may do, and everything it knows beside the object.

Reading comes from the cache (`get`, `list`, `owned`) or, where it must be, from the server (`live`). Every change of
the world goes through `apply`, `create`, `patch` and `delete`, so that it is counted, owned, and known to the cache.
The status is none of them: it is written for you at the end.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from flyball.api import DynamicObject, PartialObjectMetadata, Resource, ResourceType, to_dict
from flyball.cache import NotCached
from flyball.client import MergePatch, Patch, Ref
from flyball.client.arguments import Propagation
from flyball.client.kinds import Kind, kind_from, kind_of, metadata_of, ref_of
from flyball.client.refusals import RefusedRequest
from flyball.client.selectors import LabelQuery
from flyball.controller.failures import ChildTerminating, PassOver
from flyball.controller.live import LiveReader
from flyball.controller.logs import PassLogger
from flyball.controller.naming import MANAGED_BY
from flyball.controller.ownership import (
    NameConflict,
    controller_of,
    describe,
    is_controlled_by,
    may_own,
    set_controller,
)
from flyball.controller.primary import metadata_patch, status_is_written
from flyball.controller.request import Request, Result
from flyball.controller.strictness import report
from flyball.errors import AlreadyExists, FlyballError, NotFound

if TYPE_CHECKING:
    from flyball.api import Model
    from flyball.controller.events import EventType
    from flyball.controller.running import RunningController
    from flyball.controller.workspace import Workspace

__all__ = ["Context"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)
W = TypeVar("W", bound=Resource | DynamicObject)
D = TypeVar("D", bound="Model")

_TERMINATING_WAIT = 5.0


class OwnObject(Protocol):
    """What the pass does with its own object when the context is asked to."""

    def load(self) -> None:
        """Read it; from then on the pass is about it."""
        ...

    async def write(self) -> bool:
        """Write its status if it differs, and tell whether it did."""
        ...


class Context:
    """What a reconciler is given beside its object; it is valid until the pass ends."""

    def __init__(
        self, running: RunningController[Any], request: Request, reason: tuple[str, ...], pass_id: str
    ) -> None:
        """For one pass; made by the controller."""
        self.request = request
        """Which object the pass is about."""
        self.reason = ", ".join(reason)
        """Why the pass runs: for people. It may be incomplete, and is no ground for a decision."""
        self.pass_id = pass_id
        """The id of this pass in logs."""
        self.deleting = False
        """Whether the object is being deleted."""
        self.running = running
        self.writes = 0
        """How many changes of the world the pass has made."""
        self.rerun = False
        self.told: FlyballError | None = None
        """What `report` was given."""
        self.own: OwnObject | None = None
        """The pass's object and its status, as the pass keeps them."""
        self._primary: Any = None
        self._over = ""
        self._waits: list[Result] = []
        self._workspaces: dict[type, Any] = {}

    # -- what it knows -------------------------------------------------------------------------------------------------

    def begin(self, primary: Any) -> None:
        """The object that the pass is about was read."""
        self._primary = primary
        self.deleting = primary is not None and primary.metadata.deletion_timestamp is not None

    @property
    def primary(self) -> Any:
        """The object that the pass is about; None for a raw reconciler that has not loaded it."""
        return self._primary

    @property
    def fields(self) -> Mapping[str, Any]:
        """What every line of this pass's log carries."""
        generation = self._primary.metadata.generation if self._primary is not None else 0
        return {
            "controller": self.running.name,
            "kind": self.running.group_kind,
            "namespace": self.request.namespace or "",
            "name": self.request.name,
            "reconcile_id": self.pass_id,
            "generation": generation or 0,
        }

    @cached_property
    def log(self) -> PassLogger:
        """The logger of this pass: every line names controller, object and pass."""
        return PassLogger(self.running.runtime.logger, self.fields)

    def now(self) -> datetime:
        """The time of day, by the clock of the process; tests turn it by hand."""
        return self.running.runtime.clock.now()

    def count(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        """Add to a number of the operator's own, served at `/metrics`; of labels there must be few."""
        self.running.runtime.metrics.counter(name, value, **labels)

    def measure(self, name: str, value: float) -> None:
        """A number about the pass's object, until it is gone; what is served is the sum over all objects."""
        self.running.totals.put(name, self.request, value)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """One more observation of something whose distribution counts: a duration, a size."""
        self.running.runtime.metrics.histogram(name, value, **labels)

    # -- reading -------------------------------------------------------------------------------------------------------

    async def load(self, kind: type[R]) -> R | None:
        """The pass's own object, for a raw reconciler: from the cache, None when it is gone. `kind` is its class.

        From now on the pass is about it, as any other pass is: children that are made are its children, `owned` and
        `record` mean it, its status is written at the end, and to one that is being deleted nothing is written.
        `InvalidSpec` when its spec does not fit the class.
        """
        self._expect_open()
        assert self.own is not None
        if self._primary is None:
            self.own.load()
        found = self._primary
        if found is not None and not isinstance(found, kind):
            raise TypeError(f"load({kind.__name__}): the controller is for {self.running.kind.word}")
        return found

    @overload
    async def get(self, kind: type[R], name: str, namespace: str | None = None) -> R | None: ...
    @overload
    async def get(self, kind: Kind[T], name: str, namespace: str | None = None) -> T | None: ...
    @overload
    async def get(self, kind: ResourceType, name: str, namespace: str | None = None) -> DynamicObject | None: ...
    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """An object from the cache, None when it is not there; `namespace` defaults to the one of the pass's object.

        It may be out of date, but never older than what this process wrote. Secrets and ConfigMaps are read live
        unless they are declared.
        """
        self._expect_open()
        return await self.running.runtime.cache.get(kind, name, namespace or self.request.namespace)

    @overload
    async def list(
        self, kind: type[R], *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[R]: ...
    @overload
    async def list(
        self, kind: Kind[T], *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[T]: ...
    @overload
    async def list(
        self, kind: ResourceType, *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[DynamicObject]: ...
    async def list(
        self, kind: Any, *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[Any]:
        """Objects from the cache: of the pass's namespace, of another one, or (`"*"`) of all."""
        self._expect_open()
        where = namespace or self.request.namespace
        found: builtins.list[Any] = await self.running.runtime.cache.list(
            kind, namespace=None if where == "*" else where, labels=labels
        )
        return found

    @overload
    async def owned(self, kind: type[R], *, of: Any = None) -> builtins.list[R]: ...
    @overload
    async def owned(self, kind: Kind[T], *, of: Any = None) -> builtins.list[T]: ...
    @overload
    async def owned(self, kind: ResourceType, *, of: Any = None) -> builtins.list[DynamicObject]: ...
    async def owned(self, kind: Any, *, of: Any = None) -> builtins.list[Any]:
        """The children of this kind whose controller is the pass's object (by uid), from the cache, by name.

        A raw reconciler has no object of its own and says whose children it means: `of` is the object that it read.
        """
        self._expect_open()
        owner = of if of is not None else self._owner()
        index = self.running.children_index(kind_from(kind))
        found: builtins.list[Any]
        if index is not None:
            found = index(owner.metadata.uid)
        else:
            found = [one for one in await self.list(kind) if is_controlled_by(one, owner)]
        return sorted(found, key=lambda one: (one.metadata.namespace or "", one.metadata.name))

    @cached_property
    def live(self) -> LiveReader:
        """Reads from the server itself, counted.

        Three uses are right: a workspace, a check before a call to the outside that must not happen twice, and finding
        out who has a name.
        """
        return LiveReader(self.running, self.request.namespace, self._expect_open)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def apply(self, obj: W, *, force: bool = True, owner: bool | None = None) -> W:
        """Make a child be as said here: server-side apply, as the field manager named like the controller.

        Fields that are not mentioned are left to others. A missing namespace is the pass's own. The object of the pass
        becomes the child's controller where Kubernetes allows it; `owner=True` insists on that, `owner=False` leaves
        it out. With `force` (the default) fields that another manager owns are taken.

        An object of that name that is not ours is left alone (`NameConflict`), one that is being deleted is waited for.
        When nothing would change, nothing is sent.
        """
        self._expect_open()
        child, resource = await self._child(obj, owner)
        self._mind_deletion("apply", child)
        present = await self._expect_ours(child, resource)
        manager = self.running.field_manager
        sent = to_dict(child)
        place = (resource.api_version, resource.kind, child.metadata.namespace, child.metadata.name)
        if present is not None and self.running.settled.holds(place, sent, to_dict(present)):
            return cast("W", present)
        answer: W = await self._write(
            "apply",
            child,
            lambda: self.running.runtime.client.apply(child, force=force, field_manager=manager),
            sent=sent,
        )
        self.running.settled.remember(place, sent, to_dict(answer))
        return answer

    async def create(self, obj: W, *, owner: bool | None = None) -> W:
        """Make a new child. One of that name that is there and ours is returned; if it is not ours: `NameConflict`."""
        self._expect_open()
        child, _ = await self._child(obj, owner)
        self._mind_deletion("create", child)
        owned = self._primary is not None and controller_of(child) is not None
        if owned and child.metadata.name and self.running.declares(kind_of(child)):
            known = await self._cached(kind_of(child), child.metadata.name, child.metadata.namespace)
            if known is not None:
                self._refuse_foreign(known)
                return cast("W", known)
        manager = self.running.field_manager
        try:
            made: W = await self._write(
                "create", child, lambda: self.running.runtime.client.create(child, field_manager=manager), base=""
            )
            return made
        except AlreadyExists:
            present = await self.live.get(kind_of(child), child.metadata.name, child.metadata.namespace)
            if present is None or self._primary is None:
                raise
            self._refuse_foreign(present)
            return present

    @overload
    async def patch(
        self, obj: Ref[T], patch: Patch, *, subresource: str | None = None, guard: bool | None = None
    ) -> T: ...
    @overload
    async def patch(
        self, obj: W, patch: Patch | None = None, *, subresource: str | None = None, guard: bool | None = None
    ) -> W: ...
    async def patch(
        self, obj: Any, patch: Patch | None = None, *, subresource: str | None = None, guard: bool | None = None
    ) -> Any:
        """Change parts of an object: by a patch, or by what was changed in it since it was read (then guarded).

        Of the pass's own object only metadata can be changed so: its spec belongs to its user, and its status is
        written for you.
        """
        self._expect_open()
        client, manager = self.running.runtime.client, self.running.field_manager
        if self._is_primary(obj):
            guard = True if self._primary is not None else guard
            if subresource is None:
                patch = metadata_patch(obj, patch)
                if patch is None:
                    return obj
            elif subresource == "status" and self._primary is not None:
                raise status_is_written(obj)
        base = _version(obj) if guard or (guard is None and patch is None) else None
        sent = patch.document if isinstance(patch, MergePatch) else None
        return await self._write(
            "patch",
            obj,
            lambda: client.patch(obj, patch, subresource=subresource, guard=guard, field_manager=manager),
            base=base,
            sent=sent,
        )

    async def delete(
        self,
        obj: Resource | DynamicObject | PartialObjectMetadata,
        *,
        propagation: Propagation = "Background",
        guard: bool = False,
        grace_period: int | None = None,
    ) -> None:
        """Delete the very object that was read: its uid goes along. One that is gone already is fine.

        `guard` also insists on its version: set it when something in the object was the reason.
        """
        self._expect_open()
        if not obj.metadata.uid:
            raise RefusedRequest(
                f"delete {describe(obj)}: it was not read from the server, so it could be another object of that name; "
                "delete what ctx.get, ctx.list or ctx.owned gave you"
            )
        self._mind_foreign(obj)
        self._count("delete", obj)
        client, cache, metadata = self.running.runtime.client, self.running.runtime.cache, obj.metadata
        with cache.writing(kind_of(obj), metadata.name, metadata.namespace) as write:
            options: dict[str, Any] = {} if grace_period is None else {"grace_period": grace_period}
            left = await client.delete(obj, propagation=propagation, guard=guard, missing_ok=True, **options)
            write.deleted(cast("Any", left), uid=metadata.uid)

    async def workspace(self, data: type[D]) -> Workspace[D]:
        """The notebook of the pass's object, whose notes are of this class; read from the server, once per pass."""
        from flyball.controller.workspace import Workspace

        self._expect_open()
        found = self._workspaces.get(data)
        if found is None:
            found = self._workspaces[data] = await Workspace.open(self, data)
        return cast("Workspace[D]", found)

    # -- telling -------------------------------------------------------------------------------------------------------

    def record(self, type: EventType, reason: str, message: str, *, about: Any = None, action: str = "") -> None:
        """Tell people by an Event, about the pass's object or another one. It never fails and never waits.

        For acts of the operator; what a condition says is told by `events_on`.
        """
        target = about if about is not None else self._owner()
        self.running.runtime.recorder.record(
            target, type, reason, message, action=action, reporter=self.running.reporter
        )

    def report(self, error: FlyballError) -> None:
        """Tell of something that is wrong, as of an error that ends the pass: by the error condition, and by an Event
        when that changes. The pass itself does not fail: nothing is counted, and what it answers decides when it runs
        again.
        """
        self.told = error

    async def write_status(self) -> bool:
        """Write the status now instead of at the end, if it differs; tell whether it did."""
        self._expect_open()
        self._owner()
        assert self.own is not None
        return await self.own.write()

    def requeue(self, *, after: timedelta | float | None = None, at: datetime | None = None) -> None:
        """Run again at a time, or earlier if something happens; of several times the earliest counts."""
        if after is not None:
            self._waits.append(Result.after(after))
        if at is not None:
            self._waits.append(Result.at(at))
        if after is None and at is None:
            self._waits.append(Result.now())

    def wait(self, answer: Result | None) -> float | None:
        """In how many seconds to run again, given what the reconciler answered; None: when something happens."""
        now = self.now()
        waits = [one.seconds(now) for one in (*self._waits, *([answer] if answer is not None else []))]
        if self.rerun:
            waits.append(0.0)
        return min((one for one in waits if one is not None), default=None)

    # -- inside --------------------------------------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """The pass is over: whoever still holds this context can do nothing more."""
        self._over = why

    def _expect_open(self) -> None:
        if self._over:
            raise PassOver(f"the pass {self.pass_id} over {self.request} is over ({self._over}); nothing was done")

    def _owner(self) -> Any:
        if self._primary is None:
            raise RefusedRequest(
                "a raw reconciler has no object of its own to speak of until it was loaded; "
                "call ctx.load(Kind), pass about=, or read it and use set_controller(owner, child)"
            )
        return self._primary

    def _is_primary(self, obj: Any) -> bool:
        reference = obj if isinstance(obj, Ref) else ref_of(obj)
        source = reference.kind.source
        return (
            (source.api_version, source.kind) == self.running.names
            and reference.name == self.request.name
            and (reference.namespace or self.request.namespace) == self.request.namespace
        )

    async def _resource(self, kind: Kind[Any]) -> ResourceType:
        if isinstance(kind.source, ResourceType):
            return kind.source
        return await self.running.runtime.client.discovery.resource(kind.source.api_version, kind.source.kind)

    async def _child(self, obj: W, owner: bool | None) -> tuple[W, ResourceType]:
        """A copy of the author's object with namespace and owner."""
        resource = await self._resource(kind_of(obj))
        child = _copied(obj)
        if resource.namespaced and not child.metadata.namespace:
            child.metadata.namespace = self.request.namespace or self.running.runtime.client.namespace
        primary = self._primary
        if owner is False or primary is None:
            return child, resource
        if owner or may_own(primary, self.request.namespace is not None, child, resource.namespaced):
            set_controller(primary, child)
        return child, resource

    async def _expect_ours(self, child: Any, resource: ResourceType) -> Any:
        """The present object of the child's name, from the cache if there; refused when it is not ours."""
        kind = kind_of(child)
        name, namespace = child.metadata.name, child.metadata.namespace
        present = await self._cached(kind, name, namespace) if self.running.declares(kind) else None
        claims = controller_of(child) is not None and self._primary is not None
        if present is None and claims:
            found = await self._look(kind, name, namespace)
            if found is not None:
                self._refuse_foreign(found)
        elif present is not None and claims:
            self._refuse_foreign(present)
        return present

    async def _cached(self, kind: Kind[Any], name: str, namespace: str | None) -> Any:
        try:
            return await self.running.runtime.cache.get(kind, name, namespace)
        except NotCached:
            return None  # the cache was told to leave that namespace out: the server has to be asked

    async def _look(self, kind: Kind[Any], name: str, namespace: str | None) -> Any:
        try:
            return await self.running.runtime.client.get(metadata_of(kind), name, namespace=namespace)
        except NotFound:
            return None

    def _refuse_foreign(self, present: Any) -> None:
        if not is_controlled_by(present, self._primary):
            other = controller_of(present)
            raise NameConflict(describe(present), f"{other.kind} {other.name}" if other else "nobody that it names")
        if present.metadata.deletion_timestamp is not None:
            raise ChildTerminating(_TERMINATING_WAIT, f"{describe(present)} is being deleted")

    async def _write(
        self,
        verb: str,
        obj: Any,
        send: Callable[[], Awaitable[Any]],
        *,
        base: str | None = None,
        sent: Mapping[str, Any] | None = None,
    ) -> Any:
        self._count(verb, obj)
        cache, reference = self.running.runtime.cache, obj if isinstance(obj, Ref) else ref_of(obj)
        if not reference.name:
            answer = await send()
            cache.note_write(answer, base=base, sent=sent)
            return answer
        with cache.writing(reference.kind, reference.name, reference.namespace, base=base, sent=sent) as write:
            answer = await send()
            write.done(answer)
            if self._is_primary(answer):
                self.own_write(answer, base)
        return answer

    def own_write(self, answer: Any, base: str | None) -> None:
        """The pass's own object was written: its echo is not news, and the status goes onto this version."""
        self.running.note_own(answer.metadata.uid, answer.metadata.resource_version)
        if self._primary is not None and base and base == self._primary.metadata.resource_version:
            self._primary.metadata.resource_version = answer.metadata.resource_version

    def count_write(self, words: str) -> None:
        """A change of the world is made now."""
        self.writes += 1
        budget = self.running.options.write_budget
        if budget is not None and self.writes > budget:
            report(
                "M-06",
                f"{words} is write {self.writes} of this pass and its budget is {budget}; "
                "return after one change, its event brings the next pass",
                code=self.running.code,
            )

    def _count(self, verb: str, obj: Any) -> None:
        if isinstance(obj, Ref):
            self.count_write(f"{verb} {obj.kind.word} {obj.name}")
        else:
            self.count_write(f"{verb} {describe(obj)}")

    def _mind_deletion(self, verb: str, child: Any) -> None:
        if self.deleting:
            report(
                "M-19",
                f"{verb} {describe(child)}: its owner is being deleted, so nothing should be made for it any more",
                code=self.running.code,
            )

    def _mind_foreign(self, obj: Any) -> None:
        if self._primary is None or is_controlled_by(obj, self._primary) or self._is_primary(obj):
            return
        if obj.metadata.labels.get(MANAGED_BY) != self.running.name:
            report(
                "NEVER-4",
                f"delete {describe(obj)}: it is neither controlled by {describe(self._primary)} nor labelled "
                f"{MANAGED_BY}={self.running.name}; delete only what is known to be ours",
                code=self.running.code,
            )


def _copied(obj: W) -> W:
    """The object with metadata that can be changed without touching the author's."""
    if isinstance(obj, DynamicObject):
        return cast("W", DynamicObject(copy.deepcopy(dict(obj))))
    made = copy.copy(obj)
    metadata = made.metadata = copy.copy(obj.metadata)
    metadata.owner_references = [*metadata.owner_references]
    metadata.labels, metadata.annotations = dict(metadata.labels), dict(metadata.annotations)
    return made


def _version(obj: Any) -> str | None:
    return obj.resource_version if isinstance(obj, Ref) else obj.metadata.resource_version or None

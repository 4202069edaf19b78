"""The workspace: a notebook beside an object, for what must survive and no child can tell.

Derive first what children tell (names, labels, conditions); note only the rest, and bear the loss of the notebook.

Kind `<Kind>Workspace`, of the same group and version, same namespace and name as its object, owned by it; nobody
reconciles or watches it. `workspace_kind(Kind)` is its class, from which `crd_of` makes its definition. It is read from
the server once per pass, written with the version that was read (a conflict ends the pass silently), and a pass that
wrote it is run again at once.

**Nonce before act.** A call to the outside that must not happen twice goes like this:

    notes = await ctx.workspace(Notes)
    intent = await notes.intent("launch")                   # written down, before anything happens
    server = await intent.call(cloud.launch, size="small")  # cloud.launch(nonce, size="small")
    notes.data.server = server.id
    await notes.done("launch")                              # the result, and the end of the intent, in one write

Cut anywhere, the next pass finds the open intent and repeats the call with the same nonce. `intent.call` is the only
way to the nonce, and there is no `Intent` that was not written down.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeVar
from uuid import uuid4

from flyball.api import DynamicObject, Model, PreserveUnknown, Resource, ResourceType, field, from_dict, to_dict
from flyball.api.naming import plural_of
from flyball.client.kinds import kind_from, kind_of
from flyball.client.refusals import RefusedRequest
from flyball.controller.ownership import NameConflict, controller_of, describe, set_controller
from flyball.errors import AlreadyExists, NotFound, RetryAfter

if TYPE_CHECKING:
    from flyball.controller.context import Context

__all__ = ["Intent", "SyncIntent", "SyncWorkspace", "Workspace", "workspace_kind"]

D = TypeVar("D", bound=Model)
T = TypeVar("T")

_STALE_WAIT: Final = 5.0
_MADE_HERE: Final = object()


@cache
def workspace_kind(kind: type[Resource]) -> type[Resource]:
    """The class of the workspaces of a kind: `crd_of(workspace_kind(Bucket))`."""
    options = kind.kind_options
    if options.builtin:
        raise RefusedRequest(f"{kind.__name__} is a built-in kind, so it can have no workspace; use a kind of your own")

    def body(space: dict[str, Any]) -> None:
        space["__doc__"] = f"What the controller of {options.kind} remembers about one object. Nobody else writes it."
        space["__module__"] = kind.__module__
        space["__annotations__"] = {
            "data": Annotated[dict[str, Any], PreserveUnknown()],
            "intents": dict[str, str],
        }
        space["data"] = field(default_factory=dict[str, Any])
        space["intents"] = field(default_factory=dict[str, str])

    name = f"{options.kind}Workspace"
    words: dict[str, Any] = {"group": options.group, "version": options.version, "scope": options.scope}
    made: type[Resource] = types.new_class(name, (Resource,), words, body)
    return made


def _resource_of(source: ResourceType) -> ResourceType:
    kind = f"{source.kind}Workspace"
    return ResourceType(source.group, source.version, kind, plural_of(kind), source.namespaced, kind.lower())


class Intent:
    """An intent that is written down and open; only `Workspace.intent` makes one."""

    def __init__(self, made_here: object, key: str, nonce: str) -> None:
        """Not to be called."""
        if made_here is not _MADE_HERE:
            raise TypeError("an Intent comes from workspace.intent(key), which writes it down first")
        self.key = key
        self._nonce = nonce
        self._open = True

    async def call(self, act: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
        """Call `act(nonce, ...)`; it must see to it that the same nonce acts once."""
        return await act(self._taken(), *args, **kwargs)

    def _taken(self) -> str:
        if not self._open:
            raise RefusedRequest(f"intent {self.key!r} is done; ask the workspace for a new one")
        return self._nonce

    def close(self) -> None:
        """The intent is done."""
        self._open = False


class Workspace(Generic[D]):
    """The notebook of one object, in one pass; `await ctx.workspace(Notes)` opens it."""

    def __init__(self, ctx: Context, data: type[D], stored: DynamicObject | None, resource: ResourceType) -> None:
        """Made by `open`."""
        self._ctx = ctx
        self._type = data
        self._resource = resource
        self._stored = stored
        self._handed_out: dict[str, Intent] = {}
        self.data: D = self._read()
        """The notes; what is changed here is stored by `save`, `intent` and `done`."""

    @classmethod
    async def open(cls, ctx: Context, data: type[D]) -> Workspace[D]:
        """Read it from the server."""
        primary = ctx.primary
        if primary is None:
            raise RefusedRequest("a raw reconciler has no object of its own, so it has no workspace; drop raw=True")
        source = (
            await ctx.running.runtime.client.discovery.resource(*ctx.running.names)
            if not isinstance(kind_of(primary).source, ResourceType)
            else kind_of(primary).source
        )
        assert isinstance(source, ResourceType)
        resource = _resource_of(source)
        stored = await ctx.live.get(resource, primary.metadata.name, primary.metadata.namespace)
        if stored is not None:
            _expect_ours(primary, stored)
        return cls(ctx, data, stored, resource)

    def _read(self) -> D:
        plain: Any = self._stored.get("data") if self._stored is not None else None
        return from_dict(self._type, plain or {})

    @property
    def exists(self) -> bool:
        """Whether it is stored. Losing it must not be a catastrophe: look at the children too."""
        return self._stored is not None

    @property
    def intents(self) -> Mapping[str, str]:
        """The open intents; their nonces are for logs."""
        plain: Any = self._stored.get("intents") if self._stored is not None else None
        return dict(plain or {})

    async def ensure(self) -> None:
        """Store it, if it is not there."""
        if self._stored is None:
            await self._write(self.intents)

    async def save(self) -> None:
        """Store the notes, if they differ from what is stored."""
        present: Any = self._stored.get("data") if self._stored is not None else {}
        if to_dict(self.data) != (present or {}):
            await self._write(self.intents)

    async def intent(self, key: str, nonce: str | None = None) -> Intent:
        """Write down that something is going to be done, or find that it was: an open intent keeps its nonce."""
        present = self.intents
        if key not in present:
            await self._write({**present, key: nonce or uuid4().hex})
        made = self._handed_out.get(key)
        if made is None:
            made = self._handed_out[key] = Intent(_MADE_HERE, key, self.intents[key])
        return made

    async def done(self, key: str) -> None:
        """It was done: store the notes and end the intent, in one write. An intent that is not open is fine."""
        present = dict(self.intents)
        if present.pop(key, None) is None:
            await self.save()
            return
        await self._write(present)
        intent = self._handed_out.pop(key, None)
        if intent is not None:
            intent.close()

    async def _write(self, intents: Mapping[str, str]) -> None:
        ctx = self._ctx
        primary, client = ctx.primary, ctx.running.runtime.client
        content = {"data": to_dict(self.data), "intents": dict(intents)}
        ctx.count_write(f"write of the workspace of {describe(primary)}")
        manager = ctx.running.field_manager
        if self._stored is not None:
            changed = DynamicObject({**self._stored, **content})
            self._stored = await client.update(changed, field_manager=manager)
        else:
            self._stored = await self._create(content)
        ctx.rerun = True

    async def _create(self, content: dict[str, Any]) -> DynamicObject:
        ctx = self._ctx
        primary, client = ctx.primary, ctx.running.runtime.client
        made = DynamicObject(
            {
                "apiVersion": self._resource.api_version,
                "kind": self._resource.kind,
                "metadata": {"name": primary.metadata.name},
                **content,
            }
        )
        if self._resource.namespaced:
            made.metadata.namespace = primary.metadata.namespace
        client.discovery.learn(self._resource)
        set_controller(primary, made)
        try:
            return await client.create(made, field_manager=ctx.running.field_manager)
        except AlreadyExists:
            # Somebody was quicker: what stands there counts, and this pass does not know it.
            present = await client.get(
                kind_from(self._resource), primary.metadata.name, namespace=primary.metadata.namespace
            )
            _expect_ours(primary, present)
            raise RetryAfter(0.0, f"the workspace of {describe(primary)} was made meanwhile") from None
        except NotFound as error:
            if error.details.get("name"):
                raise
            raise RefusedRequest(
                f"the cluster does not know the kind {self._resource.kind}; install its definition: "
                f"crd_of(workspace_kind({primary.kind}))"
            ) from error


def _expect_ours(primary: Any, stored: Any) -> None:
    owner = controller_of(stored)
    if owner is None:
        raise NameConflict(describe(stored), "nobody that it names")
    if owner.uid != primary.metadata.uid:
        if owner.kind == primary.kind and owner.name == primary.metadata.name:
            raise RetryAfter(_STALE_WAIT, f"{describe(stored)} is of a former {primary.kind}; it is on its way out")
        raise NameConflict(describe(stored), f"{owner.kind} {owner.name}")
    if stored.metadata.deletion_timestamp is not None:
        raise RetryAfter(_STALE_WAIT, f"{describe(stored)} is being deleted")


Wait = Callable[[Coroutine[Any, Any, Any]], Any]


class SyncIntent:
    """`Intent` for plain functions."""

    def __init__(self, intent: Intent) -> None:
        """Over the asynchronous one."""
        self._intent = intent
        self.key = intent.key

    def call(self, act: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Call `act(nonce, ...)`."""
        return act(self._intent._taken(), *args, **kwargs)  # pyright: ignore[reportPrivateUsage]


class SyncWorkspace(Generic[D]):
    """`Workspace` for plain functions."""

    def __init__(self, workspace: Workspace[D], wait: Wait) -> None:
        """Over the asynchronous one."""
        self._workspace = workspace
        self._wait = wait

    @property
    def data(self) -> D:
        """The notes."""
        return self._workspace.data

    @property
    def exists(self) -> bool:
        """Whether it is stored."""
        return self._workspace.exists

    @property
    def intents(self) -> Mapping[str, str]:
        """The open intents."""
        return self._workspace.intents

    def ensure(self) -> None:
        """Store it, if it is not there."""
        self._wait(self._workspace.ensure())

    def save(self) -> None:
        """Store the notes, if they differ."""
        self._wait(self._workspace.save())

    def intent(self, key: str, nonce: str | None = None) -> SyncIntent:
        """Write down that something is going to be done."""
        return SyncIntent(self._wait(self._workspace.intent(key, nonce)))

    def done(self, key: str) -> None:
        """It was done."""
        self._wait(self._workspace.done(key))

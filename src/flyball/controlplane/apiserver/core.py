"""What the handlers share: the store, the kinds, the clock, and the steps that every write goes through."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal

from flyball.api.fielderrors import FieldError
from flyball.api.structural import (
    RULES_NOT_CHECKED,
    Schema,
    blocks_rules,
    default,
    drop_nulls,
    prune,
    validate,
    validate_lists,
)
from flyball.clock import Clock, RealClock
from flyball.controlplane.apiserver.apply import Operation
from flyball.controlplane.apiserver.builtin import message_of
from flyball.controlplane.apiserver.kinds import Kind, Kinds
from flyball.controlplane.apiserver.metadata import validate_metadata
from flyball.controlplane.apiserver.options import WriteOptions
from flyball.controlplane.apiserver.request import Request, User
from flyball.controlplane.apiserver.status import bad_request, forbidden, invalid, not_found
from flyball.controlplane.apiserver.store import Key, Store
from flyball.controlplane.apiserver.wire import Misfit, tidy

__all__ = ["Admission", "Core", "Object", "Verb", "blank", "fresh", "no_namespace_change", "of_kind", "tidied"]

Object = dict[str, Any]
ALL_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
Verb = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(frozen=True, slots=True)
class Admission:
    """What is about to be written, for those who may still change or refuse it."""

    verb: Verb
    kind: Kind
    subresource: str
    namespace: str
    name: str
    obj: Object | None
    old: Object | None
    user: User
    dry_run: bool


Admit = Callable[["Core", Admission], Awaitable[None]]
Rules = Callable[[Kind, Object, Object | None], list[FieldError]]


def _no_rules(kind: Kind, obj: Object, old: Object | None) -> list[FieldError]:
    return []


@dataclass(slots=True)
class Core:
    """The parts of one server."""

    store: Store
    kinds: Kinds
    clock: Clock = field(default_factory=RealClock)
    admit: list[Admit] = field(default_factory=list[Admit])
    """Asked in order before each write; they change the object in place, or raise."""
    committed: list[Callable[[Key], Awaitable[None]]] = field(default_factory=list[Callable[[Key], Awaitable[None]]])
    """Told of each write that was committed, before its writer is answered."""
    rules: Rules = _no_rules
    """The findings of the CEL rules of a kind."""
    bookmark_seconds: float = 60.0
    watch_list: bool = True

    def now(self) -> datetime:
        """Return the time of the server's clock."""
        return self.clock.now()

    async def wait(self, happening: Awaitable[object], seconds: float) -> bool:
        """Wait for something to happen, for so long by the server's clock; tell whether it did."""
        task = asyncio.ensure_future(happening)
        bell = asyncio.ensure_future(self.clock.sleep(seconds))
        await asyncio.wait((task, bell), return_when=asyncio.FIRST_COMPLETED)
        happened = task.done()
        for one in (task, bell):
            one.cancel()
        await asyncio.gather(task, bell, return_exceptions=True)
        return happened

    def key(self, kind: Kind, namespace: str, name: str) -> Key:
        """Return where an object is stored."""
        return Key(kind.storage, namespace if kind.namespaced else "", name)

    # The steps of a write, in their order

    def shape(self, kind: Kind, obj: Object, unknown: list[str], *, applied: bool = False) -> Object:
        """Bring an object into the shape of its kind: prune (naming what goes), drop nulls, default.

        What was given is used up; go on with what is returned. Nulls that an apply leaves behind stay, and are judged.
        Raises BadRequest for values of the wrong type.
        """
        schema = kind.schema
        if schema is None:
            return obj
        if kind.builtin and "metadata" in schema.properties:
            unknown.extend(f"metadata.{path}" for path in prune(obj["metadata"], schema.properties["metadata"]))
        unknown.extend(prune(obj, schema))
        if kind.builtin:
            obj = tidied(kind, obj)
        else:
            kind.strategy.coerce(obj, unknown)
            if not applied:
                drop_nulls(obj, schema)
            default(obj, schema)
        kind.strategy.default(obj)
        return obj

    def report_unknown(self, request: Request, kind: Kind, fields: list[str], options: WriteOptions) -> None:
        """Tell the writer of fields that nobody knows: by warnings, or by refusing."""
        if not fields or options.validation == "Ignore":
            return
        if options.validation == "Warn":
            request.warnings.extend(fields)
            return
        told = ", ".join(fields)
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: {told}'
        )

    def operation(self, kind: Kind, options: WriteOptions, subresource: str = "") -> Operation:
        """Describe the writer for the tracking of managed fields."""
        return Operation(
            options.manager,
            kind.api_version,
            self.now(),
            self._schemas(kind),
            subresource,
            _ignored(kind, subresource),
            blank(kind),
        )

    def _schemas(self, kind: Kind) -> Callable[[str], Schema | None]:
        def find(api_version: str) -> Schema | None:
            if api_version == kind.api_version:
                return kind.schema
            other = self.kinds.by_kind(api_version, kind.kind)
            return None if other is None else other.schema

        return find

    async def tell(self, key: Key) -> None:
        """Tell everybody who follows commits that there was one."""
        for follow in self.committed:
            await follow(key)

    async def ask(self, admission: Admission) -> None:
        """Let everybody who has a say look at a write."""
        for admit in self.admit:
            await admit(self, admission)

    def judge(self, kind: Kind, obj: Object, old: Object | None) -> list[FieldError]:
        """Find what is wrong with an object that is about to be stored."""
        strategy = kind.strategy
        errors = validate_metadata(obj["metadata"], strategy.name, kind.namespaced)
        if kind.schema is not None and strategy.by_schema:
            errors.extend(_of_schema(kind, obj))
        errors.extend(strategy.validate(obj) if old is None else strategy.validate_update(obj, old))
        if kind.builtin:
            return errors
        if blocks_rules(errors):
            return [*errors, RULES_NOT_CHECKED] if _has_rules(kind.schema) else errors
        return errors + self.rules(kind, obj, old)

    def require_namespace(self, kind: Kind, namespace: str, name: str = "") -> None:
        """Refuse to create in a namespace that does not exist or is on its way out."""
        entry = self.store.get(Key("namespaces", "", namespace))
        if entry is None:
            raise not_found("namespaces", "", namespace)
        if entry.fields.get("status.phase") == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden(kind.plural, kind.group, name, why, [cause])


def _of_schema(kind: Kind, obj: Object) -> list[FieldError]:
    assert kind.schema is not None
    named = {name: obj["metadata"][name] for name in ("name", "generateName") if name in obj["metadata"]}
    bare = {**obj, "metadata": named}
    return validate(bare, kind.schema) + validate_lists(bare, kind.schema)


def _has_rules(schema: Schema | None) -> bool:
    if schema is None:
        return False
    below = [*schema.properties.values(), schema.additional, schema.items]
    return bool(schema.rules) or any(_has_rules(child) for child in below)


def _ignored(kind: Kind, subresource: str) -> tuple[tuple[str, ...], ...]:
    """Return the fields that an endpoint does not write."""
    if not kind.has("status"):
        return ()
    if subresource != "status":
        return tuple((f"f:{name}",) for name in ("status", *kind.strategy.unmanaged))
    others = () if kind.schema is None else tuple(kind.schema.properties)
    ignored = [(f"f:{name}",) for name in others if name not in ("status", "metadata")]
    if kind.builtin and len(kind.strategy.status_keeps) < len(ALL_METADATA):
        return (*ignored, *(("f:metadata", f"f:{name}") for name in kind.strategy.status_keeps))
    return (*ignored, ("f:metadata",))


def fresh(obj: Mapping[str, Any]) -> Object:
    """Return a copy of an object that shares nothing with it."""
    return {name: _copied(value) for name, value in obj.items()}


def _copied(value: Any) -> Any:
    """The same JSON value: several times quicker than `copy.deepcopy`, which has to allow for everything."""
    if isinstance(value, dict):
        return {name: _copied(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_copied(below) for below in value]
    return value


def blank(kind: Kind) -> Object:
    """Return an object of a kind of which nothing is said: of a built-in one, the structs that are always there."""
    return _blank(kind.schema_name) if kind.builtin and kind.schema_name else {}


@cache
def _blank(message: str) -> Object:
    """By name, not by kind: custom kinds come and go, and a cache must not keep them."""
    return tidy({}, message)


def tidied(kind: Kind, obj: Object) -> Object:
    """Return an object of a built-in kind in the form in which it is written. Raises BadRequest."""
    try:
        return tidy(obj, kind.schema_name)
    except Misfit as wrong:
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {wrong}'
        ) from None


def no_namespace_change(obj: Object, namespace: str) -> None:
    """Take the namespace from the URL; one in the body must be the same."""
    given = obj["metadata"].get("namespace") or namespace
    if given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        obj["metadata"]["namespace"] = namespace
    else:
        obj["metadata"].pop("namespace", None)


_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'


def _known_kind(obj: Object, kind: Kind, api_version: str, name: str) -> None:
    """Refuse an object of another kind than the one that is served here."""
    if (api_version, name) == (kind.api_version, kind.kind):
        return
    version = api_version.rpartition("/")[2]
    message = message_of(api_version, name)
    if not message:
        why = f'no kind "{name}" is registered for version "{api_version}" {_SCHEME}'
    else:
        try:
            tidy(obj, message)
            inner = kind.group.partition(".")[0] or "core"
            why = f"converting ({version}.{name}) to ({inner}.{kind.kind}): unknown conversion"
        except Misfit as wrong:
            why = str(wrong)
    raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {why}')


def of_kind(obj: Any, kind: Kind) -> Object:
    """Take kind and version of a body from the URL where it does not say them; what it says must be true."""
    api_version, name = obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.kind
    if not isinstance(api_version, str) or not isinstance(name, str):
        raise bad_request("couldn't get version/kind; json parse error: kind and apiVersion are texts")
    if kind.builtin:
        _known_kind(obj, kind, api_version, name)
    elif api_version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        )
    elif name != kind.kind:
        wrong = FieldError.invalid("kind", name, f"must be {kind.kind}")
        raise invalid(name, kind.group, str((obj.get("metadata") or {}).get("name") or ""), [wrong])
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: metadata is no object'
        )
    rest = {field: value for field, value in obj.items() if field not in ("kind", "apiVersion", "metadata")}
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata or {}, **rest}

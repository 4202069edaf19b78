"""Keeps the kinds that are served equal to the definitions that are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from flyball.controlplane.apiserver.apply import keep_times, track
from flyball.controlplane.apiserver.core import Core
from flyball.controlplane.apiserver.crds.definition import (
    CLEANUP,
    condition,
    default_definition,
    is_true,
    mark_for_deletion,
    prepare_new,
    prepare_update,
    set_condition,
    storage_version,
)
from flyball.controlplane.apiserver.crds.names import decide_names
from flyball.controlplane.apiserver.crds.rules import findings, schema_findings
from flyball.controlplane.apiserver.crds.serving import kinds_of, sources_of
from flyball.controlplane.apiserver.crds.validation import (
    SchemaCheck,
    format_warnings,
    validate_definition,
    validate_definition_update,
)
from flyball.controlplane.apiserver.crds.versions import Versions
from flyball.controlplane.apiserver.deleting import delete
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.metadata import time_text
from flyball.controlplane.apiserver.options import DeleteOptions, WriteOptions
from flyball.controlplane.apiserver.render import draft, parse
from flyball.controlplane.apiserver.request import Request, User
from flyball.controlplane.apiserver.status import StatusError
from flyball.controlplane.apiserver.store import Entry, Key, Stale
from flyball.controlplane.apiserver.writing import Target

__all__ = ["Definitions"]

Object = dict[str, Any]

RESOURCE: Final = "customresourcedefinitions.apiextensions.k8s.io"
_SELF: Final = User("system:apiserver", ("system:masters", "system:authenticated"))
_AT_ONCE: Final = 200
"""So many objects are deleted side by side: a durable store syncs them together."""


def definition_rules(rules: SchemaCheck) -> dict[str, Any]:
    """Return how definitions themselves are written: parts of their `Strategy`."""
    return {
        "by_schema": False,
        "default": default_definition,
        "prepare_create": prepare_new,
        "prepare_update": prepare_update,
        "prepare_delete": mark_for_deletion,
        "warn_on_create": format_warnings,
        "validate": lambda obj: validate_definition(obj, rules),
        "validate_update": lambda obj, old: validate_definition_update(obj, old, rules),
    }


def _is_of(group: str, name: str) -> bool:
    """Tell whether a definition of this name is one of a group: names are made of plural and group."""
    return name.partition(".")[2] == group


class Definitions:
    """Follows the stored definitions.

    The server tells it of each commit (`core.committed`); what it does about one is done when the writer gets the
    answer: the kinds are served or gone, the status is written. Only objects with finalizers of their own keep a
    definition that is deleted for longer.
    """

    def __init__(self, core: Core) -> None:
        """Serve what is stored already."""
        self._core = core
        self._kind = core.kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        self._versions: dict[str, Versions] = {}
        self._cleaning: dict[str, asyncio.Task[None]] = {}
        self._kind.strategy = replace(self._kind.strategy, **definition_rules(schema_findings))
        core.rules = findings
        core.committed.append(self._committed)
        core.store.restored.append(self.reload)
        self.reload()

    # From the store to the kinds

    def reload(self) -> None:
        """Serve exactly what is stored: after a start, and after a snapshot was restored."""
        entries = {entry.key.name: entry for entry in self._core.store.listing(RESOURCE).entries}
        for name in set(self._versions) - set(entries):
            self._forget(name)
        for entry in entries.values():
            self._serve(parse(self._kind, entry), entry.revision, anew=True)

    async def settle(self) -> None:
        """Finish what a server that was stopped had begun: statuses and deletions."""
        for entry in self._core.store.listing(RESOURCE).entries:
            await self._follow(entry.key)

    def _serve(self, definition: Object, revision: int, *, anew: bool = False) -> None:
        name, sources, storage = definition["metadata"]["name"], sources_of(definition), storage_version(definition)
        known = self._versions.get(name)
        if anew or known is None or known.storage != storage or not known.same_as(sources):
            known = self._versions[name] = Versions(definition["spec"]["group"], storage, sources, revision)
        kinds = kinds_of(definition, known)
        plural, _, group = name.partition(".")
        self._core.kinds.replace(group, plural, kinds)
        if kinds:
            self._index(name, kinds[0])

    def _index(self, resource: str, kind: Kind) -> None:
        """Give stored objects the fields that can be selected by now."""
        wanted = set(kind.strategy.fields({}))

        def fields(entry: Entry) -> Mapping[str, str] | None:
            return None if set(entry.fields) == wanted else kind.strategy.fields(parse(kind, entry))

        self._core.store.reindex(resource, fields)

    def _forget(self, name: str) -> None:
        plural, _, group = name.partition(".")
        self._versions.pop(name, None)
        self._core.kinds.remove(group, plural)
        self._core.store.close_watchers(name)

    # After a commit

    async def _committed(self, key: Key) -> None:
        if key.resource == RESOURCE:
            await self._follow(key)
        elif key.resource in self._cleaning and not self._core.store.count(key.resource):
            await self._finish(key.resource)

    async def _follow(self, key: Key) -> None:
        entry = self._core.store.get(key)
        if entry is None:
            self._forget(key.name)
            await self._names_are_free(key.name)
            return
        definition = parse(self._kind, entry)
        if definition["metadata"].get("deletionTimestamp") is None:
            definition, entry = await self._decide(key, definition, entry)
            self._serve(definition, entry.revision)
            return
        self._serve(definition, entry.revision)
        if CLEANUP in (definition["metadata"].get("finalizers") or ()):
            if key.name not in self._cleaning:
                self._cleaning[key.name] = asyncio.ensure_future(self._clean(key.name))
            await asyncio.shield(self._cleaning[key.name])

    async def _decide(self, key: Key, definition: Object, entry: Entry) -> tuple[Object, Entry]:
        now = time_text(self._core.now())

        def decided(obj: Object) -> None:
            decide_names(obj, self._others(obj), now)

        written = await self._write(key, decided)
        return (definition, entry) if written is None else (parse(self._kind, written), written)

    def _others(self, definition: Object) -> list[Object]:
        group, name = definition["spec"]["group"], definition["metadata"]["name"]
        entries = self._core.store.listing(RESOURCE).entries
        return [parse(self._kind, one) for one in entries if _is_of(group, one.key.name) and one.key.name != name]

    async def _names_are_free(self, gone: str) -> None:
        """Look again at the definitions of the group that did not get their names."""
        group = gone.partition(".")[2]
        for entry in self._core.store.listing(RESOURCE).entries:
            if _is_of(group, entry.key.name) and not is_true(parse(self._kind, entry), "NamesAccepted"):
                await self._follow(entry.key)

    async def _write(self, key: Key, change: Callable[[Object], None]) -> Entry | None:
        """Change a definition as the server itself; returns what is stored then, None when it is gone."""
        options = WriteOptions(manager="kube-apiserver")
        while True:
            entry = self._core.store.get(key)
            if entry is None:
                return None
            old, obj = parse(self._kind, entry), parse(self._kind, entry)
            change(obj)
            if obj == old:
                return entry
            obj = keep_times(old, track(old, obj, self._core.operation(self._kind, options, "status")))
            try:
                if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
                    await self._core.store.delete(key, entry, partial(draft, self._kind, obj))
                    return None
                return await self._core.store.commit(key, entry, partial(draft, self._kind, obj))
            except Stale:
                continue  # somebody else changed it: look again

    # Deletion

    async def _clean(self, name: str) -> None:
        """Delete all objects of a definition; the last one that goes takes the definition with it."""
        plural, _, group = name.partition(".")
        kind = self._core.kinds.preferred(group, plural)
        now = time_text(self._core.now())
        going = condition("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        await self._write(Key(RESOURCE, "", name), lambda obj: set_condition(obj, going, now))
        if kind is not None:
            entries = self._core.store.listing(name).entries
            for start in range(0, len(entries), _AT_ONCE):
                await asyncio.gather(*(self._delete(kind, entry) for entry in entries[start : start + _AT_ONCE]))
        if not self._core.store.count(name) or kind is None:
            await self._finish(name)

    async def _delete(self, kind: Kind, entry: Entry) -> None:
        target = Target(kind, entry.key.namespace, entry.key.name)
        request = Request("DELETE", "", (), {}, b"", _SELF)
        try:
            await delete(self._core, request, target, DeleteOptions(uid=entry.uid))
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    async def _finish(self, name: str) -> None:
        """Let go of a definition whose objects are gone; only once, however many see the last one go."""
        if self._cleaning.pop(name, None) is None:
            return
        key = Key(RESOURCE, "", name)
        now = time_text(self._core.now())

        def released(obj: Object) -> None:
            set_condition(
                obj, condition("Terminating", "False", "InstanceDeletionCompleted", "removed all instances"), now
            )
            metadata = obj["metadata"]
            metadata["finalizers"] = [one for one in metadata.get("finalizers") or () if one != CLEANUP]
            if not metadata["finalizers"]:
                del metadata["finalizers"]

        left = await self._write(key, released)
        if left is None:
            self._forget(name)
            await self._names_are_free(name)

"""The two operations on managed fields: apply a configuration, and track what any other write changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from flyball.api.structural import Schema, same
from flyball.controlplane.apiserver.apply.fieldset import Element, FieldSet, Path, named, path_text, without_below
from flyball.controlplane.apiserver.apply.managers import Managed, ManagerEntry, ManagerId, identify, time_text
from flyball.controlplane.apiserver.apply.typed import (
    Comparison,
    check,
    compare,
    field_set,
    merge,
    remove,
    with_named_parents,
)

__all__ = ["ApplyConflict", "ApplyError", "Operation", "apply", "keep_times", "track"]

Object = dict[str, Any]

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_METADATA: Final = (named("metadata"),)
_UNMANAGED: Final[FieldSet] = frozenset(
    {
        *((named(name),) for name in ("apiVersion", "kind", "metadata")),
        *((*_METADATA, named(name)) for name in ("name", "namespace", "uid", "selfLink", "clusterName", "generation")),
        *((*_METADATA, named(name)) for name in ("creationTimestamp", "managedFields", "resourceVersion")),
    }
)
"""Nobody manages these: they name the object, or the server writes them."""


class ApplyError(ValueError):
    """The configuration cannot be applied to this kind."""


class ApplyConflict(Exception):
    """Other managers have fields that the configuration would change."""

    def __init__(self, conflicts: list[tuple[ManagerId, Path]], managed: Managed) -> None:
        """Keep who has what."""
        self.conflicts = conflicts
        self._told = {key: key.told() for key in managed.entries}
        super().__init__(self._message())

    def _message(self) -> str:
        if len(self.conflicts) == 1:
            key, path = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {self._told[key]}: {path_text(path)}"
        lines: list[str] = []
        for key in dict.fromkeys(key for key, _ in self.conflicts):
            lines.append(f"conflicts with {self._told[key]}:")
            lines.extend(f"- {path_text(path)}" for owner, path in self.conflicts if owner == key)
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)

    def causes(self) -> list[dict[str, str]]:
        """Give the conflicts as causes of a Status."""
        return [
            {"reason": "FieldManagerConflict", "message": f"conflict with {self._told[key]}", "field": path_text(path)}
            for key, path in self.conflicts
        ]


@dataclass(frozen=True, slots=True)
class Operation:
    """Who writes what: the same for both operations."""

    manager: str
    api_version: str
    now: datetime
    schema: Callable[[str], Schema | None]
    """The schema of the kind in a version; None when the version is no longer served."""
    subresource: str = ""
    ignored: tuple[Path, ...] = field(default=())
    """Fields that a write through this endpoint does not set (the status, or everything but the status)."""
    blank: Object = field(default_factory=dict[str, Any])
    """An object of the kind of which nothing is said: what a new one is compared with."""

    @property
    def own(self) -> Schema | None:
        """The schema of the version that is written."""
        return self.schema(self.api_version)

    def kept(self, fields: Iterable[Path]) -> FieldSet:
        """Return the fields that this write can set."""
        return without_below(frozenset(fields), self.ignored)


def apply(live: Object, config: Object, operation: Operation, *, force: bool = False) -> Object:
    """Merge a configuration into an object and give its manager exactly the fields that it names.

    `live` without `metadata.managedFields` was written before anybody tracked it. Raises `ApplyConflict`, unless
    forced, when another manager has a field of the configuration with another value; `NotTyped` when the configuration
    names fields that the kind does not have.
    """
    check(config, operation.own, unique=True)
    managed = _read(live)
    bare = _without_managers(live)
    if not managed.entries and live.get("metadata", {}).get("uid"):
        managed = _tracked(
            {}, bare, Managed(), identify(_BEFORE_FIRST_APPLY, "Update", operation.api_version, ""), operation
        )
    owner = identify(operation.manager, "Apply", operation.api_version, operation.subresource)
    try:
        changed, managed = _apply(bare, config, managed, owner, operation, force)
    except ApplyConflict as conflict:
        if operation.manager != "kubectl" or force:
            raise
        _refuse_foreign(conflict, bare, managed, operation)
        changed, managed = _apply(bare, config, managed, owner, operation, force=True)
    if operation.manager == "kubectl":
        _note_last_applied(changed, config)
    return _with_managers(changed, managed)


def _note_last_applied(changed: Object, config: Object) -> None:
    """Keep what kubectl notes when it applies on its own side in step with what it applied on this one."""
    annotations = changed.get("metadata", {}).get("annotations") or {}
    if not annotations.get(_LAST_APPLIED):
        return
    noted = copy.deepcopy(config)
    own = noted.get("metadata", {}).get("annotations")
    if own is not None:
        own.pop(_LAST_APPLIED, None)
        if not own:
            del noted["metadata"]["annotations"]
    text = json.dumps(noted, separators=(",", ":"), ensure_ascii=False, sort_keys=True) + "\n"
    changed["metadata"]["annotations"] = {**annotations, _LAST_APPLIED: text}


def _apply(
    live: Object, config: Object, managed: Managed, owner: ManagerId, operation: Operation, force: bool
) -> tuple[Object, Managed]:
    schema = operation.own
    managed = managed.copy()
    last = managed.entries.get(owner)
    wanted = operation.kept(field_set(config, schema))
    managed.set(owner, wanted, operation.api_version)
    changed = _given_up(merge(live, config, schema), last, managed, operation)
    _take(compare(live, changed, schema), managed, owner, operation, force=force)
    time = None if same(live, changed) else time_text(operation.now)
    managed.set(owner, managed.fields_of(owner) - _UNMANAGED, operation.api_version, time)
    return changed, managed


def _given_up(merged: Object, last: ManagerEntry | None, managed: Managed, operation: Operation) -> Object:
    """Remove what the applier named last time, names no more, and nobody else has."""
    schema = None if last is None else operation.schema(last.api_version)
    if last is None or not last.fields or schema is None:
        return merged
    pruned = remove(merged, with_named_parents(last.fields, schema), schema) or {}
    owned: FieldSet = frozenset().union(*(entry.fields for entry in managed.entries.values()))
    present = with_named_parents(field_set(merged, schema), schema)
    staying = with_named_parents(field_set(pruned, schema), schema) | with_named_parents(owned, schema)
    pruned = remove(merged, present - staying, schema) or {}
    gone = present - with_named_parents(field_set(pruned, schema), schema)
    return remove(merged, gone & with_named_parents(last.fields, schema), schema) or {}


def _take(changes: Comparison, managed: Managed, owner: ManagerId, operation: Operation, *, force: bool) -> None:
    """Take what changed from everybody else; unless forced, what they have with another value is a conflict."""
    claimed = operation.kept(changes.modified | changes.added)
    removed = operation.kept(changes.removed)
    conflicts = [
        (key, path)
        for key, entry in sorted(managed.entries.items())
        if key != owner
        for path in sorted(entry.fields & claimed, key=_leaves_first)
    ]
    if conflicts and not force:
        raise ApplyConflict(conflicts, managed)
    for key, entry in list(managed.entries.items()):
        if key == owner:
            continue
        if operation.schema(entry.api_version) is None:
            del managed.entries[key]
        elif entry.fields & (claimed | removed):
            managed.set(key, entry.fields - claimed - removed, entry.api_version)


def _leaves_first(path: Path) -> tuple[tuple[bool, Element], ...]:
    """Sort fields as a set of fields is walked: those of a level before those below it."""
    last = len(path) - 1
    return tuple((depth < last, element) for depth, element in enumerate(path))


def _refuse_foreign(conflict: ApplyConflict, live: Object, managed: Managed, operation: Operation) -> None:
    """Let kubectl take over what it applied from the client's side; other conflicts stay conflicts."""
    text = (live.get("metadata", {}).get("annotations") or {}).get(_LAST_APPLIED)
    try:
        last = json.loads(text) if text else None
    except ValueError:
        last = None
    if not isinstance(last, dict) or last.get("apiVersion") != operation.api_version:
        raise conflict
    difference = compare(last, live, operation.own)
    allowed = field_set(last, operation.own) - difference.modified - difference.added - difference.removed
    foreign = [(key, path) for key, path in conflict.conflicts if path not in allowed]
    if foreign:
        raise ApplyConflict(foreign, managed) from conflict


def track(live: Object | None, new: Object, operation: Operation) -> Object:
    """Note who changed which fields in a write that is no apply; returns `new` with the entries.

    `live` is None for a create. An object that nobody tracked stays untracked until its first apply. A `new` with an
    empty list of managers forgets all; entries that it changes itself count, if they can be read.
    """
    given = new.get("metadata", {}).get("managedFields", ...)
    bare = _without_managers(new)
    reset = given is not ... and (not given or given == [{}]) and not operation.subresource and live is not None
    managed = Managed() if reset else _managers_of_update(live, given, operation)
    if live is not None and not managed.entries:
        return bare
    owner = identify(operation.manager, "Update", operation.api_version, operation.subresource)
    before = operation.blank if live is None else _without_managers(live)
    return _with_managers(bare, _tracked(before, bare, managed, owner, operation))


def _managers_of_update(live: Object | None, given: Any, operation: Operation) -> Managed:
    if given and given is not ... and not operation.subresource:
        try:
            return Managed.read(given)
        except ValueError:
            pass  # entries that cannot be understood are ignored, as if the writer had not sent any
    return Managed() if live is None else _read(live)


def _tracked(live: Object, new: Object, managed: Managed, owner: ManagerId, operation: Operation) -> Managed:
    managed = managed.copy()
    own = managed.fields_of(owner)
    changes = compare(live, new, operation.own)
    _take(changes, managed, owner, operation, force=True)
    changed = operation.kept(changes.modified | changes.added) - _UNMANAGED
    kept = own - operation.kept(changes.removed)
    if changed:
        time = "" if operation.subresource == "scale" else time_text(operation.now)  # upstream forgets it there
        managed.set(owner, kept | changed, operation.api_version, time)
    else:
        managed.set(owner, kept, operation.api_version)
    managed.cap()
    return managed


def keep_times(old: Object, new: Object) -> Object:
    """Return `new` with the times of the managers as they were if nothing else changed: then it is no change at all."""
    if not same(_without_managers(old), _without_managers(new)):
        return new
    before, after = old.get("metadata", {}).get("managedFields"), new.get("metadata", {}).get("managedFields")
    if _timeless(before) != _timeless(after):
        return new
    kept = _without_managers(new)
    if before is not None:
        kept["metadata"]["managedFields"] = copy.deepcopy(before)
    return kept


def _timeless(entries: Any) -> list[Any]:
    bare = [{name: value for name, value in entry.items() if name != "time"} for entry in entries or ()]
    return sorted(bare, key=lambda entry: json.dumps(entry, sort_keys=True))


def _read(live: Object) -> Managed:
    try:
        return Managed.read(live.get("metadata", {}).get("managedFields"))
    except ValueError:
        return Managed()


def _without_managers(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return dict(obj)
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _with_managers(obj: Object, managed: Managed) -> Object:
    entries = managed.write()
    if not entries:
        return obj
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}

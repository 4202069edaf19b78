"""The keyword arguments that verbs share, each with its default and what it means.

A client's own option holds when a call says nothing.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from flyball.client.selectors import FieldQuery, LabelQuery

__all__ = [
    "CollectionArgs",
    "DeleteArgs",
    "FieldValidation",
    "ListArgs",
    "Propagation",
    "ReadArgs",
    "WatchArgs",
    "WriteArgs",
]

FieldValidation = Literal["Strict", "Warn", "Ignore"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class _Timeout(TypedDict, total=False):
    timeout: float | None
    """Seconds of silence after which `RequestTimeout` is raised; default: the client's."""


class _Where(_Timeout, total=False):
    namespace: str | None
    """Default: the client's namespace. `"*"` (`ALL_NAMESPACES`) where more than one object is meant."""


class ReadArgs(_Where, total=False):
    """Of `get`."""

    resource_version: str | None
    """Default: the newest. `"0"`: any; another: not older than that."""
    subresource: str | None
    """Read this part of the object instead of the whole: `"status"`."""


class _Selection(_Where, total=False):
    labels: LabelQuery | None
    """Default: all. `"app=web"`, `{"app": "web"}`, or a `LabelSelector`."""
    fields: FieldQuery | None
    """Default: all. `"status.phase=Running"` or a mapping; which fields there are depends on the kind."""


class ListArgs(_Selection, total=False):
    """Of `list`."""

    page_size: int | None
    """Objects per request; default 500, None asks for all at once."""
    resource_version: str | None
    """Default: the newest state. `"0"`: any state; another: see `resource_version_match`."""
    resource_version_match: Literal["NotOlderThan", "Exact"] | None


class WatchArgs(_Selection, total=False):
    """Of `watch`."""

    resource_version: str | None
    """Changes after this version; default: what is there now comes first, as ADDED."""
    bookmarks: bool
    """Whether bookmarks are handed out (they are always asked for); default no."""
    send_initial_events: bool
    """What is there comes first, then a bookmark with `initial_events_end`; implies `bookmarks`."""
    inactivity: float | None
    """Seconds without a single byte after which the connection counts as dead; default 30 more than `timeout`."""


class WriteArgs(_Timeout, total=False):
    """Of everything that changes objects."""

    dry_run: bool
    """The server does everything but the storing; a client made with `dry_run=True` never stores."""
    field_manager: str | None
    """Who owns the fields that are written; default: the client's."""
    field_validation: FieldValidation | None
    """What the server does with fields that it does not know; default: the client's, else the server's (a warning)."""


class DeleteArgs(_Where, total=False):
    """Of `delete`."""

    propagation: Propagation
    """What happens to the objects that it owns: `"Background"` (default), `"Foreground"` or `"Orphan"`."""
    grace_period: int | None
    """Seconds; default: the object's own."""
    guard: bool
    """Delete only the version that was read, else Conflict; default no. The uid is always checked if it is known."""
    missing_ok: bool
    """Whether an object that is not there is fine; default no: `NotFound`."""
    dry_run: bool
    """Nothing is deleted, but everything is checked."""


class CollectionArgs(_Selection, total=False):
    """Of `delete_collection`."""

    propagation: Propagation
    """As for `delete`."""
    grace_period: int | None
    """As for `delete`."""
    dry_run: bool
    """As for `delete`."""

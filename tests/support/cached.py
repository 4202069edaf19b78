"""Objects of a cache for tests, and a client of answers that were written down."""

from __future__ import annotations

import json
from typing import Any

from flyball.api import ResourceType
from flyball.api.rawlist import RawReader
from flyball.cache import CachedObject
from flyball.cache.objects import key_of

WIDGETS = ResourceType("example.org", "v1", "Widget", "widgets")


def body(name: str, version: int | str = 1, *, uid: str = "", namespace: str = "ns", **more: Any) -> dict[str, Any]:
    """A widget as JSON; `more` goes into its metadata, `spec` beside it."""
    spec = more.pop("spec", {"size": 1})
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {**metadata, **more}, "spec": spec}


def raw(name: str, version: int | str = 1, **more: Any) -> bytes:
    """The same as bytes."""
    return json.dumps(body(name, version, **more), separators=(",", ":")).encode()


def cached(name: str, version: int | str = 1, **more: Any) -> CachedObject:
    """The same as a cache holds it."""
    record = RawReader().object(raw(name, version, **more))
    return CachedObject(key_of(record), record, WIDGETS)

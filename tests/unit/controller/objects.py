"""Objects as the cache holds them, for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from flyball.api import ResourceType
from flyball.api.rawlist import RawReader
from flyball.cache import CachedObject

POD = ResourceType("", "v1", "Pod", "pods", True, "pod")


def cached(
    name: str = "a",
    *,
    namespace: str = "default",
    uid: str = "u1",
    version: str = "1",
    generation: int = 0,
    status: Any = None,
    **metadata: Any,
) -> CachedObject:
    """A version of an object."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version, **metadata},
    }
    if generation:
        body["metadata"]["generation"] = generation
    if status is not None:
        body["status"] = status
    record = RawReader().object(msgspec.json.encode(body))
    return CachedObject((namespace or None, name), record, POD)

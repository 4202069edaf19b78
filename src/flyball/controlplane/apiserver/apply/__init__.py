"""Server-side apply: who manages which field, and what that means for a write.

Read in this order: `fieldset` (paths of fields, and how they are written down), `typed` (walks over an object and its
schema: which fields it has, what two objects differ in, how one is merged into the other), `managers` (the entries of
`metadata.managedFields`), `engine` (the two operations: `apply`, and `track` for every other kind of write).

Everything works on plain JSON values; what is given is never changed.
"""

from __future__ import annotations

from flyball.controlplane.apiserver.apply.engine import ApplyConflict, ApplyError, Operation, apply, keep_times, track
from flyball.controlplane.apiserver.apply.fieldset import FieldSet, Path, fields_v1, from_fields_v1, path_text
from flyball.controlplane.apiserver.apply.managers import Managed, ManagerId
from flyball.controlplane.apiserver.apply.typed import NotTyped

__all__ = [
    "ApplyConflict",
    "ApplyError",
    "FieldSet",
    "Managed",
    "ManagerId",
    "NotTyped",
    "Operation",
    "Path",
    "apply",
    "fields_v1",
    "from_fields_v1",
    "keep_times",
    "path_text",
    "track",
]

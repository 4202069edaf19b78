"""The ways to change an object: JSON patch, merge patch, strategic merge patch.

Each takes a document of plain JSON values and a patch, and gives back a new document; what it was given stays as it
was. A patch that cannot be applied raises `PatchError`. Nothing here knows kinds or storage: strategic merge patch asks
the compiled schema how lists are merged. Server-side apply is a room of its own.
"""

from __future__ import annotations

from flyball.controlplane.apiserver.patch.errors import MalformedPatch, PatchError, PatchTooLarge, go_text
from flyball.controlplane.apiserver.patch.json_patch import apply_json_patch
from flyball.controlplane.apiserver.patch.merge_patch import apply_merge_patch
from flyball.controlplane.apiserver.patch.strategic import apply_strategic_patch

__all__ = [
    "MalformedPatch",
    "PatchError",
    "PatchTooLarge",
    "apply_json_patch",
    "apply_merge_patch",
    "apply_strategic_patch",
    "go_text",
]

"""JSON merge patch (RFC 7386): maps are merged, null removes, everything else replaces."""

from __future__ import annotations

from typing import Any

__all__ = ["apply_merge_patch"]


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """Return the document with the patch merged in."""
    if not isinstance(patch, dict):
        return patch
    fields: dict[str, Any] = patch
    merged: dict[str, Any] = dict(document) if isinstance(document, dict) else {}
    for field, value in fields.items():
        if value is None:
            merged.pop(field, None)
        elif isinstance(value, dict):
            merged[field] = apply_merge_patch(merged.get(field), value)
        else:
            merged[field] = value
    return merged

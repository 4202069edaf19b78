"""Why a patch is refused."""

from __future__ import annotations

from typing import Any

__all__ = ["MalformedPatch", "PatchError", "PatchTooLarge", "go_text"]


class PatchError(Exception):
    """The patch is well formed, but this document cannot take it."""


class MalformedPatch(PatchError):
    """The patch is none of its type."""


class PatchTooLarge(PatchError):
    """The patch has more operations than a server is willing to do in one go."""


def go_text(value: Any) -> str:
    """Write a value as Go prints it in passing."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)

"""Regular expressions in the syntax of RE2, which is what Kubernetes uses: matched in linear time."""

from __future__ import annotations

import functools
import importlib
from typing import Final, Protocol, cast

__all__ = ["Pattern", "PatternError", "compile_pattern"]


class PatternError(ValueError):
    """A text is no regular expression of this syntax; the message says why."""


class Pattern(Protocol):
    """A compiled expression."""

    def search(self, text: str) -> object | None:
        """Return a match anywhere in the text, or None."""
        ...


@functools.lru_cache(maxsize=4096)
def compile_pattern(text: str) -> Pattern:
    """Compile an expression, once per text. Raises `PatternError`."""
    re2 = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return cast("Pattern", re2.compile(text, options))
    except re2.error as error:
        reason = error.args[0] if error.args else "invalid"
        words = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise PatternError(f"error parsing regexp: {_as_go_says(words)}") from error


_GO_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def _as_go_says(words: str) -> str:
    """Put a complaint of RE2 into the words of Go's package, which means the same."""
    for ours, theirs in _GO_WORDS.items():
        if words.startswith(ours):
            words = theirs + words.removeprefix(ours)
            break
    code, colon, part = words.partition(": ")
    return f"{code}: `{part}`" if colon else words

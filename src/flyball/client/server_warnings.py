"""What the server says beside its answer: `Warning` headers.

A Kubernetes API server warns of deprecated versions, unknown fields and odd values by headers of the form
`299 - "text"`. They are easy to lose, so every answer's are read, and given to the client's callback, or to the log.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header

__all__ = ["LogWarnings", "OnWarning", "ServerWarning", "parse_warnings", "warning_values"]

logger = logging.getLogger("flyball.client.warnings")

_VALUE = re.compile(
    r"""\s*,?\s*(?P<code>\d{3})\s+(?P<agent>[^\s"]+)\s+"(?P<text>(?:[^"\\]|\\.)*)"(?:\s+"[^"]*")?\s*(?=,|$)""", re.S
)
_ESCAPE = re.compile(r"\\(.)", re.S)
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class ServerWarning:
    """One warning: its text, and during which action it came (`create Pod default/demo`)."""

    text: str
    action: str = ""
    code: int = 299
    agent: str = "-"

    def __str__(self) -> str:
        return f"{self.action}: {self.text}" if self.action else self.text


OnWarning = Callable[[ServerWarning], None]


def parse_warnings(values: Iterable[str], action: str = "") -> list[ServerWarning]:
    r"""Read the values of `Warning` headers (RFC 9111 5.5); what is not well formed ends the reading of that value.

    >>> [w.text for w in parse_warnings([r'299 - "unknown field \"spec.x\"", 299 - "two"'])]
    ['unknown field "spec.x"', 'two']
    """
    found: list[ServerWarning] = []
    for value in values:
        position = 0
        while match := _VALUE.match(value, position):
            position = match.end()
            text = _decoded(_ESCAPE.sub(r"\1", match["text"]))
            found.append(ServerWarning(text, action, int(match["code"]), match["agent"]))
    return found


def _decoded(text: str) -> str:
    if "=?" not in text:
        return text
    try:
        return str(make_header(decode_header(text)))
    except (HeaderParseError, LookupError, UnicodeDecodeError):
        return text


def warning_values(headers: Mapping[str, str]) -> list[str]:
    """All values of the header, from a multi-valued mapping or from a plain one."""
    every = getattr(headers, "getall", None)
    if every is not None:
        return list(every("Warning", []))
    value = headers.get("Warning")
    return [value] if value else []


class LogWarnings:
    """The callback used when none is given: each text once, to the logger `flyball.client.warnings`.

    A thousand texts are remembered; an older one may be logged again.
    """

    def __init__(self, log: logging.Logger = logger) -> None:
        self._log = log
        self._seen: OrderedDict[str, None] = OrderedDict()

    def __call__(self, warning: ServerWarning) -> None:
        """Log it, unless its text was logged before."""
        if warning.text in self._seen:
            self._seen.move_to_end(warning.text)
            return
        self._seen[warning.text] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        self._log.warning("%s", warning)

"""How records look: one line of `key=value` for people, one line of JSON for machines.

Both show what the record was told by `extra=...`, and the fields of the pass that wrote it (controller, namespace,
name, reconcile id), also for records of libraries that know nothing of passes. They are ordinary formatters of the
standard library: put them onto handlers of your own, or let `setup` do it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from flyball.controller.logs import pass_fields

__all__ = ["JsonFormatter", "KeyValueFormatter", "LogFormat", "setup"]

LogFormat = Literal["auto", "text", "json"]

_OWN: Final = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}
_BARE: Final = re.compile(r"[^\s\"'=\\]+")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of the pass first, then what this record alone has."""
    of_pass: Mapping[str, Any] | None = getattr(record, "flyball", None)
    found = dict(of_pass if of_pass is not None else pass_fields())
    found.update((name, value) for name, value in record.__dict__.items() if name not in _OWN and name != "flyball")
    return found


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class KeyValueFormatter(logging.Formatter):
    """`2026-01-01T12:00:00.000Z INFO    flyball.manager: words controller=shell name=demo`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line, and a traceback under it where there is one."""
        head = f"{_moment(record)} {record.levelname:<7} {record.name}: {_one_line(record.getMessage())}"
        line = " ".join([head, *(f"{name}={_quoted(value)}" for name, value in _fields(record).items())])
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        if record.stack_info:
            line += "\n" + self.formatStack(record.stack_info)
        return line


def _one_line(text: str) -> str:
    """What somebody else wrote shall not look like a record of ours."""
    return text.replace("\r", "\\r").replace("\n", "\\n") if "\n" in text or "\r" in text else text


def _quoted(value: Any) -> str:
    text = str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time`, `level`, `logger`, `message`, the fields, and `error` with the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in _fields(record).items():
            line[name if name not in line else f"field_{name}"] = value
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def setup(level: str = "info", format: LogFormat = "auto") -> None:
    """Write records to standard error; `auto` is text on a terminal and JSON elsewhere.

    A root logger that has handlers already belongs to somebody else: then only the level of `flyball` is set.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"there is no log level {level!r}; use debug, info, warning, error or critical")
    logging.getLogger("flyball").setLevel(number)
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    as_text = format == "text" or (format == "auto" and sys.stderr.isatty())
    handler.setFormatter(KeyValueFormatter() if as_text else JsonFormatter())
    root.addHandler(handler)
    root.setLevel(max(number, logging.INFO))
    logging.getLogger("aiohttp").setLevel(logging.WARNING)

"""The log of an application that is one machine: JSON lines on standard output, as the fields of each message say."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

__all__ = ["JsonLines", "app_logger"]

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """One JSON object per record: time, level, msg, and the record's extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "msg": record.getMessage(),
        }
        line.update((name, value) for name, value in vars(record).items() if name not in _ORDINARY)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def app_logger(title: str, stream: TextIO | None = None) -> logging.Logger:
    """The logger `flyball.fsm.TITLE`, set up to write JSON lines to standard output.

    Its level is info, or debug when the environment variable `<TITLE IN CAPITALS>_DEBUG` is not empty. Calling it again
    sets it up anew.
    """
    logger = logging.getLogger(f"flyball.fsm.{title}")
    handler = logging.StreamHandler(sys.stdout if stream is None else stream)
    handler.setFormatter(JsonLines())
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if os.environ.get(f"{title.upper()}_DEBUG") else logging.INFO)
    return logger

"""What a line of a log says about the pass that wrote it.

While a pass runs, `pass_fields()` gives its controller, kind, object, id and generation, in its task and in the thread
of a synchronous reconciler. `ctx.log` puts them at each record as `record.flyball`; formatters show them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar, Token
from itertools import count
from typing import Any
from uuid import uuid4

__all__ = ["PassLogger", "enter_pass", "leave_pass", "new_pass_id", "pass_fields"]

_FIELDS: ContextVar[Mapping[str, Any] | None] = ContextVar("flyball_pass", default=None)
_RUN = uuid4().hex[:8]
_COUNT = count(1)


def new_pass_id() -> str:
    """An id that no other pass has, in this process or another."""
    return f"{_RUN}-{next(_COUNT)}"


def pass_fields() -> Mapping[str, Any]:
    """The fields of the pass that is running here; empty outside of a pass."""
    return _FIELDS.get() or {}


def enter_pass(fields: Mapping[str, Any]) -> Token[Mapping[str, Any] | None]:
    """From here on these are the fields; give the answer to `leave_pass`."""
    return _FIELDS.set(fields)


def leave_pass(token: Token[Mapping[str, Any] | None]) -> None:
    """The pass is over."""
    _FIELDS.reset(token)


class PassLogger(logging.LoggerAdapter[logging.Logger]):
    """Writes records that carry the fields of the pass as `record.flyball`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "flyball": self.extra}
        return msg, kwargs

"""Exec and attach over a WebSocket: the first byte of a message is the channel that the rest belongs to.

The outcome comes as a Status on the error channel, just before the connection ends. Version 5 adds the message
`255, channel`: nothing more will come on that channel. Without it a client cannot tell a command that its input ends.
"""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = [
    "CLOSE",
    "ERROR",
    "RESIZE",
    "STDERR",
    "STDIN",
    "STDOUT",
    "V4",
    "V5",
    "exit_status",
    "outcome",
    "read_size",
    "size_message",
]

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255


def size_message(columns: int, rows: int) -> bytes:
    """Tell the size of a terminal."""
    return bytes([RESIZE]) + json.dumps({"Width": columns, "Height": rows}).encode()


def read_size(data: bytes) -> tuple[int, int] | None:
    """Read the size of a terminal, columns and rows; None when it is none."""
    try:
        told = json.loads(data)
        columns, rows = int(told["Width"]), int(told["Height"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return (columns, rows) if 0 < columns <= 0xFFFF and 0 < rows <= 0xFFFF else None


def exit_status(code: int) -> dict[str, Any]:
    """Tell how a command ended, as a Status."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def outcome(data: bytes) -> int | dict[str, Any]:
    """Read what the error channel told: an exit code, or the Status of a failure. Raises ValueError for neither."""
    status = json.loads(data)
    if not isinstance(status, dict):
        raise ValueError("the outcome is no object")
    told: dict[str, Any] = status
    if told.get("status") == "Success":
        return 0
    if told.get("reason") == "NonZeroExitCode":
        causes: Any = (told.get("details") or {}).get("causes") or ()
        for cause in causes:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
    return told

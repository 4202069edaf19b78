"""How a contender tells the bench what happened: lines on standard output at once, what it saw in a file at its end.

Imported by the Python contenders, also by those that run without Flyball; so it needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

COUNT = int(os.environ["BENCH_COUNT"])
STATUS = os.environ.get("BENCH_STATUS") == "1"
EPOCH = int(os.environ.get("BENCH_EPOCH", "0"))
OUT = Path(os.environ["BENCH_OUT"])

_names: set[str] = set()
_seen: dict[int, float] = {}


def say(what: str) -> None:
    """Tell when something happened, by the clock that all processes of the machine share."""
    sys.stdout.write(f"{what} {time.monotonic()}\n")
    sys.stdout.flush()


def note(name: str, number: int) -> None:
    """A pass over an object begins; `number` is what the bench wrote into it."""
    if number not in _seen:
        _seen[number] = time.monotonic()
    if len(_names) < COUNT:
        _names.add(name)
        if len(_names) == COUNT:
            say("first-pass")


def finish() -> None:
    """Write down everything that was seen."""
    OUT.write_text(json.dumps(_seen))

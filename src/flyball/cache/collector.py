"""Python's cycle collector, and how the cache keeps it from stalling the event loop.

Thousands of new objects make the collector look at all the others again and again, for nothing: objects of the cache
hold no cycles, and most are not even known to the collector. So it rests while a list is decoded, and what is there
after the first sync is taken out of its sight (`gc.freeze`).
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["freeze", "resting"]


@contextmanager
def resting() -> Generator[None]:
    """The collector rests inside; not to be held over an `await`."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def freeze() -> None:
    """From now on the collector does not look at anything that is there now."""
    gc.freeze()

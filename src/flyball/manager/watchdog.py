"""Watching the process itself: an event loop that somebody blocks, memory that only grows.

- A thread looks whether the loop still turns. When it stands still, the log names the line of code that holds it, while
  it holds it; a coroutine that calls `time.sleep` or a blocking library stops every controller, every watch and the
  renewal of the lease.
- Every half minute the memory is compared with what it was once caches were warm. When it has doubled (and at each
  doubling after that), the log names the large containers of the program's own modules, the types with the most new
  objects, and the line that allocated most where `PYTHONTRACEMALLOC` is set.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import sysconfig
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import flyball
from flyball.cache import NO_METRICS, Metrics
from flyball.clock import Clock, RealClock, doze

__all__ = ["GrowthWatch", "LoopWatch", "culprit", "resident_memory"]

log = logging.getLogger(__name__)

_HOME: Final = str(Path(flyball.__file__).parent)
_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_BEAT: Final = 0.1
_MEGABYTE: Final = 1_000_000
_LARGE: Final = 10_000


def culprit(frame: FrameType | None) -> str:
    """The innermost line of the program's own code on a stack, else of any code: `operator.py:12 in reconcile`."""
    frames = traceback.walk_stack(frame) if frame is not None else ()
    stack = [(one.f_code.co_filename, line, one.f_code.co_name) for one, line in frames]
    own = next((one for one in stack if not _is_library(one[0])), None)
    place = own or (stack[0] if stack else None)
    if place is None:
        return "unknown code"
    inner = f", in {stack[0][2]} ({_short(stack[0][0])}:{stack[0][1]})" if stack[0] != place else ""
    return f"{place[0]}:{place[1]} in {place[2]}{inner}"


def _is_library(filename: str) -> bool:
    return filename.startswith(("<frozen", _HOME, *_LIBRARIES))


def _short(filename: str) -> str:
    return Path(filename).name


class LoopWatch:
    """Notices when the event loop stands still for longer than `limit` seconds, and says where."""

    def __init__(self, limit: float, *, metrics: Metrics = NO_METRICS) -> None:
        """Nothing is watched before `start`."""
        self._limit = limit
        self._metrics = metrics
        self._beaten = 0.0
        self._beats: asyncio.Task[None] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop_thread = 0
        self.blocked = 0
        """How often it stood still."""
        self.last = ""
        """Who held it last."""

    def start(self) -> None:
        """Watch the running loop."""
        self._loop_thread = threading.get_ident()
        self._beaten = time.monotonic()
        self._beats = asyncio.get_running_loop().create_task(self._beat(), name="watchdog")
        self._thread = threading.Thread(target=self._watch, name="flyball-watchdog", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._beats is not None:
            self._beats.cancel()
            await asyncio.gather(self._beats, return_exceptions=True)
        if self._thread is not None:
            self._thread.join()

    async def _beat(self) -> None:
        while True:
            planned = time.monotonic() + _BEAT
            await asyncio.sleep(_BEAT)
            self._beaten = time.monotonic()
            self._metrics.gauge("flyball_loop_lag_seconds", max(0.0, self._beaten - planned))

    def _watch(self) -> None:
        pause = max(0.02, self._limit / 4)
        while not self._ended.wait(pause):
            since = self._beaten
            if time.monotonic() - since > self._limit + _BEAT:
                self._report()
                while self._beaten == since and not self._ended.wait(0.02):
                    pass
                if not self._ended.is_set():
                    log.warning("the event loop turns again after %.1f s", time.monotonic() - since)

    def _report(self) -> None:
        self.last = culprit(sys._current_frames().get(self._loop_thread))  # pyright: ignore[reportPrivateUsage] # no other way
        self.blocked += 1
        self._metrics.counter("flyball_loop_blocked_total")
        log.error(
            "the event loop has been blocked for more than %g s by %s; watches, other controllers and the lease wait "
            "for it: await instead, or make the reconciler a plain `def`, which runs in a thread",
            self._limit,
            self.last,
        )


def resident_memory() -> int:
    """Bytes of memory that this process holds; 0 where that cannot be found out."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class GrowthWatch:
    """Notices when the process holds `factor` times what it held at the first look, and says what grew."""

    def __init__(
        self,
        factor: float,
        *,
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
        memory: Callable[[], int] = resident_memory,
        every: float = 30.0,
        least: int = 100 * _MEGABYTE,
    ) -> None:
        """Growth of less than `least` bytes is nobody's business."""
        self._factor = factor
        self._clock: Clock = clock if clock is not None else RealClock()
        self._metrics = metrics
        self._memory = memory
        self._every = every
        self._least = least
        self._base = 0
        self._types: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self.last = ""
        """What was said last."""

    async def run(self) -> None:
        """Look every so often, until it is cancelled. The first look is what others are compared with."""
        self.look()
        while True:
            await doze(self._clock, self._every)
            self.look()

    def look(self) -> None:
        """Compare once."""
        now = self._memory()
        self._metrics.gauge("flyball_resident_memory_bytes", float(now))
        if not self._base:
            self._remember(now)
        elif self._factor and now > self._base * self._factor and now - self._base > self._least:
            self.last = self._story(now)
            self._metrics.counter("flyball_memory_growth_total")
            log.warning("%s", self.last)
            self._remember(now)

    def _remember(self, now: int) -> None:
        self._base = now
        self._types = _count_types()
        self._sizes = dict(_containers())

    def _story(self, now: int) -> str:
        sizes, types = dict(_containers()), _count_types()
        grown = sorted(((size - self._sizes.get(name, 0), name, size) for name, size in sizes.items()), reverse=True)
        parts = [f"{name} has {size:,} items" for more, name, size in grown[:3] if more > 0]
        new = [(name, count - self._types[name]) for name, count in types.items()]
        new.sort(key=lambda one: one[1], reverse=True)
        parts += [f"{more:,} more {name}" for name, more in new[:3] if more >= _LARGE]
        parts += _traced()
        what = "; ".join(parts) or "nothing in sight of the collector; PYTHONTRACEMALLOC=1 tells the line"
        return f"the process has grown from {self._base // _MEGABYTE:,} to {now // _MEGABYTE:,} MB: {what}"


def _count_types() -> Counter[str]:
    """How many objects of each type the collector sees; what the cache has frozen is not among them."""
    return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())


def _containers() -> Iterable[tuple[str, int]]:
    """The large containers that the program's own modules and classes hold."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or _is_library(file) or "site-packages" in file:
            continue
        for name, value in list(vars(module).items()):
            yield from _large(f"{module.__name__}.{name}", value)
            if isinstance(value, type) and value.__module__ == module.__name__:
                for inner, held in list(vars(value).items()):
                    yield from _large(f"{module.__name__}.{name}.{inner}", held)


def _large(name: str, value: Any) -> Iterable[tuple[str, int]]:
    if isinstance(value, (dict, list, set, bytearray)):
        size = len(cast("list[Any]", value))
        if size >= _LARGE:
            yield name, size


def _traced() -> list[str]:
    tracemalloc = sys.modules.get("tracemalloc")
    if tracemalloc is None or not tracemalloc.is_tracing():
        return []
    top = tracemalloc.take_snapshot().statistics("lineno")[0]
    return [f"{top.size // _MEGABYTE:,} MB were allocated at {top.traceback[0]}"]

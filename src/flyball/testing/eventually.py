"""Wait for a state of the world, without sleeping blindly.

    shell = await eventually(lambda: client.get(MyOwnShell, "demo"), lambda shell: shell.status.ready == 3)

The probe may be synchronous or asynchronous. It is asked again and again, quickly at first, until its answer satisfies
the predicate (without one: until it is truthy). Errors of the cluster (`FlyballError`, so NotFound too) and failed
assertions of the probe or the predicate mean "not yet"; every other exception is a mistake and is raised at once. When
the time is up, the error says what was seen last and which different answers were seen before.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast, overload

from flyball.clock import Clock, RealClock
from flyball.errors import FlyballError

__all__ = ["NeverHappened", "consistently", "eventually"]

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_REMEMBERED = 5
_SHOWN = 2000


class NeverHappened(AssertionError):
    """The awaited state did not come, or the state that should have lasted did not last."""


@overload
async def eventually(
    probe: Callable[[], Awaitable[T]],
    until: Callable[[T], object] | None = None,
    *,
    timeout: float = 10.0,  # noqa: ASYNC109
    clock: Clock | None = None,
) -> T: ...


@overload
async def eventually(
    probe: Callable[[], T],
    until: Callable[[T], object] | None = None,
    *,
    timeout: float = 10.0,  # noqa: ASYNC109
    clock: Clock | None = None,
) -> T: ...


async def eventually(
    probe: Callable[[], Any],
    until: Callable[[Any], object] | None = None,
    *,
    timeout: float = 10.0,  # noqa: ASYNC109 (the answer's message is the point; asyncio.timeout has none)
    clock: Clock | None = None,
) -> Any:
    """Ask the probe until its answer is right, and give that answer. NeverHappened after `timeout` seconds."""
    time = clock or RealClock()
    started, pause, tries = time.monotonic(), _FIRST_PAUSE, 0
    seen: list[str] = []
    while True:
        tries += 1
        right, answer, words = await _look(probe, until)
        if right:
            return answer
        if not seen or seen[-1] != words:
            seen = [*seen[-_REMEMBERED:], words]
        passed = time.monotonic() - started
        if passed >= timeout:
            raise NeverHappened(_story(f"not so after {passed:.1f} s and {tries} tries", until, seen)) from None
        await time.sleep(min(pause, timeout - passed))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


@overload
async def consistently(
    probe: Callable[[], Awaitable[T]],
    holds: Callable[[T], object] | None = None,
    *,
    during: float = 1.0,
    clock: Clock | None = None,
) -> T: ...


@overload
async def consistently(
    probe: Callable[[], T],
    holds: Callable[[T], object] | None = None,
    *,
    during: float = 1.0,
    clock: Clock | None = None,
) -> T: ...


async def consistently(
    probe: Callable[[], Any],
    holds: Callable[[Any], object] | None = None,
    *,
    during: float = 1.0,
    clock: Clock | None = None,
) -> Any:
    """Ask the probe for `during` seconds; its answer must be right every time. Gives the last one."""
    time = clock or RealClock()
    started = time.monotonic()
    while True:
        right, answer, words = await _look(probe, holds)
        passed = time.monotonic() - started
        if not right:
            raise NeverHappened(_story(f"no longer so after {passed:.1f} s", holds, [words])) from None
        if passed >= during:
            return answer
        await time.sleep(min(_LONGEST_PAUSE, max(during - passed, _FIRST_PAUSE)))


async def _look(probe: Callable[[], Any], right: Callable[[Any], object] | None) -> tuple[bool, Any, str]:
    try:
        given = probe()
        answer = await given if inspect.isawaitable(given) else given
    except (FlyballError, AssertionError) as error:
        return False, None, f"{type(error).__name__}: {error}"
    try:
        held = bool(answer if right is None else right(answer))
    except (FlyballError, AssertionError) as error:
        return False, answer, f"{_shown(answer)}\n({type(error).__name__} in the predicate: {error})"
    return held, answer, "" if held else _shown(answer)


def _story(what: str, predicate: Callable[..., object] | None, seen: list[str]) -> str:
    lines = [f"{what}{_place(predicate)}", f"last seen: {seen[-1]}"]
    if len(seen) > 1:
        lines.append("before that:")
        lines += [f"  {words}" for words in seen[:-1]]
    return "\n".join(lines)


def _place(predicate: Callable[..., object] | None) -> str:
    code = getattr(predicate, "__code__", None)
    if code is None:
        return ""
    return f" ({getattr(predicate, '__name__', 'predicate')}, {code.co_filename}:{code.co_firstlineno})"


def _shown(value: Any) -> str:
    """An object as its JSON, anything else as itself; long ones cut in the middle."""
    text = _as_json(value)
    if len(text) <= _SHOWN:
        return text
    return f"{text[: _SHOWN // 2]} ... {len(text) - _SHOWN} characters ... {text[-_SHOWN // 2 :]}"


def _as_json(value: Any) -> str:
    plain = cast("Any", value) if isinstance(value, (dict, list)) else _plain(value)
    if isinstance(plain, str):
        return plain
    try:
        return json.dumps(plain, default=_plain)
    except (TypeError, ValueError):
        return f"{plain!r}"


def _plain(value: Any) -> Any:
    api: Any = sys.modules.get("flyball.api")
    return api.to_dict(value) if api is not None and isinstance(value, api.Model) else repr(value)

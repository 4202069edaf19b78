"""`run(...)`: a whole process around a manager, from its command line to its exit code.

| what happens | exit code |
|---|---|
| SIGTERM or SIGINT: passes end, for at most `grace` seconds | 0 |
| a second signal | 128 + its number, at once |
| the lease was lost, or nothing could be started | 1, with one line that says why |
| a flag that there is not | 2 |
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from flyball.errors import ConfigError, FlyballError, one_line
from flyball.manager.election import Election
from flyball.manager.manager import Manager
from flyball.manager.options import Options, resolve
from flyball.manager.strictness import logged_strict_warnings

if TYPE_CHECKING:
    from flyball.client import Client
    from flyball.controller.definition import Controller

__all__ = ["run", "run_controllers"]

log = logging.getLogger(__name__)

_MARGIN: Final = 15.0
"""Seconds beyond the grace in which everything else that a stop does must be done."""


def run(
    *controllers: Controller[Any],
    client: Client | None = None,
    leader_election: bool | Election | None = None,
    args: Sequence[str] | None = None,
    **arguments: Any,
) -> None:
    """Run controllers until the process is told to stop: the last line of an operator.

        if __name__ == "__main__":
            run(reconcile)

    `arguments` are options (`flyball.manager.Options`); flags and `FLYBALL_*` variables win over them. Called from a
    script, its command line is read for flags; `args` gives other ones. Ends the process with an exit code other than
    zero when it must. In an event loop that runs already (a notebook), use `await Manager(controllers=[...]).run()`.
    """
    if _loop_is_running():
        raise RuntimeError(
            "run() starts an event loop, but one runs here already; "
            "use `await Manager(controllers=[...]).run()`, or `async with Manager(controllers=[...])`"
        )
    try:
        flags = _flags(args if args is not None else _own_arguments(inspect.currentframe()))
        options = resolve(flags, arguments)
        run_controllers(controllers, options, client=client, leader_election=leader_election)
    except FlyballError as error:
        sys.stderr.write(f"{_program()}: {one_line(str(error))}\n")
        sys.exit(1)


def run_controllers(
    controllers: Sequence[Controller[Any]],
    options: Options,
    *,
    client: Client | None = None,
    leader_election: bool | Election | None = None,
) -> None:
    """The same with options that have been read already; raises instead of ending the process."""
    from flyball.manager.logs import setup

    setup(options.log_level, options.log_format)
    manager: Manager | None = None

    async def main() -> None:
        nonlocal manager
        manager = Manager(client, controllers=controllers, leader_election=leader_election, options=options)
        with _signals(manager.stop_soon, options.grace), logged_strict_warnings(manager.metrics):
            await manager.run()

    with asyncio.Runner(loop_factory=_loop_factory(options)) as runner:
        runner.run(main())
    log.info("stopped in order")


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _own_arguments(here: FrameType | None) -> Sequence[str]:
    """The flags of the process, if `run` was called by the script that it was started with."""
    names: Mapping[str, Any] = here.f_back.f_globals if here is not None and here.f_back is not None else {}
    return sys.argv[1:] if names.get("__name__") == "__main__" and "__file__" in names else ()


def _flags(args: Sequence[str]) -> dict[str, Any]:
    if not args:
        return {}
    from flyball.manager.flags import read_flags

    found = read_flags(args, _program(), "Run the controllers of this program.")
    if isinstance(found, int):
        sys.exit(found)
    return found


def _program() -> str:
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in {"", "-c", "-m"} else "flyball"


def _loop_factory(options: Options) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if options.uvloop == "off":
        return None
    try:
        import uvloop
    except ImportError:
        if options.uvloop == "on":
            raise ConfigError("option uvloop: it is not installed; install flyball[uvloop]") from None
        return None
    return uvloop.new_event_loop


@contextmanager
def _signals(stop: Callable[[], None], grace: float) -> Generator[None]:
    """SIGTERM and SIGINT call `stop`; the second one, or a stop that takes too long, ends the process at once.

    These are handlers of the interpreter, not of the event loop, so that they work when something blocks the loop.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    told = False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal told
        if told:
            os._exit(128 + number)
        told = True
        loop.call_soon_threadsafe(begin, number)
        late = threading.Timer(grace + _MARGIN, _give_up, (grace,))
        late.daemon = True
        late.start()

    def begin(number: int) -> None:
        log.info("%s: stopping; passes have %g s to end", signal.Signals(number).name, grace)
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _give_up(grace: float) -> None:
    sys.stderr.write(f"the process did not end within {grace:g} s and {_MARGIN:g} s more, and is ended now\n")
    os._exit(1)

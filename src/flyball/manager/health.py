"""Answering "are you alive, are you ready": named checks, and the server that Kubernetes' probes ask.

    /healthz, /livez      the process works: its event loop turns, a leader renews its lease
    /readyz               it does its job: watches are up to date, permissions are there
    /healthz/NAME         one check alone
    ?verbose              every check with what it says;  ?exclude=NAME leaves one out
    /metrics              numbers for Prometheus, where the server was told to serve them

A check is a function that returns None when all is well, else why not, in one line.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TypeAlias

from aiohttp import web

from flyball.errors import FlyballError

__all__ = ["Check", "Checks", "PortTaken", "Server"]

log = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], "str | Awaitable[str | None] | None"]


class PortTaken(FlyballError):
    """A server cannot listen where it was told to."""


class Checks:
    """Checks by name."""

    def __init__(self) -> None:
        """Start with one that is always well, so that the answer is never empty."""
        self._checks: dict[str, Check] = {"ping": lambda: None}

    def add(self, name: str, check: Check) -> None:
        """Ask this one too; a name is used once."""
        if name in self._checks:
            raise ValueError(f"there is a check named {name!r} already; give this one another name")
        self._checks[name] = check

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a check of this name."""
        return name in self._checks

    async def ask(self, *, only: str | None = None, exclude: Collection[str] = ()) -> dict[str, str | None]:
        """What each check says, in the order in which they were added."""
        names = [only] if only is not None else [name for name in self._checks if name not in exclude]
        return {name: await _answer(self._checks[name]) for name in names}


async def _answer(check: Check) -> str | None:
    try:
        said = check()
        return await said if inspect.isawaitable(said) else said
    except Exception as error:
        log.exception("a health check failed to run")
        return f"{type(error).__name__}: {error}"


class Server:
    """An HTTP server for probes and numbers; a few routes and no more."""

    def __init__(self, *, host: str, port: int) -> None:
        """Nothing listens yet. Port 0 takes a free one."""
        self._app = web.Application()
        self._wanted = (host, port)
        self._runner: web.AppRunner | None = None
        self.port: int | None = None
        """Where it listens; None when it does not."""

    @property
    def url(self) -> str | None:
        """Where it listens: `http://127.0.0.1:8081`."""
        host = self._wanted[0]
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}" if self.port is not None else None

    def serve_checks(self, path: str, checks: Checks) -> None:
        """Answer at `path` and `path/NAME`."""

        async def all_of_them(request: web.Request) -> web.Response:
            exclude = request.query.getall("exclude", [])
            return _told(path.strip("/"), await checks.ask(exclude=exclude), verbose="verbose" in request.query)

        async def one(request: web.Request) -> web.Response:
            name = request.match_info["name"]
            if name not in checks:
                raise web.HTTPNotFound(text=f"there is no check named {name}\n")
            return _told(name, await checks.ask(only=name), verbose=False)

        self._app.router.add_get(path, all_of_them)
        self._app.router.add_get(f"{path}/{{name}}", one)

    def serve_text(self, path: str, text: Callable[[], bytes], *, content_type: str) -> None:
        """Answer at `path` with what `text` gives."""

        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=text(), headers={"Content-Type": content_type})

        self._app.router.add_get(path, answer)

    async def start(self) -> None:
        """Listen; `PortTaken` when that is not possible."""
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        host, port = self._wanted
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            raise PortTaken(
                f"listen on {host}:{port}: {error.strerror or error}; choose another port, or 0 for a free one"
            ) from None
        self._runner = runner
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner, self.port = None, None


def _told(title: str, found: dict[str, str | None], *, verbose: bool) -> web.Response:
    failed = [name for name, said in found.items() if said is not None]
    if not failed and not verbose:
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: {said}" if said is not None else f"[+]{name} ok" for name, said in found.items()]
    lines.append(f"{title} check {'failed' if failed else 'passed'}")
    return web.Response(text="\n".join(lines) + "\n", status=500 if failed else 200)

"""The server that Kubernetes' probes and Prometheus ask.

    /healthz, /livez      the process works: its event loop turns, a leader renews its lease
    /readyz               it does its job: watches are up to date, permissions are there
    /healthz/NAME         one check alone
    ?verbose              every check with what it says;  ?exclude=NAME leaves one out
    /metrics              numbers for Prometheus, where the server was told to serve them

Loaded when something is to be served, and not before: a web server is a tenth of what an operator loads.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from flyball.manager.health import Checks
from flyball.manager.ports import PortTaken

__all__ = ["Server"]


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

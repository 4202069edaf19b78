"""A small cloud to try things against: instances over HTTP, on loopback, in memory.

    python examples/fake_cloud.py 8099

| request | answer |
|---|---|
| `POST /instances` `{"nonce", "size", "owner"}` | the new instance; the same nonce always gives the same one |
| `GET /instances?owner=...` | the instances of one owner |
| `GET /instances/ID` | one instance, or 404 |
| `DELETE /instances/ID` | 204, also when there is none |

It can be told to be as a cloud is: `lose_answers` carries requests out and breaks the connection, `delay` is slow.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiohttp import web

__all__ = ["FakeCloud"]


class FakeCloud:
    """The service; `async with FakeCloud() as cloud` runs it at `cloud.url`."""

    def __init__(self, port: int = 0) -> None:
        """Port 0 takes a free one."""
        self.instances: dict[str, dict[str, Any]] = {}
        self.launched = 0
        """How many were started in all."""
        self.lose_answers = 0
        """So many of the next changes are carried out, and nobody hears of it."""
        self.delay = 0.0
        self._nonces: dict[str, str] = {}
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._runner is not None, "the cloud does not run"
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> FakeCloud:
        """Listen."""
        app = web.Application()
        app.router.add_post("/instances", self._launch)
        app.router.add_get("/instances", self._list)
        app.router.add_get("/instances/{id}", self._get)
        app.router.add_delete("/instances/{id}", self._delete)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _launch(self, request: web.Request) -> web.Response:
        asked = await request.json()
        found = self._nonces.get(asked["nonce"])
        if found is None:
            self.launched += 1
            found = self._nonces[asked["nonce"]] = f"i-{self.launched}"
            self.instances[found] = {"id": found, "size": asked["size"], "owner": asked["owner"], "state": "running"}
        return await self._changed(request, web.json_response(self.instances.get(found), status=201))

    async def _list(self, request: web.Request) -> web.Response:
        owner = request.query.get("owner")
        return web.json_response([one for one in self.instances.values() if owner in (None, one["owner"])])

    async def _get(self, request: web.Request) -> web.Response:
        found = self.instances.get(request.match_info["id"])
        return web.json_response(found) if found is not None else web.Response(status=404)

    async def _delete(self, request: web.Request) -> web.Response:
        self.instances.pop(request.match_info["id"], None)
        return await self._changed(request, web.Response(status=204))

    async def _changed(self, request: web.Request, answer: web.Response) -> web.Response:
        await asyncio.sleep(self.delay)
        if self.lose_answers and request.transport is not None:
            self.lose_answers -= 1
            request.transport.close()
        return answer


async def main() -> None:
    """Run until it is stopped."""
    async with FakeCloud(int(sys.argv[1]) if len(sys.argv) > 1 else 8099) as cloud:
        sys.stdout.write(f"{cloud.url}\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())

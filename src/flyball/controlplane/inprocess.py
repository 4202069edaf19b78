"""The front door inside of the process: Flyball's own client, without a network between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from multidict import CIMultiDict

from flyball.client.transport import HttpRequest
from flyball.controlplane.apiserver.request import Answer, Request, Upgrade, User
from flyball.controlplane.apiserver.server import ApiServer
from flyball.controlplane.apiserver.streaming import Sessions
from flyball.errors import ConnectionLost
from flyball.framing import WebSocket, socket_pair

__all__ = ["InProcess"]

_log = logging.getLogger("flyball.apiserver.inprocess")


class InProcess:
    """A `Transport` that asks an `ApiServer` directly, as a given user."""

    host = "the embedded cluster"

    def __init__(self, server: ApiServer, user: User) -> None:
        """Take the server and who is asking."""
        self._server = server
        self._user = user

    async def send(self, request: HttpRequest) -> _Response:
        """Hand the request over; the answer is like one that came over the network."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        if request.upgrade:
            headers |= {"connection": "Upgrade", "upgrade": "websocket"}
            headers["sec-websocket-protocol"] = ", ".join(request.upgrade)
        asked = Request(request.method, request.path, tuple(request.query), headers, request.body or b"")
        answer = await self._server.handle(asked, self._user)
        if answer.cut == 0:
            raise _broken_off()
        if answer.upgrade is not None:
            return _Upgraded(answer, answer.upgrade, self._server.sessions)
        return _Response(answer)

    async def close(self) -> None:
        """Hold nothing that could be let go."""


def _broken_off() -> ConnectionLost:
    return ConnectionLost("the embedded cluster broke the connection off")


class _Response:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status = answer.status
        headers = CIMultiDict(answer.headers)
        if answer.content_type:
            headers["Content-Type"] = answer.content_type
        if answer.warnings:
            headers["Warning"] = ", ".join(answer.warnings)
        self.headers: Mapping[str, str] = headers

    async def read(self) -> bytes:
        return b"".join([part async for part in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        answer = self._answer
        if answer.cut is not None:
            yield answer.body[: answer.cut]
            raise _broken_off()
        if answer.stream is None:
            yield answer.body
            return
        try:
            async for part in answer.stream:
                yield part
        except ConnectionAbortedError:
            raise _broken_off() from None

    async def close(self) -> None:
        """Let go of what was not read."""
        close: Any = getattr(self._answer.stream, "aclose", None)
        while close is not None:
            try:
                await close()
                return
            except RuntimeError:
                await asyncio.sleep(0)  # a reader that was cancelled is still on its way out


class _Upgraded(_Response):
    """A WebSocket to the server, which talks in a task of its own."""

    def __init__(self, answer: Answer, upgrade: Upgrade, sessions: Sessions) -> None:
        super().__init__(answer)
        self.socket, theirs = socket_pair(upgrade.protocol)
        self._talking = asyncio.ensure_future(_talk(upgrade, theirs))
        sessions.add(self._talking)

    async def close(self) -> None:
        await self.socket.close()
        self._talking.cancel()
        await asyncio.gather(self._talking, return_exceptions=True)


async def _talk(upgrade: Upgrade, socket: WebSocket) -> None:
    try:
        await upgrade.talk(socket)
    except ConnectionAbortedError:
        _log.debug("a connection was broken off on purpose")
    except Exception:
        _log.exception("a connection failed inside of the server")
    finally:
        await socket.close()

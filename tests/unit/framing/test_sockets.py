from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from flyball.framing import socket_pair
from flyball.framing.sockets import until_sent
from flyball.testing import eventually


async def test_messages_arrive_whole_and_in_order() -> None:
    here, there = socket_pair("v5.channel.k8s.io")
    assert here.protocol == there.protocol == "v5.channel.k8s.io"
    for message in (b"one", b"", b"three"):
        await here.send(message)
    await there.send(b"back")
    assert [await there.receive() for _ in range(3)] == [b"one", b"", b"three"]
    assert await here.receive() == b"back"


async def test_a_sender_waits_for_room() -> None:
    here, there = socket_pair("")
    await here.send(b"x" * (64 << 10))
    sending = asyncio.create_task(here.send(b"more"))
    await asyncio.sleep(0)
    assert not sending.done()
    await there.receive()
    await sending
    assert await there.receive() == b"more"


async def test_what_was_sent_before_the_end_arrives() -> None:
    here, there = socket_pair("")
    await here.send(b"last")
    await here.close()
    await here.close()
    assert [await there.receive(), await there.receive(), await there.receive()] == [b"last", None, None]
    assert await here.receive() is None
    for end in (here, there):
        with pytest.raises(ConnectionResetError):
            await end.send(b"too late")


async def test_the_end_wakes_those_who_wait() -> None:
    here, there = socket_pair("")
    await here.send(b"x" * (64 << 10))
    sending, receiving = asyncio.create_task(here.send(b"more")), asyncio.create_task(here.receive())
    await asyncio.sleep(0)
    await there.close()
    with pytest.raises(ConnectionResetError):
        await sending
    assert await receiving is None


async def test_who_stops_waiting_for_room_in_a_real_connection_stops_nobody_else() -> None:
    read = asyncio.Event()

    async def slow(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert request.transport is not None
        request.transport.pause_reading()
        await read.wait()
        request.transport.resume_reading()
        async for _ in socket:
            pass
        return socket

    app = web.Application()
    app.router.add_get("/", slow)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as raw:

        async def send() -> None:
            while True:
                await until_sent(raw.send_bytes(b"x" * 100_000))

        senders = [asyncio.create_task(send()) for _ in range(3)]
        protocol: Any = raw._writer.protocol  # pyright: ignore[reportPrivateUsage] # the other side shows nothing yet
        await eventually(lambda: protocol._paused)
        senders[0].cancel()
        await asyncio.wait({senders[0]})
        later = asyncio.create_task(send())
        await eventually(lambda: senders[0].cancelled())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(one.done() for one in (*senders[1:], later))
        read.set()
        for one in (*senders, later):
            one.cancel()
        await asyncio.gather(*senders, later, return_exceptions=True)
    await runner.cleanup()

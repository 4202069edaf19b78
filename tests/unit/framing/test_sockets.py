from __future__ import annotations

import asyncio

import pytest

from flyball.framing import socket_pair


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

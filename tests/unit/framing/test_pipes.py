from __future__ import annotations

import asyncio

from flyball.framing.pipes import Pipe


async def test_what_is_fed_is_read() -> None:
    pipe = Pipe(10)
    await pipe.feed(b"one")
    await pipe.feed(b"two")
    assert pipe.peek() == b"onetwo"
    assert await pipe.read() == b"onetwo"
    reading = asyncio.create_task(pipe.read())
    await asyncio.sleep(0)
    assert not reading.done()
    await pipe.feed(b"three")
    assert await reading == b"three"


async def test_whoever_feeds_waits_for_room() -> None:
    pipe = Pipe(3)
    await pipe.feed(b"abc")
    feeding = asyncio.create_task(pipe.feed(b"d"))
    await asyncio.sleep(0)
    assert not feeding.done()
    assert await pipe.read() == b"abcd"
    await feeding


async def test_after_the_end() -> None:
    pipe = Pipe(10)
    await pipe.feed(b"left")
    assert not pipe.ended
    pipe.end()
    assert pipe.ended
    await pipe.feed(b"thrown away")
    assert [part async for part in pipe] == [b"left"]
    assert await pipe.read() == b""


async def test_all_of_it() -> None:
    pipe = Pipe(2)

    async def feed() -> None:
        for number in range(5):
            await pipe.feed(str(number).encode() * 2)
        pipe.end()

    feeding = asyncio.create_task(feed())
    assert await pipe.read_all() == b"0011223344"
    await feeding


async def test_what_is_dropped_is_gone_and_lets_the_feeder_go() -> None:
    pipe = Pipe(1)
    feeding = asyncio.create_task(pipe.feed(b"abc"))
    await asyncio.sleep(0)
    assert not feeding.done()
    pipe.drop()
    await feeding
    assert await pipe.read() == b""

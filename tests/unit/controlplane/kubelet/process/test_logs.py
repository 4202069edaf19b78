"""Logs of containers: their format, their bounds, and their readers."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flyball.clock import ManualClock
from flyball.controlplane.apiserver.kubelets import LogOptions
from flyball.controlplane.kubelet.process import Bounds
from flyball.controlplane.kubelet.process.logs import Log, read_log


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def made(folder: Path, clock: ManualClock, **bounds: int) -> Log:
    return Log(folder / "0.log", clock, Bounds(**bounds))


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


async def read(log: Log, **options: Any) -> str:
    return b"".join([piece async for piece in read_log(log, LogOptions("main", **options))]).decode()


async def test_lines_are_written_as_container_runtimes_do(tmp_path: Path, clock: ManualClock) -> None:
    log = made(tmp_path, clock)
    log.write("stdout", b"one\ntw")
    await clock.advance(1.5)
    log.write("stderr", b"oops\n")
    log.write("stdout", b"o\nrest")
    log.close()
    assert log.path.read_text().splitlines() == [
        "2026-01-01T00:00:00.000000000Z stdout F one",
        "2026-01-01T00:00:01.500000000Z stderr F oops",
        "2026-01-01T00:00:01.500000000Z stdout F two",
        "2026-01-01T00:00:01.500000000Z stdout P rest",
    ]
    assert await read(log) == "one\noops\ntwo\nrest"


async def test_long_lines_are_written_in_parts_and_read_as_one(tmp_path: Path, clock: ManualClock) -> None:
    log = made(tmp_path, clock)
    log.write("stdout", b"x" * 40_000 + b"\nend\n")
    log.close()
    assert [line.split(" ")[2] for line in log.path.read_text().splitlines()] == ["P", "P", "F", "F"]
    assert await read(log) == "x" * 40_000 + "\nend\n"
    assert (await read(log, timestamps=True)).count("2026-01-01T00:00:00.000000000Z ") == 2
    assert await read(log, tail_lines=1) == "end\n"
    assert len(await read(log, tail_lines=2)) == 40_005


async def test_parts_are_chosen(tmp_path: Path, clock: ManualClock) -> None:
    log = made(tmp_path, clock)
    for number in range(5):
        log.write("stdout" if number % 2 == 0 else "stderr", f"line {number}\n".encode())
        await clock.advance(10)
    log.close()
    begin = clock.now() - timedelta(seconds=50)
    assert await read(log, tail_lines=2) == "line 3\nline 4\n"
    assert await read(log, tail_lines=0) == ""
    assert await read(log, tail_lines=99, limit_bytes=9) == "line 0\nli"
    assert await read(log, since=begin + timedelta(seconds=25)) == "line 3\nline 4\n"
    assert await read(log, since=begin + timedelta(seconds=15), tail_lines=1) == "line 4\n"
    assert await read(log, stream="Stderr") == "line 1\nline 3\n"
    assert await read(log, stream="Stdout", tail_lines=1) == "line 4\n"
    assert (await read(log, timestamps=True, tail_lines=1)).endswith("Z line 4\n")


async def test_full_files_are_followed_by_others_and_the_oldest_go(tmp_path: Path, clock: ManualClock) -> None:
    log = made(tmp_path, clock, size=1000, files=3)
    for number in range(500):
        log.write("stdout", f"{number:03}\n".encode())
    assert sorted(sizes(tmp_path)) == ["0.log", "0.log.1", "0.log.2"]
    assert sum(sizes(tmp_path).values()) <= 3000
    told = (await read(log)).split()
    assert told == [f"{number:03}" for number in range(500 - len(told), 500)]
    assert len(told) > 40
    assert log.tail(2, 100) == "498\n499\n"
    log.remove()
    assert not sizes(tmp_path)


async def test_readers_follow_across_files_to_the_end(tmp_path: Path, clock: ManualClock) -> None:
    log = made(tmp_path, clock, size=2000, files=2)
    readers = [asyncio.ensure_future(read(log, follow=True)) for _ in range(3)]
    for number in range(300):
        log.write("stdout", f"{number}\n".encode())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    log.close()
    whole = "".join(f"{number}\n" for number in range(300))
    assert await asyncio.gather(*readers) == [whole] * 3


async def test_the_last_lines_and_then_what_comes(tmp_path: Path, clock: ManualClock) -> None:
    log = made(tmp_path, clock)
    log.write("stdout", b"a\nb\nc\n")
    pieces: list[str] = []

    async def follow() -> None:
        async for piece in read_log(log, LogOptions("main", follow=True, tail_lines=1)):
            pieces.append(piece.decode())

    reader = asyncio.ensure_future(follow())
    await clock.settle()
    assert "".join(pieces) == "c\n"
    log.write("stdout", b"d\n")
    log.close()
    await reader
    assert "".join(pieces) == "c\nd\n"


async def test_a_reader_that_is_too_slow_loses_the_oldest_lines(tmp_path: Path, clock: ManualClock) -> None:
    log = made(tmp_path, clock, size=1000, files=2)
    log.write("stdout", b"first\n")
    reading = read_log(log, LogOptions("main", follow=True))
    assert await anext(reading) == b"first\n"
    for number in range(1000):
        log.write("stdout", f"{number:04}\n".encode())
    log.close()
    rest = b"".join([piece async for piece in reading]).decode().split()
    assert rest[-1] == "0999"
    assert rest == [f"{number:04}" for number in range(1000 - len(rest), 1000)]

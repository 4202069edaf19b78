"""What a durable store acknowledged is there after any end of the process."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flyball.controlplane.apiserver.store import (
    Change,
    Contents,
    Draft,
    Entry,
    Expired,
    Key,
    SqliteStorage,
    Stale,
    StorageError,
    Store,
)


def key(name: str) -> Key:
    return Key("configmaps", "default", name)


def draft(text: str) -> Callable[[int], Draft]:
    return lambda revision: Draft(f"{text}@{revision}".encode(), "uid", {"a": "b"}, {"type": "x"}, "v1")


async def test_objects_and_revision_survive_a_restart(tmp_path: Path) -> None:
    store = Store(SqliteStorage(tmp_path / "data"))
    kept = await store.commit(key("kept"), None, draft("kept"))
    gone = await store.commit(key("gone"), None, draft("gone"))
    await store.delete(key("gone"), gone, draft("gone"))
    await store.close()

    again = Store(SqliteStorage(tmp_path / "data"))
    assert [entry.key.name for entry in again.listing("configmaps").entries] == ["kept"]
    assert again.get(key("kept")) == kept
    assert again.revision == 3, "the revision of a deletion counts too"
    with pytest.raises(Expired):
        again.watch("configmaps", since=2)
    assert (await again.commit(key("new"), None, draft("new"))).revision == 4
    await again.close()


async def test_concurrent_writers_of_one_key_win_once_and_the_others_see_the_winner(tmp_path: Path) -> None:
    store = Store(SqliteStorage(tmp_path / "data"))
    answers = await asyncio.gather(
        *(store.commit(key("a"), None, draft(str(number))) for number in range(8)), return_exceptions=True
    )
    winners = [answer for answer in answers if isinstance(answer, Entry)]
    losers = [answer for answer in answers if isinstance(answer, Stale)]
    assert (len(winners), len(losers)) == (1, 7)
    assert store.get(key("a")) is winners[0]
    await store.close()


async def test_nothing_is_readable_before_it_is_durable(tmp_path: Path) -> None:
    class Held(SqliteStorage):
        released = asyncio.Event()

        async def write(self, batch: list[Change]) -> None:
            await self.released.wait()
            await super().write(batch)

    store = Store(Held(tmp_path / "data"))
    watcher = store.watch("configmaps")
    writing = asyncio.create_task(store.commit(key("a"), None, draft("a")))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (store.get(key("a")), store.revision, watcher.pending()) == (None, 0, 0)
    Held.released.set()
    entry = await writing
    assert (store.get(key("a")), store.revision, watcher.pending()) == (entry, 1, 1)
    await store.close()


async def test_a_failing_disk_stops_writes_and_loses_no_truth() -> None:
    class Full:
        durable = True

        def load(self) -> Contents:
            return Contents(0, ())

        async def write(self, batch: list[Change]) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        async def close(self) -> None:
            return None

    store = Store(Full())
    with pytest.raises(StorageError, match="disk is full"):
        await store.commit(key("a"), None, draft("a"))
    with pytest.raises(StorageError):
        await store.commit(key("b"), None, draft("b"))
    assert store.get(key("a")) is None
    await store.close()


def test_the_file_is_private_and_a_second_opener_is_refused(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "data")
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o600
    with pytest.raises(StorageError, match="locked"):
        SqliteStorage(tmp_path / "data")
    asyncio.run(storage.close())


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("notes of mine, not a database, and long enough to be looked at" * 20)
    before = (tmp_path / "data").read_bytes()
    with pytest.raises(StorageError, match=r"cannot open .*data as a cluster's data"):
        SqliteStorage(tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == before


WRITER = """
import asyncio, sys
from flyball.controlplane.apiserver.store import Draft, Key, SqliteStorage, Store

async def main():
    store = Store(SqliteStorage(sys.argv[1]))
    async def write(worker):
        for number in range(10_000):
            name = f"{worker}-{number}"
            entry = await store.commit(Key("configmaps", "default", name), None, lambda revision: Draft(b"x"))
            print(name, entry.revision, flush=True)
    await asyncio.gather(*(write(worker) for worker in range(8)))

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 40, 300])
def test_kill_9_loses_no_acknowledged_write_and_never_goes_back(tmp_path: Path, acknowledged: int) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "data"], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(acknowledged)]
    os.kill(writer.pid, signal.SIGKILL)
    lines += writer.stdout.readlines()
    writer.stdout.close()
    writer.wait()
    known = {name: int(revision) for name, revision in (line.split() for line in lines if line.endswith("\n"))}

    store = Store(SqliteStorage(tmp_path / "data"))
    found = {entry.key.name: entry.revision for entry in store.listing("configmaps").entries}
    assert known.items() <= found.items()
    assert store.revision >= max(known.values())
    asyncio.run(store.close())

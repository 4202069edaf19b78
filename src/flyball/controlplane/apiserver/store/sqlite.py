"""Storage in one SQLite file: what was acknowledged is there after a kill -9."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flyball.controlplane.apiserver.store.contract import Change, Contents, Entry, Key, StorageError

__all__ = ["SqliteStorage"]

_SCHEMA_VERSION = 1

_TABLES = """
create table if not exists objects (
    resource text not null, namespace text not null, name text not null,
    revision integer not null, created integer not null, uid text not null,
    labels text not null, fields text not null, api_version text not null, body blob not null,
    primary key (resource, namespace, name)
) without rowid;
create table if not exists state (key text primary key, value integer not null) without rowid;
"""

_PUT = "insert or replace into objects values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DROP = "delete from objects where resource = ? and namespace = ? and name = ?"
_SET = "insert or replace into state values (?, ?)"


class SqliteStorage:
    """Keeps the present state; history is not kept, so a watch from before a restart is `Expired`.

    The file is in WAL mode with `synchronous=FULL`: a batch is one transaction, synced to disk before it counts.
    One process may have it open for writing; a second one is refused.
    """

    durable = True

    def __init__(self, path: Path | str) -> None:
        """Open the file, or make it; only its owner can read it, because it holds Secrets."""
        self.path = Path(path)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")
        try:
            self.path.touch(mode=0o600)
            self._connection = self._thread.submit(self._open).result()
        except (OSError, sqlite3.Error) as error:
            self._thread.shutdown(wait=False)
            raise StorageError(f"cannot open {self.path} as a cluster's data: {error}") from error

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=0.5)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _prepare(connection: sqlite3.Connection) -> None:
        """Take the file for this process alone, and make or check its tables."""
        connection.execute("pragma locking_mode = exclusive")
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("begin exclusive")
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement)
        version = connection.execute("select value from state where key = 'schema'").fetchone()
        if version is None:
            connection.execute(_SET, ("schema", _SCHEMA_VERSION))
        elif version[0] != _SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"its layout is version {version[0]}, this program reads {_SCHEMA_VERSION}")
        connection.execute("commit")

    def load(self) -> Contents:
        """Read everything that was acknowledged."""
        return self._thread.submit(self._load).result()

    def _load(self) -> Contents:
        row = self._connection.execute("select value from state where key = 'revision'").fetchone()
        return Contents(0 if row is None else row[0], list(self._entries()))

    def _entries(self) -> Iterator[Entry]:
        columns = "resource, namespace, name, revision, created, uid, labels, fields, api_version, body"
        for row in self._connection.execute(f"select {columns} from objects order by resource, namespace, name"):  # noqa: S608
            resource, namespace, name, revision, created, uid, labels, fields, api_version, body = row
            key = Key(resource, namespace, name)
            yield Entry(key, body, revision, created, uid, json.loads(labels), json.loads(fields), api_version)

    async def write(self, batch: list[Change]) -> None:
        """Make a batch durable in one transaction."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._write, batch)

    def _write(self, batch: list[Change]) -> None:
        connection = self._connection
        connection.execute("begin immediate")
        try:
            for key, _, entry in batch:
                if entry is None:
                    connection.execute(_DROP, key)
                else:
                    connection.execute(_PUT, _row(entry))
            connection.execute(_SET, ("revision", batch[-1].revision))
            connection.execute("commit")
        except BaseException:
            connection.execute("rollback")
            raise

    async def close(self) -> None:
        """Close the file; its write-ahead log is folded in."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()


def _row(entry: Entry) -> tuple[str | int | bytes, ...]:
    labels, fields = json.dumps(dict(entry.labels)), json.dumps(dict(entry.fields))
    created = entry.created
    return (*entry.key, entry.revision, created, entry.uid, labels, fields, entry.api_version, entry.body)

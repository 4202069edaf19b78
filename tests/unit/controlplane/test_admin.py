"""The back door of a cluster: for its owner only, and it answers nonsense with an error."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from flyball.clock import TurnableClock
from flyball.controlplane.admin import AdminDoor, ask, socket_of
from flyball.errors import ConfigError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="socket files need POSIX")


@pytest_asyncio.fixture
async def door(tmp_path: Path) -> AsyncGenerator[Path]:
    path = tmp_path / "admin.sock"
    async with AdminDoor(TurnableClock(), path):
        yield path


async def asked(path: Path, request: dict[str, Any]) -> Any:
    return await asyncio.to_thread(ask, path, request)


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_clock_is_told_and_turned(door: Path) -> None:
    before = await asked(door, {"do": "now"})
    assert before.turned == 0
    after = await asked(door, {"do": "advance", "seconds": 600})
    assert after.turned == 600
    assert (after.now - before.now).total_seconds() >= 600


async def test_only_the_owner_may_open_it_and_it_goes_with_the_cluster(door: Path, tmp_path: Path) -> None:
    assert permissions(door) == 0o600
    path = tmp_path / "other.sock"
    async with AdminDoor(TurnableClock(), path):
        assert path.is_socket()
    assert not path.exists()
    with pytest.raises(ConfigError, match="no cluster of yours answers at"):
        await asked(path, {"do": "now"})


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"do": "stop"}, "'stop' is not done here"),
        ({"do": "advance", "seconds": -1}, "goes forward only"),
        ({"do": "advance", "seconds": 1e300}, "100 years at most"),
        ({"do": "advance", "seconds": "soon"}, "this is no request"),
        ({"do": "now", "more": 1}, "this is no request"),
    ],
)
async def test_nonsense_is_an_error_and_the_door_stays_open(door: Path, request_: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        await asked(door, request_)
    assert (await asked(door, {"do": "now"})).turned == 0


async def test_a_line_without_an_end_is_given_up(door: Path) -> None:
    def flood() -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(door))
            try:
                connection.sendall(b"x" * 1_000_000)
                return connection.recv(10)
            except OSError:
                return b""

    assert await asyncio.to_thread(flood) == b""
    assert (await asked(door, {"do": "now"})).turned == 0


async def test_what_a_dead_process_left_is_removed_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with AdminDoor(TurnableClock(), path):
        with pytest.raises(ConfigError, match="listen on"):
            async with AdminDoor(TurnableClock(), path):
                pass
        assert (await asked(path, {"do": "now"})).turned == 0


def test_the_socket_lies_where_nobody_else_may_look(tmp_path: Path) -> None:
    found = socket_of(6443, {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert found == tmp_path / "flyball" / "admin-6443.sock"
    assert permissions(found.parent) == 0o700
    found.parent.chmod(0o755)
    with pytest.raises(ConfigError, match="others can get at what lies there"):
        socket_of(6443, {"XDG_RUNTIME_DIR": str(tmp_path)})
    with pytest.raises(ConfigError, match="make the folder"):
        socket_of(6443, {"XDG_RUNTIME_DIR": str(tmp_path / "missing")})

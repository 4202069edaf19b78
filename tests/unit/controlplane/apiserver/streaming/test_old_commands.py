from __future__ import annotations

import asyncio

import pytest

from flyball.controlplane.apiserver.streaming.old_commands import as_channels
from flyball.framing import WebSocket, socket_pair
from flyball.framing.channels import ERROR
from flyball.framing.forwarding import Tunnel
from flyball.framing.spdy import SpdyConnection
from flyball.testing import eventually


async def talk(_: WebSocket) -> None:
    """Talk until it is cancelled."""
    await asyncio.Event().wait()


@pytest.mark.parametrize("turns", range(25))
async def test_who_is_cancelled_ends_however_far_it_has_come(turns: int) -> None:
    here, there = socket_pair("")
    client = SpdyConnection(Tunnel(here), server=False)
    serving = asyncio.create_task(client.serve())
    opening = asyncio.create_task(client.open({"streamType": "error"}))
    talking = asyncio.create_task(as_channels(there, [ERROR], talk))
    for _ in range(turns):
        await asyncio.sleep(0)
    talking.cancel()
    try:
        await eventually(talking.done)
        assert talking.cancelled()
    finally:
        talking.cancel()
        await client.close()
        await asyncio.gather(serving, opening, talking, return_exceptions=True)

"""The operator in Flyball."""

from __future__ import annotations

import asyncio
import signal

import uvloop
from bench.operators.kind import Thing
from bench.operators.protocol import EPOCH, STATUS, finish, note, say

from flyball import Context, Manager, controller


@controller(Thing, max_concurrent=10, error_condition=None)
async def reconcile(thing: Thing, ctx: Context) -> None:
    note(thing.metadata.name, thing.spec.b)
    if STATUS:
        thing.status.seen = thing.spec.b + EPOCH


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Manager(controllers=[reconcile], health_port=-1, metrics_port=-1, leader_election=False) as manager:
        await manager.cache.wait_synced()
        say("synced")
        await stop.wait()
    finish()


if __name__ == "__main__":
    say("started")
    uvloop.run(main())

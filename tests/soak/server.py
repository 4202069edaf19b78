"""The server under load, in a process of its own: `python -m tests.soak.server DATA`; prints its port when it is ready.

Its buffers are small, so that a slow watcher is closed within seconds and not within minutes.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

from flyball.controlplane.apiserver.http import HttpDoor
from flyball.controlplane.apiserver.store import Limits
from flyball.controlplane.bootstrap import ADMIN
from flyball.controlplane.cluster import EmbeddedCluster

BUFFER = 16_384


async def serve(data: Path, watcher_limit: int) -> None:
    """Serve until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    limits = Limits(watcher=watcher_limit)
    async with EmbeddedCluster(data=data, controllers=False, limits=limits) as cluster:
        listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)  # connections inherit it
        door = HttpDoor(cluster.server, user=ADMIN, listening=listening)
        await door.open()
        print(door.port, flush=True)
        await stopped.wait()
        await cluster.stop()
        await door.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))

"""How several streams of bytes share one connection: what client and API server both speak beside plain HTTP.

    sockets         a connection that carries messages, and a pair of them without a network
    pipes           bytes that wait for their reader
    channels        exec and attach: a byte in front of each message names its stream
    spdy            port-forward: streams with headers, inside of a WebSocket

The room knows nothing of Pods, requests or errors of an API; it needs nothing of Flyball.
"""

from __future__ import annotations

from flyball.framing.sockets import WebSocket, socket_pair

__all__ = ["WebSocket", "socket_pair"]

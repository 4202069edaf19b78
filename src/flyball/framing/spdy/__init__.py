"""SPDY/3.1, as far as Kubernetes uses it: many streams over one connection, each with headers and two directions.

    headers         names and values, compressed with a dictionary that both sides know
    frames          bytes to frames and back
    connection      streams over whatever carries bytes

HTTP/2 took its place everywhere else; kubectl still forwards ports with it, inside of a WebSocket. Peers use neither
priorities nor settings nor windows, and neither does this: who does not read is not sent to by the one connection.
"""

from __future__ import annotations

from flyball.framing.spdy.connection import Carrier, SpdyConnection, SpdyStream
from flyball.framing.spdy.frames import SpdyError

__all__ = ["Carrier", "SpdyConnection", "SpdyError", "SpdyStream"]

"""Whether a request may become a WebSocket, and which subprotocol it speaks then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from flyball.controlplane.apiserver.request import Answer, Request, Upgrade
from flyball.controlplane.apiserver.status import StatusError, bad_request
from flyball.framing import WebSocket

__all__ = ["upgraded"]


def upgraded(
    request: Request, protocols: Sequence[str], talk: Callable[[WebSocket], Awaitable[None]], *, unnamed: str = ""
) -> Answer:
    """Answer a request for a WebSocket in the first of its subprotocols that is known here. Raises BadRequest.

    `unnamed` is what clients mean who name no subprotocol.
    """
    wanted = request.headers.get("upgrade", "").strip().lower()
    if not wanted or "upgrade" not in _tokens(request.headers.get("connection", "")):
        raise bad_request("Upgrade request required")
    if wanted != "websocket":
        told = f"connections of the kind {wanted.upper()} are not made by this server; ask for a websocket"
        raise bad_request(f"{told} (kubectl does so from 1.31 on)")
    if request.method != "GET":
        raise StatusError(405, "MethodNotAllowed", "a websocket is asked for by GET", {})
    offered = _tokens(request.headers.get("sec-websocket-protocol", unnamed))
    chosen = next((protocol for protocol in offered if protocol in (one.lower() for one in protocols)), None)
    if chosen is None:
        asked = ", ".join(offered) or "none"
        raise bad_request(f"websocket subprotocols: {asked} was offered; this server speaks {', '.join(protocols)}")
    return Answer(101, upgrade=Upgrade(next(one for one in protocols if one.lower() == chosen), talk))


def _tokens(header: str) -> list[str]:
    return [token.strip().lower() for token in header.split(",") if token.strip()]

"""Whether a request may become another kind of connection, and which protocol it speaks then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from flyball.controlplane.apiserver.request import Answer, Request, Upgrade
from flyball.controlplane.apiserver.status import StatusError, bad_request
from flyball.framing import WebSocket

__all__ = ["SPDY", "Talk", "upgraded"]

SPDY: Final = "SPDY/3.1"

Talk = Callable[[WebSocket], Awaitable[None]]


def upgraded(
    request: Request,
    protocols: Sequence[str],
    talk: Talk,
    *,
    unnamed: str = "",
    old_protocol: str,
    old_talk: Talk,
) -> Answer:
    """Answer a request for a WebSocket in the first of its subprotocols that is known here. Raises BadRequest.

    `unnamed` is what clients mean who name no subprotocol. Old clients ask for SPDY; it carries one protocol.
    """
    wanted = request.headers.get("upgrade", "").strip().lower()
    if not wanted or "upgrade" not in _tokens(request.headers.get("connection", "")):
        raise bad_request("Upgrade request required")
    if wanted == SPDY.lower():
        offered = _tokens(request.headers.get("x-stream-protocol-version", ""))
        if old_protocol not in offered:
            asked = ", ".join(offered) or "none"
            told = f"unable to upgrade: unable to negotiate protocol: client supports {asked}"
            raise StatusError(403, "Forbidden", f"{told}, server accepts {old_protocol}", {})
        headers = {"Connection": "Upgrade", "Upgrade": SPDY, "X-Stream-Protocol-Version": old_protocol}
        return Answer(101, headers=headers, upgrade=Upgrade(old_protocol, old_talk, raw=SPDY))
    if wanted != "websocket":
        raise bad_request(f"connections of the kind {wanted} are not made by this server; ask for a websocket")
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

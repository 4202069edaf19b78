"""How control loops write: plain requests over a `Transport`."""

from __future__ import annotations

import json
from typing import Any, Final

from flyball.client.transport import HttpRequest, Transport
from flyball.errors import Conflict, NotFound, error_from

__all__ = ["MANAGER", "Conflict", "NotFound", "Writer"]

Object = dict[str, Any]

MANAGER: Final = "kube-controller-manager"
"""The manager of the fields that loops write, as upstream."""


class Writer:
    """Sends requests, and raises the errors of `flyball.errors` for what is refused."""

    def __init__(self, transport: Transport) -> None:
        """Take the way to the API server; whoever gave it closes it."""
        self._transport = transport

    async def create(self, path: str, obj: Object) -> Object:
        """Create an object."""
        return await self._send("POST", path, obj)

    async def update(self, path: str, obj: Object) -> Object:
        """Replace an object."""
        return await self._send("PUT", path, obj)

    async def patch(self, path: str, change: Object) -> Object:
        """Merge a change into an object."""
        return await self._send("PATCH", path, change, "application/merge-patch+json")

    async def delete(self, path: str, options: Object) -> Object:
        """Delete an object, or a collection."""
        return await self._send("DELETE", path, options)

    async def _send(self, method: str, path: str, body: Object, content_type: str = "application/json") -> Object:
        query = () if method == "DELETE" else (("fieldManager", MANAGER),)
        headers = {"Content-Type": content_type, "User-Agent": f"{MANAGER}/flyball"}
        action = f"{method} {path}"
        request = HttpRequest(method, path, query, headers, json.dumps(body).encode(), action=action)
        answer = await self._transport.send(request)
        raw = await answer.read()
        if answer.status >= 300:
            raise error_from(answer.status, answer.headers, raw, action=action, host=self._transport.host)
        decoded: Object = json.loads(raw)
        return decoded

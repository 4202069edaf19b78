"""What a container wrote.

    text = await client.logs("demo", tail=100)
    async for line in client.logs("demo", follow=True): ...

Awaited, it is the text that there is now; iterated, it comes line by line, with `follow=True` until the container ends.
Bytes that are not UTF-8 are shown as U+FFFD.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Generator
from datetime import UTC, datetime, timedelta
from typing import Any

from flyball.client.kinds import Ref
from flyball.client.lines import LineSplitter
from flyball.client.refusals import RefusedRequest
from flyball.client.session import Session
from flyball.client.transport import HttpRequest

__all__ = ["Logs", "log_query"]


class Logs:
    """The log of one container, asked for when it is awaited or iterated; each time anew."""

    def __init__(
        self,
        session: Session,
        ref: Ref[Any],
        namespace: str | None,
        query: tuple[tuple[str, str], ...],
        timeout: float | None,
    ) -> None:
        self._session = session
        self._ref = ref
        self._namespace = namespace
        self._query = query
        self._timeout = timeout

    @property
    def _followed(self) -> bool:
        return ("follow", "true") in self._query

    def __await__(self) -> Generator[Any, None, str]:
        return self._text().__await__()

    async def _text(self) -> str:
        if self._followed:
            raise RefusedRequest("a followed log has no end to wait for; iterate it with `async for line in ...`")
        return (await self._session.call(await self._request())).decode("utf-8", "replace")

    async def __aiter__(self) -> AsyncIterator[str]:
        response = await self._session.open(await self._request())
        splitter = LineSplitter()
        try:
            async for chunk in response.chunks():
                for line in splitter.feed(chunk):
                    yield line.decode("utf-8", "replace")
            if rest := splitter.rest():
                yield rest.decode("utf-8", "replace")
        finally:
            await response.close()

    async def _request(self) -> HttpRequest:
        target = await self._session.one(self._ref, self._namespace)
        # A container may say nothing for days, and a server sends nothing meanwhile.
        patience = self._timeout if self._timeout is not None or not self._followed else math.inf
        return self._session.request(
            "GET",
            target.path("log"),
            action=f"read the log of {target.words}",
            query=self._query,
            accept="text/plain, */*",
            timeout=patience,
        )


def log_query(
    *,
    container: str | None,
    follow: bool,
    previous: bool,
    since: timedelta | datetime | None,
    tail: int | None,
    timestamps: bool,
    limit_bytes: int | None,
) -> tuple[tuple[str, str], ...]:
    """The parameters of a log request, in alphabetical order."""
    pairs = {
        "container": container,
        "follow": "true" if follow else None,
        "limitBytes": limit_bytes,
        "previous": "true" if previous else None,
        "sinceSeconds": max(1, math.ceil(since.total_seconds())) if isinstance(since, timedelta) else None,
        "sinceTime": _rfc3339(since) if isinstance(since, datetime) else None,
        "tailLines": tail,
        "timestamps": "true" if timestamps else None,
    }
    return tuple((name, str(value)) for name, value in pairs.items() if value is not None)


def _rfc3339(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise RefusedRequest(f"since={moment.isoformat()} has no time zone; give one, as in datetime.now(UTC)")
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

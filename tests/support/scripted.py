"""A transport that gives the answers it was told, and keeps what was asked: for tests of one request at a time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict

from flyball.client.transport import HttpRequest
from flyball.errors import TransportError

Json = dict[str, Any]


@dataclass
class Answer:
    """An HTTP answer; `pieces` are handed out one by one, an error among them is raised there."""

    status: int = 200
    body: bytes = b""
    pieces: Iterable[bytes | Exception] | None = None
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict[str])
    closed: bool = False

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces if self.pieces is not None else [self.body]:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def close(self) -> None:
        self.closed = True


def json_answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """An answer of JSON."""
    return Answer(status, json.dumps(value, separators=(",", ":")).encode(), headers=CIMultiDict(headers))


def status_answer(code: int, reason: str, message: str = "", **details: Any) -> Answer:
    """A refusal."""
    return json_answer(status(code, reason, message, **details), code)


def status(code: int, reason: str, message: str = "", **details: Any) -> Json:
    """A failure `Status`."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


class ScriptedTransport:
    """Answers in order; a request too many is an error of the test."""

    def __init__(self, *answers: Answer | TransportError) -> None:
        self.host = "script:6443"
        self.answers = list(answers)
        self.requests: list[HttpRequest] = []
        self.closed = False

    async def send(self, request: HttpRequest) -> Answer:
        self.requests.append(request)
        if not self.answers:
            raise AssertionError(f"nobody expected {request.method} {request.path}")
        answer = self.answers.pop(0)
        if isinstance(answer, TransportError):
            raise answer
        return answer

    async def close(self) -> None:
        self.closed = True

    @property
    def last(self) -> HttpRequest:
        """The request sent last."""
        return self.requests[-1]

    @property
    def last_body(self) -> Any:
        """Its body, read as JSON."""
        return json.loads(self.last.body or b"null")

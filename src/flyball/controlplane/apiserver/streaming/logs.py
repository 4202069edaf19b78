"""The log of a container, in parts as the kubelet gives them; followed, until the container ends."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flyball.controlplane.apiserver.kubelets import KubeletRefusal
from flyball.controlplane.apiserver.negotiation import negotiate
from flyball.controlplane.apiserver.request import Answer, Request
from flyball.controlplane.apiserver.status import StatusError, bad_request, method_not_allowed
from flyball.controlplane.apiserver.streaming.parameters import log_options
from flyball.controlplane.apiserver.streaming.places import (
    Pod,
    container_of,
    container_status,
    kubelet_of,
    pod_of,
)
from flyball.controlplane.apiserver.streaming.sessions import Sessions
from flyball.controlplane.apiserver.writing import Target

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["read_log", "refused"]

_log = logging.getLogger("flyball.apiserver.streaming")

_TEXT: Final = "text/plain"
_GRACE_SECONDS: Final = 1.0
"""So long a followed log that says nothing is waited for, in case that the kubelet refuses it."""

_WAITING: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


async def read_log(server: ApiServer, request: Request, target: Target) -> Answer:
    """Give the log of a container of a Pod."""
    if request.method != "GET":
        raise method_not_allowed()
    _expect_text_is_welcome(request)
    options = log_options(request, target.name, server.core.clock.now())
    pod = pod_of(server, target)
    container = container_of(pod, options.container)
    if not pod["spec"].get("nodeName"):
        return Answer(204, b"", "")
    kubelet = kubelet_of(server, pod)
    _expect_log(pod, container, options.previous)
    parts = _Parts(kubelet.logs(pod, replace(options, container=container)), server.sessions)
    try:
        await parts.begin(_GRACE_SECONDS if options.follow else None)
    except KubeletRefusal as refusal:
        raise refused(refusal) from None
    return Answer(200, b"", _TEXT, stream=parts)


def refused(refusal: KubeletRefusal) -> StatusError:
    """Return what the client of a kubelet is told that cannot do what it was asked for."""
    return StatusError(refusal.code, refusal.reason, str(refusal))


def _expect_text_is_welcome(request: Request) -> None:
    """Refuse what upstream refuses: it takes nobody who accepts text only, although text is what it sends."""
    accept = request.headers.get("accept", "")
    try:
        negotiate(accept)
    except StatusError as error:
        kinds = [clause.partition(";")[0].strip().lower() for clause in accept.split(",")]
        before, _, wanted = error.message.rpartition(": ")
        if _TEXT in kinds or "text/*" in kinds:
            told = f"only the following media types are accepted: {wanted}"
            raise StatusError(error.code, error.reason, told) from None
        raise StatusError(error.code, error.reason, f"{before}: {_TEXT}, {wanted}", error.details) from None


def _expect_log(pod: Pod, container: str, previous: bool) -> None:
    """Refuse to ask for what cannot be there yet, judging by the Pod's status."""
    which = f"container {json.dumps(container)} in pod {json.dumps(pod['metadata']['name'])}"
    status = container_status(pod, container)
    if status is None:
        raise bad_request(f"{which} is not available")
    state: dict[str, Any] = status.get("state") or {}
    ended_before = (status.get("lastState") or {}).get("terminated")
    if previous:
        if not ended_before:
            raise bad_request(f"previous terminated {which} not found")
        return
    if state.get("running") or state.get("terminated") or ended_before:
        return
    reason = str((state.get("waiting") or {}).get("reason") or "")
    if not reason:
        raise bad_request(f"{which} is waiting to start - no logs yet")
    raise bad_request(f"{which} is waiting to start: {_WAITING.get(reason, reason)}")


class _Parts:
    """The parts of a log on their way; each is asked of the kubelet in a task.

    The task ends with the server, or by `aclose`.

    A kubelet that refuses after the answer has begun can only break it off.
    """

    def __init__(self, parts: AsyncIterator[bytes], sessions: Sessions) -> None:
        self._parts = parts
        self._sessions = sessions
        self._next: asyncio.Task[bytes | None] | None = None

    async def begin(self, seconds: float | None) -> None:
        """Wait for the first part, or only so long. Raises what the kubelet raises instead of it."""
        task = self._ask()
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if done and not task.cancelled() and task.exception() is not None:
            await self.aclose()
            task.result()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        task = self._ask()
        await asyncio.wait({task})
        self._next = None
        part = None if task.cancelled() else self._result(task)  # cancelled: the server stops
        if part is None:
            await self.aclose()
            raise StopAsyncIteration
        return part

    async def aclose(self) -> None:
        """Tell the kubelet that nobody reads any more."""
        task, self._next = self._next, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        close: Any = getattr(self._parts, "aclose", None)
        if close is not None:
            await close()

    def _ask(self) -> asyncio.Task[bytes | None]:
        if self._next is None:
            self._next = asyncio.ensure_future(_next(self._parts))
            self._sessions.add(self._next)
        return self._next

    @staticmethod
    def _result(task: asyncio.Task[bytes | None]) -> bytes | None:
        try:
            return task.result()
        except KubeletRefusal as refusal:
            _log.info("a log broke off: %s", refusal)
        except Exception:
            _log.exception("a log broke off: its kubelet failed")
        raise ConnectionAbortedError


async def _next(parts: AsyncIterator[bytes]) -> bytes | None:
    return await anext(parts, None)

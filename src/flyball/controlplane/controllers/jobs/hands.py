"""How a Job's Pods are made and deleted, and how that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from flyball.controller import Context
from flyball.errors import ApiError
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod

__all__ = ["Hands"]

_REFUSED: Final = {"create": ("FailedCreate", "Error creating"), "delete": ("FailedDelete", "Error deleting")}


@dataclass
class Hands:
    """Makes and deletes Pods during one pass, and keeps what the server refused."""

    job: Job
    ctx: Context
    refused: list[ApiError] = field(default_factory=list[ApiError])

    async def make(self, pods: Sequence[Pod]) -> int:
        """Make Pods; return how many were made.

        One is made at first and twice as many each time, so that a refusal that would hit all is not met by all.
        """
        made, size = 0, 1
        while pods and not self.refused:
            some, pods = pods[:size], pods[size:]
            made += sum(await asyncio.gather(*(self._try("create", self._create(pod)) for pod in some)))
            size *= 2
        return made

    async def delete(self, pods: Sequence[Pod]) -> list[Pod]:
        """Delete Pods; return those that are going."""
        gone = await asyncio.gather(*(self._try("delete", self._delete(pod)) for pod in pods))
        return [pod for pod, worked in zip(pods, gone, strict=True) if worked]

    async def _create(self, pod: Pod) -> None:
        made = await self.ctx.create(pod)
        self.ctx.record("Normal", "SuccessfulCreate", f"Created pod: {made.metadata.name}", about=self.job)

    async def _delete(self, pod: Pod) -> None:
        await self.ctx.delete(pod)
        self.ctx.record("Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}", about=self.job)

    async def _try(self, verb: Literal["create", "delete"], attempt: Awaitable[None]) -> bool:
        """Tell whether it worked; people are told when it did not, unless the namespace is on its way out."""
        try:
            await attempt
        except ApiError as error:
            if not any(one.get("reason") == "NamespaceTerminating" for one in error.causes):
                self.refused.append(error)
                reason, words = _REFUSED[verb]
                self.ctx.record("Warning", reason, f"{words}: {error.message}", about=self.job)
            return False
        return True

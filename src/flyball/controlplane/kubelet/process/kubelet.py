"""The process kubelet: it takes the Pods of its node from the API server, and lets each live."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from flyball.api import to_dict
from flyball.client import StrategicPatch
from flyball.controller import Context, Controller, Request, controller
from flyball.controller.predicates import everything
from flyball.controlplane.apiserver.kubelets import Connection, KubeletRefusal, LogOptions, Run, Streams
from flyball.controlplane.apiserver.kubelets import Pod as Plain
from flyball.controlplane.kubelet.process import streaming
from flyball.controlplane.kubelet.process.lifecycle import Life
from flyball.controlplane.kubelet.process.node import Node
from flyball.controlplane.kubelet.process.status import CONDITIONS, time_of
from flyball.errors import Conflict, NotFound
from flyball.k8s.core.v1 import Pod

__all__ = ["ProcessKubelet", "following"]

_log = logging.getLogger("flyball.kubelet")

_LOST: Final = 137
_LOST_MESSAGE: Final = "The container could not be located when the pod was terminated"


def following(kubelets: Iterable[ProcessKubelet]) -> Controller[Pod]:
    """Make what wakes the kubelets."""
    known = list(kubelets)

    @controller(Pod, name="kubelet", raw=True, predicates=[everything], error_condition=None, max_concurrent=20)
    async def follow(request: Request, ctx: Context) -> None:
        """Take note of one Pod as it is now."""
        pod = await ctx.get(Pod, request.name)
        for kubelet in known:
            await kubelet.follow((request.namespace or "", request.name), pod)

    return follow


class ProcessKubelet:
    """Runs the Pods of one node as processes, and answers for them (`flyball.controlplane.apiserver.kubelets.Kubelet`).

    A Pod that ran in an earlier life of the cluster is not taken up again: its processes have ended with that life, so
    it fails, with the exit code 137 and the reason ContainerStatusUnknown.
    """

    def __init__(self, node: Node) -> None:
        """No Pod lives yet."""
        self._node = node
        self._lives: dict[tuple[str, str], Life] = {}

    async def follow(self, key: tuple[str, str], pod: Pod | None) -> None:
        """Take note of what has a name and namespace now; also of what is none of this node's business."""
        life = self._lives.get(key)
        if life is not None and (pod is None or pod.metadata.uid != life.pod.metadata.uid):
            await self._forget(key, life)
            life = None
        if pod is None or pod.spec.node_name != self._node.name:
            return
        if life is not None:
            life.observe(pod)
        elif pod.status.phase in ("Succeeded", "Failed") or _ran(pod):
            await self._bury(pod)
        else:
            self._lives[key] = life = Life(self._node, pod, self._address(pod))
            life.begin()

    async def _forget(self, key: tuple[str, str], life: Life) -> None:
        """End what is left of a Pod that is not there any more."""
        await life.abandon()
        life.remove_files()
        if self._lives.get(key) is life:
            del self._lives[key]

    async def _bury(self, pod: Pod) -> None:
        """Write how a Pod of an earlier life ended, and let it go if it shall go."""
        client = self._node.client
        try:
            if pod.status.phase not in ("Succeeded", "Failed"):
                body = {"metadata": {"uid": pod.metadata.uid}, "status": self._lost(pod)}
                await client.patch(pod, StrategicPatch(body), subresource="status")
            if pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds != 0:
                await client.delete(pod, grace_period=0, missing_ok=True)
        except (NotFound, Conflict):
            return  # it changed or went meanwhile: that wakes us again

    def _lost(self, pod: Pod) -> dict[str, Any]:
        now = time_of(self._node.clock.now())
        before: dict[str, Any] = to_dict(pod.status)
        status: dict[str, Any] = {"phase": "Failed"}
        for name in ("initContainerStatuses", "containerStatuses"):
            if before.get(name):
                status[name] = [_lost_container(one, now) for one in before[name]]
        status["conditions"] = [
            {**one, "status": "False", "reason": "PodFailed", "message": None, "lastTransitionTime": now}
            for one in before.get("conditions") or ()
            if one["type"] in CONDITIONS and one["type"] in ("Ready", "ContainersReady")
        ]
        return status

    def _address(self, pod: Pod) -> str:
        """Return an address of the Pod's own on the loopback, where the system has more than one."""
        if pod.spec.host_network or sys.platform != "linux":
            return self._node.around.node_ip
        taken = {life.address for life in self._lives.values() if not life.finished}
        number = int.from_bytes(hashlib.blake2b(pod.metadata.uid.encode(), digest_size=3).digest())
        while True:
            parts = (number >> 16) % 254 + 1, (number >> 8) % 256, number % 254 + 1
            address = f"127.{parts[0]}.{parts[1]}.{parts[2]}"
            if address not in taken:
                return address
            number += 1

    async def stop(self) -> None:
        """End everything that runs; what the server has of the Pods stays."""
        await asyncio.gather(*(life.abandon() for life in self._lives.values()))

    # What the API server asks

    def _life(self, pod: Plain) -> Life | None:
        metadata = pod["metadata"]
        life = self._lives.get((metadata.get("namespace", ""), metadata["name"]))
        return life if life is not None and life.pod.metadata.uid == metadata["uid"] else None

    async def logs(self, pod: Plain, options: LogOptions) -> AsyncIterator[bytes]:
        """Give the log of a container."""
        life = self._life(pod)
        if life is None:
            raise KubeletRefusal(
                f'the logs of container "{options.container}" in pod "{pod["metadata"]["name"]}" ended with the '
                "cluster's earlier life",
                404,
                "NotFound",
            )
        async for piece in streaming.logs(life.running(options.container), options, pod["metadata"]["name"]):
            yield piece

    async def exec(self, pod: Plain, run: Run, streams: Streams) -> int:
        """Run a command in a container."""
        return await streaming.execute(self._node.guard, self._running(pod, run.container), run, streams)

    async def attach(self, pod: Plain, run: Run, streams: Streams) -> int:
        """Join a container's process."""
        return await streaming.attach(self._running(pod, run.container), run, streams)

    async def connect(self, pod: Plain, port: int) -> Connection:
        """Connect to a port of a Pod."""
        life = self._life(pod)
        if life is None or life.finished:
            raise KubeletRefusal(f"pod {pod['metadata']['name']} does not run", 500, "InternalError")
        return await streaming.connect(life.address, port, pod["metadata"]["name"])

    def _running(self, pod: Plain, container: str) -> Any:
        life = self._life(pod)
        return None if life is None else life.running(container)


def _ran(pod: Pod) -> bool:
    """Tell whether a Pod that nobody knows here had containers."""
    statuses = [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]
    return any(one.container_id for one in statuses)


def _lost_container(status: dict[str, Any], now: str) -> dict[str, Any]:
    state: dict[str, Any] = status.get("state") or {}
    if "terminated" in state:
        return status
    terminated = {
        "exitCode": _LOST,
        "reason": "ContainerStatusUnknown",
        "message": _LOST_MESSAGE,
        "startedAt": (state.get("running") or {}).get("startedAt"),
        "finishedAt": now,
        "containerID": status.get("containerID"),
    }
    kept = {name: value for name, value in terminated.items() if value is not None}
    return {**status, "state": {"terminated": kept}, "ready": False, "started": False}

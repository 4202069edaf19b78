"""The heartbeats of nodes: each renews its Lease every ten seconds, and says every five minutes how it is.

They go by the cluster's clock, and late when it is turned: nobody stops a clock for a heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from flyball.api import DynamicObject
from flyball.client import Client, MergePatch, Ref, dynamic, ref
from flyball.client.kinds import kind_from
from flyball.clock import Clock, doze
from flyball.controlplane.kubelet.simulated.nodes import node_conditions
from flyball.errors import AlreadyExists, FlyballError, NotFound
from flyball.k8s.core.v1 import Node

__all__ = ["NAMESPACE", "Heartbeats"]

log = logging.getLogger("flyball.kubelet")

NAMESPACE: Final = "kube-node-lease"
_EVERY: Final = 10.0
_SLICES: Final = 10
"""Into so many parts the nodes are divided, so that they do not all come at once."""
_DURATION: Final = 40
_STATUS_EVERY: Final = 300.0
_LEASE: Final = kind_from(dynamic("coordination.k8s.io/v1", "Lease"))


class Heartbeats:
    """The heartbeats of some nodes."""

    def __init__(self, client: Client, clock: Clock, nodes: Sequence[str]) -> None:
        """Nothing beats yet."""
        self._client = client
        self._clock = clock
        self._nodes = nodes
        self._told: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Make the Leases, and go on in the background."""
        moment = self._clock.monotonic()
        for number, name in enumerate(self._nodes):
            await self._renew(name)
            self._told[name] = moment - _STATUS_EVERY * number / len(self._nodes)
        if self._nodes:
            self._told[self._nodes[0]] = moment
        self._task = asyncio.create_task(self._beat(), name="heartbeats of nodes")

    async def stop(self) -> None:
        """Stop; the nodes are not heard of any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _beat(self) -> None:
        slices = min(_SLICES, len(self._nodes)) or 1
        turn = 0
        while True:
            await doze(self._clock, _EVERY / slices)
            for name in self._nodes[turn % slices :: slices]:
                try:
                    await self._renew(name)
                    await self._tell(name)
                except FlyballError as error:
                    log.warning("heartbeat of node %s: %s", name, error)
            turn += 1

    async def _renew(self, name: str) -> None:
        moment = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        place: Ref[Any] = Ref(_LEASE, name, NAMESPACE)
        try:
            await self._client.patch(place, MergePatch({"spec": {"renewTime": moment}}))
        except NotFound:
            await self._make(name, moment)

    async def _make(self, name: str, moment: str) -> None:
        try:
            node = await self._client.get(Node, name)
        except NotFound:
            return  # somebody has deleted it
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": _DURATION, "renewTime": moment},
        }
        try:
            await self._client.create(DynamicObject(lease))
        except AlreadyExists:
            return

    async def _tell(self, name: str) -> None:
        """Say how the node is, when it was not said for long."""
        if self._clock.monotonic() - self._told.get(name, 0.0) < _STATUS_EVERY:
            return
        self._told[name] = self._clock.monotonic()
        try:
            node = await self._client.get(Node, name)
        except NotFound:
            return
        known = {one.type: one for one in node.status.conditions or ()}
        stated = node_conditions(self._clock.now())
        for one in stated:
            before = known.get(one["type"])
            if before is not None and before.status == one["status"] and before.last_transition_time is not None:
                one["lastTransitionTime"] = before.last_transition_time.strftime("%Y-%m-%dT%H:%M:%SZ")
        others = [one for one in known if one not in {each["type"] for each in stated}]
        if others:
            return  # somebody else speaks for this node, too
        await self._client.patch(ref(Node, name), MergePatch({"status": {"conditions": stated}}), subresource="status")

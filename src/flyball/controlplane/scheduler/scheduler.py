"""The work of the scheduler: hear of Pods and nodes, choose a node, bind, say why not."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from flyball.api import DynamicObject
from flyball.cache import CacheEvent, Informer, InformerCache, Key, Registration
from flyball.client import Client, MergePatch, Ref, dynamic
from flyball.client.kinds import kind_from
from flyball.clock import Clock
from flyball.controller.events import EventRecorder, EventType
from flyball.controlplane.rush import Rush
from flyball.controlplane.scheduler.affinity import names_wanted, preference
from flyball.controlplane.scheduler.claims import has_claims, trouble_with_claims
from flyball.controlplane.scheduler.filters import Refusal, refusal
from flyball.controlplane.scheduler.ledger import Ledger, NodeState, Wish
from flyball.controlplane.scheduler.seen import PodSeen, read_node, read_pod
from flyball.controlplane.scheduler.tolerance import tolerates
from flyball.controlplane.scheduler.waiting import Waiting
from flyball.controlplane.scheduler.words import GATED, NO_NODES, no_node_takes_it, not_even_looked
from flyball.errors import Conflict, FlyballError, NotFound
from flyball.k8s.core.v1 import Node, PersistentVolumeClaim, Pod

__all__ = ["NAME", "Scheduler"]

log = logging.getLogger("flyball.scheduler")

NAME: Final = "default-scheduler"
"""Which `schedulerName` it serves."""

_WORKERS: Final = 16
"""How many Pods are being bound at once, where the server is far away."""
_COMPARED: Final = 16
"""So many nodes that take a Pod are compared; on a large cluster all of them would cost more than they give."""
_AGAIN: Final = 1.0
"""Seconds after which a binding that failed is tried again."""
_TURN: Final = 0.005
"""Seconds of work after which others get their turn."""
_POD: Final = kind_from(dynamic("v1", "Pod"))
_OTHER_NODES: Final = Refusal(("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
_BESIDE: Final = "this scheduler knows no required pod affinity or anti-affinity"
_SPREAD: Final = "this scheduler knows no topology spread constraints that must hold"


class Scheduler:
    """Binds Pods of the scheduler name `default-scheduler`; see the package for what it promises.

    It reads from the cache and writes through the client; who makes it starts and stops those.
    """

    def __init__(self, client: Client, cache: InformerCache, recorder: EventRecorder, clock: Clock) -> None:
        """Nothing runs yet."""
        self._client = client
        self._rush = Rush(recorder, clock, NAME)
        self._clock = clock
        self._ledger = Ledger()
        self._waiting = Waiting()
        self._refused: dict[bytes, str] = {}
        self._refused_at = -1
        self._turn = 0
        self._pods = cache.informer(Pod)
        self._nodes = cache.informer(Node)
        self._claims: Informer[Any] = cache.informer(PersistentVolumeClaim)
        self._registrations: list[Registration] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # -- life ----------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Hear of what happens; before the cache starts, or later."""
        self._registrations = [
            self._nodes.add_handler(self._node, name=f"{NAME} nodes"),
            self._pods.add_handler(self._pod, name=f"{NAME} pods"),
            self._claims.add_handler(self._claim, name=f"{NAME} claims"),
        ]

    async def start(self) -> None:
        """Begin to place Pods, when everything that is there is known."""
        for registration in self._registrations:
            await registration.wait_synced()
        for number in range(_WORKERS):
            self._spawn(self._work(), f"{NAME} worker {number}")

    async def stop(self) -> None:
        """End."""
        for registration in self._registrations:
            registration.remove()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Any, name: str) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- what happens --------------------------------------------------------------------------------------------------

    def _node(self, event: CacheEvent) -> None:
        self._ledger.node_seen(event.object.name, read_node(event.new.raw) if event.new is not None else None)
        self._waiting.wake()

    def _claim(self, event: CacheEvent) -> None:
        del event
        self._ledger.freed += 1
        self._waiting.wake()

    def _pod(self, event: CacheEvent) -> None:
        key = event.key
        pod = read_pod(event.new.raw) if event.new is not None else None
        before = self._ledger.freed
        if pod is None or pod.spec.node_name or pod.metadata.deletion_timestamp or not pod.takes_room:
            self._ledger.pod_seen(key, pod)
            self._waiting.remove(key)
        elif pod.spec.scheduler_name == NAME:
            self._wants_a_node(key, pod, event)
        if self._ledger.freed != before:
            self._waiting.wake()

    def _wants_a_node(self, key: Key, pod: PodSeen, event: CacheEvent) -> None:
        if pod.spec.scheduling_gates:
            self._waiting.remove(key)
            self._spawn(self._tell(pod, "SchedulingGated", GATED), "gated")
            return
        if key in self._ledger:
            return  # it is being bound
        if event.old is not None and read_pod(event.old.raw).spec == pod.spec:
            return  # only its status has changed, by our own word as a rule
        self._waiting.add(Wish.of(key, pod))

    # -- the work ------------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        turn_ends = time.perf_counter() + _TURN
        while True:
            wish = await self._waiting.next()
            try:
                await self._place(wish)
            except FlyballError as error:
                log.warning("place %s/%s: %s", *wish.key, error)
                self._spawn(self._later(wish), "again")
            except Exception:
                log.exception("place %s/%s", *wish.key)
                self._spawn(self._later(wish), "again")
            if time.perf_counter() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.perf_counter() + _TURN

    async def _later(self, wish: Wish) -> None:
        await self._clock.sleep(_AGAIN)
        if (found := self._pods.peek(wish.key[1], wish.key[0])) is not None:
            pod = read_pod(found.raw)
            if not (pod.spec.node_name or pod.metadata.deletion_timestamp):
                self._waiting.add(Wish.of(wish.key, pod))

    async def _place(self, wish: Wish) -> None:
        pod = wish.pod
        trouble = await trouble_with_claims(self._client, self._claims, pod) if has_claims(pod) else None
        if not self._ledger.nodes:
            trouble = NO_NODES
        elif isinstance(trouble, str):
            trouble = not_even_looked(len(self._ledger.nodes), trouble)
        elif (unknown := _not_done(pod)) is not None:
            trouble = f"0/{len(self._ledger.nodes)} nodes are available: {unknown}."
        if isinstance(trouble, str):
            await self._refuse(wish, trouble)
            return
        signature = _signature(wish) if self._refused or trouble else b""
        known = self._known_refusal(signature) if trouble is None else None
        node = self._choose(wish) if trouble is None and known is None else None
        if node is None:
            told = known or self._reasons(wish, trouble)
            if trouble is None:
                self._refused[signature or _signature(wish)] = told
            await self._refuse(wish, told)
            return
        await self._bind(wish, node)

    def _known_refusal(self, signature: bytes) -> str | None:
        """What was told a Pod that wants the same, when nothing has changed since that could help."""
        if self._refused_at != self._ledger.freed:
            self._refused.clear()
            self._refused_at = self._ledger.freed
        return self._refused.get(signature)

    def _choose(self, wish: Wish) -> NodeState | None:
        best: NodeState | None = None
        least: tuple[int, int, int] | None = None
        compared = 0
        for node in self._in_turn(wish):
            if refusal(wish, node) is not None:
                continue
            worth = _worth(wish, node)
            if least is None or worth < least:
                best, least = node, worth
            compared += 1
            if compared >= _COMPARED:
                break
        return best

    def _in_turn(self, wish: Wish) -> Iterator[NodeState]:
        """The nodes, beginning each time where the last search has ended, so that each has its turn."""
        wanted = names_wanted(wish.pod)
        if wanted is not None:
            yield from (self._ledger.nodes[name] for name in sorted(wanted) if name in self._ledger.nodes)
            return
        nodes = list(self._ledger.nodes.values())
        if len(nodes) <= _COMPARED:
            yield from nodes
            return
        start = self._turn % len(nodes)
        for offset in range(len(nodes)):
            self._turn = start + offset + 1
            yield nodes[(start + offset) % len(nodes)]

    def _reasons(self, wish: Wish, trouble: Refusal | None) -> str:
        wanted = names_wanted(wish.pod)

        def of(node: NodeState) -> Refusal:
            if wanted is not None and node.name not in wanted:
                return _OTHER_NODES
            return refusal(wish, node) or trouble or Refusal(())

        def has_victims(node: NodeState) -> bool:
            return any(one.priority < wish.priority for one in node.pods.values())

        refusals = [(of(node), has_victims(node)) for node in self._ledger.nodes.values()]
        return no_node_takes_it(refusals, never=wish.pod.spec.preemption_policy == "Never")

    async def _bind(self, wish: Wish, node: NodeState) -> None:
        self._ledger.place(wish, node.name)
        metadata = wish.pod.metadata
        try:
            await self._client.bind(_ref(wish.pod), node.name)
        except (NotFound, Conflict):
            self._ledger.free(wish.key)  # it is gone, or somebody else has bound it: the watch will tell
            self._waiting.wake()
            return
        except BaseException:
            self._ledger.free(wish.key)
            raise
        told = f"Successfully assigned {metadata.namespace}/{metadata.name} to {node.name}"
        self._record(wish.pod, "Normal", "Scheduled", told, "Binding")

    # -- saying why not ------------------------------------------------------------------------------------------------

    async def _refuse(self, wish: Wish, message: str) -> None:
        self._waiting.park(wish)
        self._record(wish.pod, "Warning", "FailedScheduling", message, "Scheduling")
        await self._tell(wish.pod, "Unschedulable", message)

    async def _tell(self, pod: PodSeen, reason: str, message: str) -> None:
        """Say it in the condition of the Pod, unless it stands there already."""
        found = self._pods.peek(pod.metadata.name, pod.metadata.namespace)
        if found is None:
            return
        conditions: list[dict[str, Any]] = (found.plain().get("status") or {}).get("conditions") or []
        known = next((one for one in conditions if one.get("type") == "PodScheduled"), {})
        if (known.get("status"), known.get("reason"), known.get("message")) == ("False", reason, message):
            return
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        since = known.get("lastTransitionTime") if known.get("status") == "False" else now
        ours = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        stated = {**ours, "lastProbeTime": None, "lastTransitionTime": since or now}
        others = [one for one in conditions if one.get("type") != "PodScheduled"]
        try:
            await self._client.patch(
                _ref(pod), MergePatch({"status": {"conditions": [*others, stated]}}), subresource="status"
            )
        except (NotFound, Conflict):
            return

    def _record(self, pod: PodSeen, type_: EventType, reason: str, message: str, action: str) -> None:
        if type_ == "Normal" and not self._rush.allows():
            return
        metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid}
        about = DynamicObject({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
        self._rush.say(about, type_, reason, message, action)


def _ref(pod: PodSeen) -> Ref[Any]:
    return Ref(_POD, pod.metadata.name, pod.metadata.namespace)


def _worth(wish: Wish, node: NodeState) -> tuple[int, int, int]:
    """The smaller the better: taints that it had rather not meet, what it does not prefer, how full it is."""
    spec = wish.pod.spec
    disliked = sum(1 for one in node.discourages if not tolerates(spec.tolerations, one)) if node.discourages else 0
    preferred = preference(wish.pod, node.name, node.labels) if spec.affinity is not None else 0
    return (disliked, -preferred, len(node.pods))


def _not_done(pod: PodSeen) -> str | None:
    """What a Pod requires that this scheduler cannot give."""
    affinity = pod.spec.affinity
    if affinity is not None:
        beside = (affinity.pod_affinity, affinity.pod_anti_affinity)
        if any(one is not None and one.required for one in beside):
            return _BESIDE
    if any(one.when_unsatisfiable == "DoNotSchedule" for one in pod.spec.topology_spread_constraints):
        return _SPREAD
    return None


def _signature(wish: Wish) -> bytes:
    """The same for Pods that every node would answer in the same way."""
    spec = wish.pod.spec
    parts = (
        wish.requests,
        wish.ports,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        wish.priority,
        spec.preemption_policy,
    )
    return msgspec.json.encode(parts)

"""Leader election under everything that can happen to a process, its clock and its wire."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from flyball.api import ObjectMeta
from flyball.client import Client
from flyball.client.transport import HttpRequest, HttpResponse
from flyball.clock import ManualClock
from flyball.controlplane.apiserver.request import Answer, Request
from flyball.errors import Conflict, ConnectError, ConnectionLost, FlyballError, NotFound
from flyball.k8s.coordination.v1 import Lease
from flyball.k8s.core.v1 import ConfigMap
from flyball.manager.clients import ways_of
from flyball.manager.election import Election, Elector, LeaseLost
from flyball.manager.fence import Fence, NotLeading
from flyball.manager.metrics import Registry
from flyball.testing import Cluster

pytestmark = pytest.mark.capability("C51")

NAMES = ("one", "two", "three", "four", "five")


class Clock:
    """The hands that everybody sees, for a process that may be stopped: then it does not wake."""

    def __init__(self, hands: ManualClock) -> None:
        self.hands = hands
        self.running = asyncio.Event()
        self.running.set()

    def now(self) -> datetime:
        return self.hands.now()

    def monotonic(self) -> float:
        return self.hands.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.hands.sleep(seconds)
        await self.running.wait()


class Wire:
    """The way of one process to the server, with what can happen on it."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._inner = cluster.transport
        self._clock = clock
        self.cut = False
        self.before = 0.0
        self.after = 0.0
        self.lose_answer = False
        self.started: list[tuple[float, HttpRequest]] = []

    @property
    def host(self) -> str:
        return "the wire"

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.started.append((self._clock.monotonic(), request))
        if self.cut:
            raise ConnectError(f"{request.action}: cut")
        before, after, lost = self.before, self.after, self.lose_answer
        if before:
            await self._clock.hands.sleep(before)
        # What is on the way arrives, whatever becomes of who sent it.
        answer = await asyncio.shield(asyncio.ensure_future(self._inner.send(request)))
        if after:
            await self._clock.hands.sleep(after)
        await self._clock.running.wait()
        if lost:
            raise ConnectionLost(f"{request.action}: the answer was lost")
        return answer

    async def close(self) -> None:
        return


@dataclass
class Replica:
    """A process: candidate, then leader with some work, then ended."""

    name: str
    cluster: Cluster
    hands: ManualClock
    election: Election
    clock: Clock = field(init=False)
    ended: BaseException | None = None

    def __post_init__(self) -> None:
        self.clock = Clock(self.hands)
        self.wire = Wire(self.cluster, self.clock)
        self.fence = Fence(self.clock, election=True)
        self.metrics = Registry()
        client = Client(transport=self.wire)
        ways = ways_of(client, self.fence, self.metrics, qps=None, clock=self.clock)
        self.client = ways.controllers
        jitter = random.Random(self.name).random
        self.elector = Elector(
            ways.election, self.election, self.fence, clock=self.clock, jitter=jitter, metrics=self.metrics
        )
        self.task = asyncio.create_task(self.live())

    async def live(self) -> None:
        work: asyncio.Task[None] | None = None
        try:
            await self.elector.acquire()
            work = asyncio.create_task(self.work())
            await self.elector.hold()
        except LeaseLost as error:
            self.ended = error
        finally:
            if work is not None:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def work(self) -> None:
        """Write the epoch into a record, as often as possible; a record of a higher epoch is left alone."""
        mine = self.elector.epoch
        while True:
            try:
                await self._write(mine)
            except (NotLeading, FlyballError):
                await asyncio.sleep(0)
            await self.clock.sleep(0.3)

    async def _write(self, mine: int) -> None:
        try:
            record = await self.client.get(ConfigMap, "record")
        except NotFound:
            await self.client.create(
                ConfigMap(metadata=ObjectMeta(name="record"), data={"epoch": str(mine), "who": self.name})
            )
            return
        data = record.data or {}
        if int(data["epoch"]) > mine:
            return
        record.data = {"epoch": str(mine), "who": self.name, "n": str(int(data.get("n", "0")) + 1)}
        try:
            await self.client.update(record)
        except Conflict:
            return

    async def stop(self) -> None:
        self.clock.running.set()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def pause(self) -> None:
        self.clock.running.clear()

    def resume(self) -> None:
        self.clock.running.set()


@dataclass
class World:
    cluster: Cluster
    hands: ManualClock
    election: Callable[[str], Election]
    replicas: dict[str, Replica] = field(default_factory=dict[str, Replica])
    record: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def start(self, name: str) -> Replica:
        replica = self.replicas[name] = Replica(name, self.cluster, self.hands, self.election(name))
        return replica

    def note(self, request: Request, answer: Answer) -> None:
        """Keep what was written into the record, in the order of the writes."""
        if "/configmaps" in request.path and request.method in ("POST", "PUT") and answer.status < 300:
            self.record.append(json.loads(request.body)["data"])

    @property
    def leaders(self) -> list[str]:
        return [name for name, one in self.replicas.items() if one.elector.is_leader]

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> float:
        begun = self.hands.monotonic()
        while not condition():
            assert self.hands.monotonic() - begun < seconds, f"not so after {seconds} s"
            await self.hands.advance(0.1)
        return self.hands.monotonic() - begun

    async def lease(self) -> Lease:
        return await self.cluster.client.get(Lease, "demo")


@asynccontextmanager
async def world() -> AsyncGenerator[World]:
    hands = ManualClock()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster(clock=hands, controllers=False))
        made = World(cluster, hands, lambda name: Election(name="demo", identity=name, labels={"app": "demo"}))
        cluster.embedded.server.after.append(made.note)
        yield made
        for one in made.replicas.values():
            await one.stop()


@pytest.fixture(name="world")
async def _world() -> AsyncIterator[World]:
    async with world() as made:
        yield made


async def test_the_lease_says_what_client_go_expects(world: World) -> None:
    world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    lease = await world.lease()
    assert lease.metadata.labels == {"app": "demo"}
    assert lease.spec.holder_identity == "one"
    assert lease.spec.lease_duration_seconds == 15
    assert lease.spec.lease_transitions == 0
    acquired = lease.spec.acquire_time
    await world.hands.advance(5)
    lease = await world.lease()
    assert lease.spec.acquire_time == acquired
    assert lease.spec.renew_time > acquired  # type: ignore[operator]
    assert world.replicas["one"].metrics.value("leader_election_master_status", name="demo") == 1


async def test_one_of_five_leads(world: World) -> None:
    for name in NAMES:
        world.start(name)
    for _ in range(300):
        await world.hands.advance(0.1)
        assert len(world.leaders) <= 1
    assert len(world.leaders) == 1


async def test_a_lease_that_was_given_back_is_taken_within_a_retry(world: World) -> None:
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    world.start("two")
    await world.hands.advance(5)
    await first.stop()
    await first.elector.release()
    lease = await world.lease()
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("", 1)
    assert await world.until(lambda: world.leaders == ["two"]) <= 2.1
    assert (await world.lease()).spec.lease_transitions == 1
    assert world.replicas["two"].elector.epoch == 1


async def test_a_dead_leader_is_followed_within_the_lease_and_a_retry(world: World) -> None:
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    world.start("two")
    await world.hands.advance(7)
    first.pause()
    taken = await world.until(lambda: "two" in world.leaders)
    assert taken <= 15 + 2 + 0.2
    assert world.leaders == ["two"]


async def test_nothing_is_sent_after_the_renew_deadline(world: World) -> None:
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    await world.hands.advance(1)
    first.pause()
    world.hands.jump(120)  # nobody's timers ran meanwhile, as on a machine that was suspended
    sent = len(first.wire.started)
    first.resume()
    await world.hands.advance(5)
    assert isinstance(first.ended, LeaseLost)
    assert len(first.wire.started) == sent
    with pytest.raises(NotLeading, match="does not hold the lease"):
        await first.client.get(ConfigMap, "record")


async def test_a_leader_that_cannot_renew_stops_at_the_deadline_and_says_why(world: World) -> None:
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    first.wire.cut = True
    assert 7.9 <= await world.until(lambda: not world.leaders) <= 10.1
    await world.until(lambda: first.ended is not None)
    assert "not renewed for 10 s; last failure: update Lease default/demo: cut" in str(first.ended)


async def test_answers_that_hang_are_given_up(world: World) -> None:
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    first.wire.after = 3600.0
    await world.until(lambda: first.ended is not None)
    assert "last failure: no answer from the wire" in str(first.ended)


async def test_one_lost_answer_is_survived(world: World) -> None:
    first = world.start("one")
    first.wire.lose_answer = True
    await world.hands.advance(0.5)  # the lease was made, and nobody knows
    assert world.leaders == []
    first.wire.lose_answer = False
    await world.until(lambda: world.leaders == ["one"], 3)
    first.wire.lose_answer = True
    await world.hands.advance(2.5)
    first.wire.lose_answer = False
    await world.hands.advance(60)
    assert world.leaders == ["one"]
    assert (await world.lease()).spec.lease_transitions == 0


async def test_a_lease_that_another_one_took_is_lost_at_once(world: World) -> None:
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    lease = await world.lease()
    lease.spec.holder_identity = "somebody"
    await world.cluster.client.update(lease)
    await world.until(lambda: first.ended is not None, 2.2)
    assert "it is held by somebody now" in str(first.ended)


async def test_a_deleted_lease_is_made_again_by_its_holder(world: World) -> None:
    world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    world.start("two")
    await world.hands.advance(3)
    await world.cluster.client.delete(Lease, "demo")
    for _ in range(100):
        await world.hands.advance(0.1)
        assert world.leaders == ["one"]
    assert (await world.lease()).spec.holder_identity == "one"


async def test_who_leads_after_a_deleted_lease_has_a_higher_epoch(world: World) -> None:
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    world.start("two")
    await world.hands.advance(3)
    first.pause()
    await world.cluster.client.delete(Lease, "demo")
    await world.until(lambda: "two" in world.leaders)
    assert world.leaders == ["two"]
    assert world.replicas["two"].elector.epoch == 1


async def test_a_missing_permission_is_named(world: World) -> None:
    world.cluster.faults.status(403, message="no", resource="leases", verb="get")
    first = world.start("one")
    await world.hands.advance(3)
    assert 'add @rbac("coordination.k8s.io", "leases", "get", "create", "update")' in (first.elector.health() or "")


async def test_an_early_writer_counts_from_what_it_has_seen_itself(world: World) -> None:
    """Clocks of other machines are wrong: what they write as time has no meaning."""
    first = world.start("one")
    await world.until(lambda: world.leaders == ["one"])
    first.pause()
    lease = await world.lease()
    lease.spec.renew_time = datetime.fromisoformat("2001-01-01T00:00:00Z")
    await world.cluster.client.update(lease)
    world.start("two")
    assert await world.until(lambda: "two" in world.leaders) >= 14.9


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("seed", range(8))
async def test_there_are_never_two_leaders(count: int, seed: int) -> None:
    """Pauses, suspended machines, lost and late answers, a wire that is cut, a server that is away: in any order."""
    chance = random.Random(seed * 10 + count)
    async with world() as made:
        for name in NAMES[:count]:
            made.start(name)
        born = count
        led: dict[int, str] = {}
        for _ in range(150):
            _something_happens(made, chance)
            await made.hands.advance(chance.choice([0.1, 0.4, 1.0, 2.5]))
            assert len(made.leaders) <= 1
            for name in made.leaders:
                epoch = made.replicas[name].elector.epoch
                assert led.setdefault(epoch, name) == name
            _check_sent(made)
            for name, one in list(made.replicas.items()):
                if one.ended is not None or one.task.done():
                    await one.stop()
                    del made.replicas[name]
                    made.start(f"{name.partition('-')[0]}-{born}")
                    born += 1
        for one in made.replicas.values():
            one.resume()
            _mend(one.wire)
        made.cluster.faults.clear()
        await made.until(lambda: len(made.leaders) == 1, 60)
        _check_record(made)


def _something_happens(made: World, chance: random.Random) -> None:
    one = chance.choice(list(made.replicas.values()))
    what = chance.randrange(12)
    if what == 0:
        one.pause()
    elif what in (1, 2):
        for each in made.replicas.values():
            each.resume()
    elif what == 3:
        made.hands.jump(chance.choice([0.5, 5.0, 12.0, 40.0]))
    elif what == 4:
        one.wire.cut = True
    elif what == 5:
        one.wire.lose_answer = True
    elif what == 6:
        one.wire.before = chance.choice([0.5, 3.0, 8.0])
    elif what == 7:
        one.wire.after = chance.choice([0.5, 3.0, 12.0])
    elif what == 8:
        made.cluster.faults.status(503, lasting=chance.choice([1.0, 6.0, 20.0]))
    else:
        for each in made.replicas.values():
            _mend(each.wire)


def _mend(wire: Wire) -> None:
    wire.cut = wire.lose_answer = False
    wire.before = wire.after = 0.0


def _check_sent(made: World) -> None:
    """Whatever touches the record was sent at most ten seconds after a write of the lease by the same process."""
    for one in made.replicas.values():
        renewed = -1e9
        for moment, request in one.wire.started:
            if request.path.endswith("/leases/demo") or request.path.endswith("/leases"):
                if request.method != "GET":
                    renewed = moment
            else:
                assert moment < renewed + 10.0, (one.name, request.action)


def _check_record(made: World) -> None:
    """The record's history shows epochs one after the other, each written by one process."""
    assert made.record
    epochs = [int(data["epoch"]) for data in made.record]
    assert epochs == sorted(epochs)
    writers: dict[int, set[str]] = {}
    for data in made.record:
        writers.setdefault(int(data["epoch"]), set()).add(data["who"])
    assert all(len(names) == 1 for names in writers.values())

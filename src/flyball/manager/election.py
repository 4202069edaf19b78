"""Electing one leader among the replicas of an operator, by a Lease that client-go's programs understand too.

What it guarantees, as long as clocks of machines run at about the same speed (they need not show the same time):

- **One leader.** Who leads stops sending requests `renew_deadline` seconds after the last renewal *began*; others take
  over not before they have seen nothing new for the lease's whole duration, which is longer. Both measure by their own
  monotonic clock.
- **An epoch.** `epoch` (the Lease's `leaseTransitions`) grows with every change of the holder. A record that keeps the
  highest epoch and refuses lower ones is safe even from a request that was on its way when its sender was stopped.
- **Quick succession.** A leader that stops in order empties the Lease. After a crash another replica leads within the
  lease's duration and one retry.

What it does not: somebody who deletes the Lease takes the memory away from replicas that start just then. Those that
have seen it before wait for its duration all the same.

The flow: `acquire` tries until the Lease is ours, `hold` renews it until it is lost, `release` gives it back.
"""

from __future__ import annotations

import logging
import math
import os
import random
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

from flyball.api import to_dict
from flyball.cache.metrics import NO_METRICS, Metrics
from flyball.client import Client
from flyball.clock import Clock, RealClock
from flyball.errors import AlreadyExists, ApiError, Conflict, FlyballError, Forbidden, NotFound
from flyball.k8s.coordination.v1 import Lease, LeaseSpec
from flyball.manager.fence import Fence
from flyball.manager.within import within

__all__ = ["Election", "Elector", "LeaseLost", "own_identity"]

log = logging.getLogger(__name__)


class LeaseLost(FlyballError):
    """This process led and could not renew its lease in time; it must end, so that another one can take over."""


def own_identity() -> str:
    """A name for this process that no other one has: `host_0b1c...`."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, kw_only=True)
class Election:
    """How a leader is elected; the numbers are those of client-go and controller-runtime."""

    name: str
    """Of the Lease; replicas of one operator share it, and nobody else."""
    namespace: str | None = None
    """Of the Lease; default: that of the client, which is that of the pod."""
    identity: str = field(default_factory=own_identity)
    """Who this is; no two processes may have the same."""
    lease_duration: float = 15.0
    """Seconds after which others take a lease over that was not renewed."""
    renew_deadline: float = 10.0
    """Seconds after which a leader that could not renew stops."""
    retry_period: float = 2.0
    """Seconds between two tries."""
    release: bool = True
    """Whether a leader that stops in order gives the lease back, so that nobody must wait for it to run out."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Labels that the holder puts on the Lease."""

    def __post_init__(self) -> None:
        """Refuse numbers with which there could be two leaders or none."""
        if not self.identity:
            raise ValueError("leader election: the identity is empty; give each process one of its own")
        if self.retry_period <= 0:
            raise ValueError(f"leader election: the retry period must be positive, not {self.retry_period:g} s")
        if self.lease_duration < 1 or self.lease_duration <= self.renew_deadline:
            raise ValueError(
                f"leader election: the lease duration ({self.lease_duration:g} s) must be at least a second and longer "
                f"than the renew deadline ({self.renew_deadline:g} s)"
            )
        if self.renew_deadline <= self.retry_period * 1.2:
            raise ValueError(
                f"leader election: the renew deadline ({self.renew_deadline:g} s) must be longer than 1.2 times the "
                f"retry period ({self.retry_period:g} s)"
            )


@dataclass(slots=True)
class _Seen:
    """What the Lease said last, and when that was new."""

    spec: object
    holder: str
    transitions: int
    acquired: datetime | None
    expires: float


class Elector:
    """One candidate for one Lease. `client` should neither repeat requests nor be fenced: this does both itself."""

    def __init__(
        self,
        client: Client,
        election: Election,
        fence: Fence,
        *,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """`jitter` gives numbers from 0 to 1, by which tries of many candidates are moved apart."""
        self._client = client
        self._election = election
        self._fence = fence
        self._clock: Clock = clock if clock is not None else RealClock()
        self._jitter = jitter
        self._metrics = metrics
        self._namespace = election.namespace or client.namespace
        self._lease: Lease | None = None
        self._seen: _Seen | None = None
        self._reported: str | None = None
        self._highest = -1
        self.trouble = ""
        """Why the last try failed: one line; empty when it did not fail."""
        metrics.gauge("leader_election_master_status", 0.0, name=election.name)

    @property
    def words(self) -> str:
        """Which lease this is about: `lease shop/demo-leader`."""
        return f"lease {self._namespace}/{self._election.name}"

    @property
    def is_leader(self) -> bool:
        """Whether this process may act as the leader at this moment."""
        return self._fence.was_won and self._fence.is_open

    @property
    def holder(self) -> str:
        """Who held the lease when it was last looked at; empty when nobody did."""
        return self._seen.holder if self._seen is not None else ""

    @property
    def epoch(self) -> int:
        """Grows with every change of the holder; for whoever must refuse what an earlier leader still sends."""
        return self._seen.transitions if self._seen is not None else 0

    def health(self) -> str | None:
        """What is wrong, or None. A replica that waits for its turn is well."""
        if self._fence.was_won and not self._fence.is_open:
            return f"{self.words} was lost"
        return f"{self.words}: {self.trouble}" if self.trouble else None

    # -- the three phases ----------------------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Return when this process leads; it then has to be in `hold` soon."""
        log.info("waiting for %s as %s", self.words, self._election.identity)
        while not (await self._try(self._patience) and self.is_leader):
            await self._clock.sleep(self._pause())
        self._metrics.gauge("leader_election_master_status", 1.0, name=self._election.name)
        log.info("leading: %s is held by %s, epoch %d", self.words, self._election.identity, self.epoch)

    async def hold(self) -> NoReturn:
        """Renew until that fails for too long or somebody else has the lease; then raise `LeaseLost`."""
        try:
            while True:
                await self._clock.sleep(min(self._election.retry_period, max(self._left, 0.0)))
                if self._left <= 0:
                    raise LeaseLost(self._lost(f"not renewed for {self._election.renew_deadline:g} s"))
                if not await self._try(min(self._left, self._patience)) and self._is_of_another:
                    raise LeaseLost(self._lost(f"it is held by {self.holder} now"))
        except LeaseLost:
            self._fence.shut()
            raise
        finally:
            self._metrics.gauge("leader_election_master_status", 0.0, name=self._election.name)

    async def release(self, *, seconds: float = 5.0) -> None:
        """Give the lease back, if this process still holds it. Nothing else may be sent any more after this begins."""
        left = min(self._left, seconds)
        self._fence.shut()
        if not self._election.release or left <= 0 or self._seen is None or self.holder != self._election.identity:
            return
        try:
            await within(self._clock, left, self._empty())
            log.info("%s was given back", self.words)
        except (FlyballError, TimeoutError) as error:
            log.warning("%s could not be given back, so others wait until it runs out: %s", self.words, error)

    # -- one try -------------------------------------------------------------------------------------------------------

    @property
    def _left(self) -> float:
        return self._fence.until - self._clock.monotonic()

    @property
    def _patience(self) -> float:
        return max(1.0, self._election.renew_deadline / 2)

    @property
    def _is_of_another(self) -> bool:
        return self.holder not in {"", self._election.identity}

    def _pause(self) -> float:
        """Until the next try of a candidate: a retry period shortened by up to a fifth, or when the lease runs out."""
        pause = self._election.retry_period * (1 - self._jitter() / 5)
        if self._seen is None or not self._is_of_another:
            return pause
        left = self._seen.expires - self._clock.monotonic()
        return min(pause, left) if left > 0 else pause

    def _lost(self, why: str) -> str:
        last = f"; last failure: {self.trouble}" if self.trouble else ""
        return f"{self.words}: {why}{last}; this process ends, so that another one can lead"

    async def _try(self, patience: float) -> bool:
        """Take the lease or renew it; tell whether it is ours."""
        was = self.trouble
        try:
            ours = await within(self._clock, patience, self._take())
            self.trouble = ""
        except TimeoutError:
            ours, self.trouble = False, f"no answer from {self._client.host} in {patience:g} s"
        except Forbidden as error:
            ours, self.trouble = False, f"{_permission(self._namespace)} ({error})"
        except FlyballError as error:
            ours, self.trouble = False, str(error)
        if self.trouble and self.trouble != was:
            log.warning("%s: %s", self.words, self.trouble)
        self._report()
        return ours

    def _report(self) -> None:
        if self.holder == self._reported:
            return
        self._reported = self.holder
        if self._is_of_another:
            log.info("%s is held by %s", self.words, self.holder)

    async def _take(self) -> bool:
        if self._lease is not None and self.holder == self._election.identity and self._fence.is_open:
            try:
                await self._put(self._lease)
                return True
            except ApiError:  # an answer was lost before, or somebody else wrote: look
                self._metrics.counter("leader_election_slowpath_total", name=self._election.name)
        try:
            lease = await self._client.get(Lease, self._election.name, namespace=self._namespace)
        except NotFound:
            return await self._create()
        self._look(lease)
        if self._is_of_another and not self._has_expired:
            return False
        try:
            await self._put(lease)
        except Conflict:  # somebody was quicker
            return False
        return True

    @property
    def _has_expired(self) -> bool:
        return self._seen is None or self._clock.monotonic() >= self._seen.expires

    def _look(self, lease: Lease) -> None:
        """Remember what the lease says. The time counts from when it was new to us."""
        spec = to_dict(lease).get("spec") or {}
        self._lease = lease
        if self._seen is not None and self._seen.spec == spec:
            return
        found = lease.spec or LeaseSpec()
        seconds = found.lease_duration_seconds or math.ceil(self._election.lease_duration)
        transitions = found.lease_transitions or 0
        self._seen = _Seen(
            spec, found.holder_identity or "", transitions, found.acquire_time, self._clock.monotonic() + seconds
        )
        self._highest = max(self._highest, transitions)

    async def _create(self) -> bool:
        """Make the lease; one that was there a moment ago may still be believed in, and is waited for."""
        self._lease = None
        if self._seen is not None and self._is_of_another and not self._has_expired:
            return False
        lease = Lease.new(self._election.name, namespace=self._namespace, labels=dict(self._election.labels) or None)
        lease.spec = self._record(self._highest + 1, None)
        begun = self._clock.monotonic()
        try:
            made = await self._client.create(lease)
        except AlreadyExists:
            return False
        self._won(made, begun)
        return True

    async def _put(self, lease: Lease) -> None:
        seen = self._seen
        mine = seen is not None and seen.holder == self._election.identity
        transitions = seen.transitions if mine and seen is not None else self._highest + 1
        record = self._record(transitions, seen.acquired if mine and seen is not None else None)
        await self._write(lease, record, labels=self._election.labels)

    async def _write(self, lease: Lease, record: LeaseSpec, labels: Mapping[str, str]) -> None:
        spec = lease.spec
        spec.holder_identity = record.holder_identity
        spec.lease_duration_seconds = record.lease_duration_seconds
        spec.acquire_time, spec.renew_time = record.acquire_time, record.renew_time
        spec.lease_transitions = record.lease_transitions
        if labels:
            lease.metadata.labels = {**(lease.metadata.labels or {}), **labels}
        begun = self._clock.monotonic()
        self._won(await self._client.update(lease), begun)

    def _record(self, transitions: int, acquired: datetime | None) -> LeaseSpec:
        now = self._clock.now()
        return LeaseSpec(
            holder_identity=self._election.identity,
            lease_duration_seconds=math.ceil(self._election.lease_duration),
            acquire_time=acquired or now,
            renew_time=now,
            lease_transitions=transitions,
        )

    def _won(self, lease: Lease, begun: float) -> None:
        """The lease is ours from the moment at which the request began: others have seen it later than that."""
        self._look(lease)
        if self.holder == self._election.identity:
            self._fence.extend(begun + self._election.renew_deadline)

    async def _empty(self) -> None:
        """Write that nobody holds the lease, if the one that is there is ours."""
        lease = self._lease
        for _ in range(2):
            if lease is None or (lease.spec.holder_identity or "") != self._election.identity:
                return
            now = self._clock.now()
            lease.spec.holder_identity = ""
            lease.spec.lease_duration_seconds = 1
            lease.spec.acquire_time = lease.spec.renew_time = now
            try:
                self._look(await self._client.update(lease))
                return
            except Conflict:
                lease = await self._client.get(Lease, self._election.name, namespace=self._namespace)


def _permission(namespace: str) -> str:
    return (
        f"missing: get, create, update leases.coordination.k8s.io in namespace {namespace}; "
        'add @rbac("coordination.k8s.io", "leases", "get", "create", "update")'
    )

"""Simulated Pods in a cluster: stages, restarts, logs and heartbeats, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from flyball import errors
from flyball.api import find_condition, is_true, to_dict
from flyball.client import MergePatch, ref
from flyball.clock import ManualClock
from flyball.controlplane.kubelet.simulated import Match, SimulatedPod, stage
from flyball.errors import ConfigError, NotFound
from flyball.k8s.coordination.v1 import Lease
from flyball.k8s.core.v1 import Container, Event, Node, Pod, PodReadinessGate, PodSpec
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing import Cluster, eventually

T = TypeVar("T")
SIMULATE = "simulate.flyball.dev/"


class Box:
    """A cluster with simulated nodes."""

    def __init__(self, cluster: Cluster, clock: ManualClock) -> None:
        self.cluster, self.clock, self.client = cluster, clock, cluster.client

    async def create(self, policy: str = "Always", labels: dict[str, str] | None = None, **marks: str) -> Pod:
        annotations = {SIMULATE + name.replace("_", "-"): text for name, text in marks.items()}
        spec = PodSpec(containers=[Container(name="c", image="i")], restart_policy=policy)
        metadata = ObjectMeta(name="p", namespace="default", labels=labels or {}, annotations=annotations)
        return await self.client.create(Pod(metadata=metadata, spec=spec))

    async def pod(self) -> Pod:
        return await self.client.get(Pod, "p", namespace="default")

    async def until(self, right: Callable[[Pod], Any], step: float = 0.1) -> Pod:
        for _ in range(2000):
            found = await self.pod()
            if right(found):
                return found
            await self.clock.advance(step)
        raise AssertionError(f"it does not happen: {await self.pod()}")

    async def log(self, **options: Any) -> str:
        return await self.client.logs("p", namespace="default", **options)

    async def reasons(self) -> list[str]:
        return sorted(event.reason or "" for event in await self.client.list(Event, namespace="default"))


@asynccontextmanager
async def box(**wishes: Any) -> AsyncGenerator[Box]:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, **wishes) as cluster:
        yield Box(cluster, clock)


def state(pod: Pod) -> Any:
    (found,) = pod.status.container_statuses or []
    return found


def restarts(pod: Pod) -> int:
    return state(pod).restart_count if pod.status.container_statuses else 0


async def test_a_crash_loop_goes_by_the_clock() -> None:
    async with box() as one:
        await one.create(run_for="5", exit_code="1")
        await one.until(lambda pod: restarts(pod) == 3)
        assert 45 <= one.clock.monotonic() < 47, "5 s, at once, 5 s, 10 s later, 5 s, 20 s later"
        found = await one.until(lambda pod: state(pod).state.waiting)
        assert state(found).state.waiting.reason == "CrashLoopBackOff"
        assert found.status.phase == "Running"
        assert "BackOff" in await one.reasons()


@pytest.mark.capability("C77")
async def test_a_stage_is_a_function_or_yaml(tmp_path: Path) -> None:
    file = tmp_path / "stages.yaml"
    file.write_text(
        """
        apiVersion: simulate.flyball.dev/v1
        kind: Stage
        metadata: {name: gives up}
        spec:
          selector:
            matchExpressions: [{key: '.metadata.annotations.warned', operator: Exists}]
          delay: 1m
          next:
            containers: [{state: terminated, exitCode: 9, reason: GaveUp}]
            log: enough
        """
    )
    ready = Match('.status.conditions[?(@.type=="Ready")].status', "In", ["True"])

    @stage(
        "warns", labels={"app": "weak"}, where=[ready, Match(".metadata.annotations.warned", "DoesNotExist")], delay=30
    )
    def warns(pod: SimulatedPod) -> None:
        pod.set_ready("c", False)
        pod.annotations["warned"] = "yes"
        pod.say("Warning", "Weak", "it gets weak")

    async with box(stages=[warns, file]) as one:
        await one.create("Never", labels={"app": "weak"}, run_for="forever")
        await one.until(lambda pod: pod.metadata.annotations.get("warned"))
        assert 30 <= one.clock.monotonic() < 32
        assert "Weak" in await one.reasons()
        found = await one.until(lambda pod: pod.status.phase == "Failed")
        assert 90 <= one.clock.monotonic() < 94
        assert (state(found).state.terminated.exit_code, state(found).state.terminated.reason) == (9, "GaveUp")
        assert await one.log() == "enough\n"


async def test_a_stage_that_changes_nothing_that_it_selects_does_not_run_wild() -> None:
    seen: list[float] = []
    clock = ManualClock()

    @stage("again", where=[Match(".spec.nodeName")])
    def again(pod: SimulatedPod) -> None:
        seen.append(clock.monotonic())
        pod.accept()
        pod.annotations["count"] = str(len(seen))

    async with Cluster(clock=clock, workloads=True, stages=[again]) as cluster:
        one = Box(cluster, clock)
        await one.create()
        for _ in range(100):
            await clock.advance(0.1)
        assert 5 <= len(seen) <= 12, "about once a second"


async def test_logs_come_from_the_annotation_and_from_stages_and_end_with_the_container() -> None:
    @stage(
        "talks", where=[Match(".status.phase", "In", ["Running"]), Match(".metadata.annotations.said", "DoesNotExist")]
    )
    def talks(pod: SimulatedPod) -> None:
        pod.write("c", "later")
        pod.annotations["said"] = "it"

    async with box(stages=[talks]) as one:
        await one.create("Never", log="first\nsecond", run_for="20")
        await one.until(lambda pod: pod.metadata.annotations.get("said"))
        assert await one.log() == "first\nsecond\nlater\n"
        assert await one.log(tail=1) == "later\n"
        assert (await one.log(timestamps=True)).startswith("2026-01-01T00:00:0")
        await one.until(lambda pod: pod.status.phase == "Succeeded")
        assert await one.log() == "first\nsecond\nlater\n"


async def test_there_is_nothing_to_run_a_command_in() -> None:
    async with box() as one:
        await one.create()
        found = await one.until(lambda pod: pod.status.phase == "Running")
        with pytest.raises(errors.FlyballError, match=r"container c of Pod default/p is simulated.*--pods=process"):
            async with one.client.exec(found, ["true"]) as running:
                await running.wait()


async def test_a_gate_that_somebody_opens_lets_the_pod_be_ready() -> None:
    async with box() as one:
        spec = PodSpec(
            containers=[Container(name="c", image="i")],
            readiness_gates=[PodReadinessGate(condition_type="example.com/open")],
        )
        await one.client.create(Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
        found = await one.until(lambda pod: pod.status.phase == "Running")
        assert not is_true(found.status.conditions, "Ready")
        opened = {"type": "example.com/open", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        conditions = [*(to_dict(condition) for condition in found.status.conditions or ()), opened]
        await one.client.patch(found, MergePatch({"status": {"conditions": conditions}}), subresource="status")
        await one.until(lambda pod: is_true(pod.status.conditions, "Ready"))


async def test_nodes_are_heard_of() -> None:
    async with box(nodes=3) as one:

        async def renewed() -> list[float]:
            leases = await one.client.list(Lease, namespace="kube-node-lease")
            assert sorted(lease.metadata.name for lease in leases) == ["node-1", "node-2", "node-3"]
            return [
                (one.clock.now() - lease.spec.renew_time).total_seconds() for lease in leases if lease.spec.renew_time
            ]

        assert len(await renewed()) == 3
        for _ in range(30):
            await one.clock.advance(5)
        assert max(await renewed()) <= 15
        lease = await one.client.get(Lease, "node-1", namespace="kube-node-lease")
        assert (lease.spec.lease_duration_seconds, lease.spec.holder_identity) == (40, "node-1")
        (owner,) = lease.metadata.owner_references or []
        assert owner.kind == "Node"
        for _ in range(40):
            await one.clock.advance(10)
        node = await one.client.get(Node, "node-1")
        beat = find_condition(node.status.conditions, "Ready")
        assert beat is not None
        assert beat.last_transition_time is not None
        assert (one.clock.now() - beat.last_transition_time).total_seconds() >= 500, "it has been ready all the time"


async def test_a_node_that_was_deleted_is_not_made_again_by_its_heartbeat() -> None:
    async with box(nodes=2) as one:
        await one.client.delete(Node, "node-2")
        for _ in range(10):
            await one.clock.advance(10)
        assert [node.metadata.name for node in await one.client.list(Node)] == ["node-1"]


async def test_a_pod_that_is_deleted_takes_its_time() -> None:
    async with box() as one:
        await one.create(terminate_after="7")
        found = await one.until(lambda pod: pod.status.phase == "Running")
        begun = one.clock.monotonic()
        await one.client.delete(found)
        await one.clock.advance(6.5)
        assert (await one.pod()).metadata.deletion_timestamp is not None
        await one.clock.advance(1)
        with pytest.raises(NotFound):
            await one.pod()
        assert one.clock.monotonic() - begun == 7.5


async def test_stages_are_for_simulated_pods_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stages are for simulated pods"):
        Cluster(workloads=True, pods="none", stages=[tmp_path])


async def test_by_the_machines_clock_it_is_quick() -> None:
    async with Cluster(workloads=True, speed=50) as cluster:
        one = Box(cluster, ManualClock())
        await one.create("OnFailure", exit_code="1,1,0", run_for="1")
        found = await eventually(one.pod, lambda pod: pod.status.phase == "Succeeded", timeout=60)
        assert restarts(found) == 2
        await cluster.client.delete(ref(Pod, "p", namespace="default"))

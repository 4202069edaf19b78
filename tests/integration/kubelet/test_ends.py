"""However the server ends, nothing that it started is left; and what a container may take is bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from flyball import sync
from flyball.api import DynamicObject, to_dict
from flyball.client.config import load_config
from flyball.clock import ManualClock
from flyball.controlplane.apiserver.kubelets import LogOptions
from flyball.controlplane.kubelet.process import Bounds, Limits, Processes
from flyball.k8s.core.v1 import Pod
from flyball.testing import Cluster, eventually

PATIENCE = 60.0
READY = "Ctrl-C ends it."


def pod(name: str, *command: str, image: str = "busybox", **more: Any) -> DynamicObject:
    """A Pod of one container that runs once."""
    container = {"name": "main", "image": image, "command": list(command), **more.pop("container", {})}
    spec = {"restartPolicy": "Never", "containers": [container], **more}
    metadata = {"name": name, "namespace": "default"}
    return DynamicObject({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def running(mark: str) -> list[int]:
    """The processes of this machine that carry a mark in their environment or on their command line."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


def folders(place: Path) -> list[Path]:
    return list(place.glob("flyball-pods-*"))


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """Where temporary folders are made: other tests make some at the same time. Its path is short, for socket files."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


async def phase(client: Any, name: str, *wanted: str) -> Pod:
    return await eventually(
        lambda: client.get(Pod, name, namespace="default"),
        lambda found: found.status.phase in wanted,
        timeout=PATIENCE,
    )


@contextmanager
def up(home: Path, *words: str) -> Generator[tuple[subprocess.Popen[str], sync.Client]]:
    """`flyball up --pods=process`, and a client of it."""
    kubeconfig = home / "kubeconfig"
    environment = {**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", "from flyball.cli import main; main()", "up", "--pods=process", "--port=0"]
    with subprocess.Popen(
        [*command, f"--kubeconfig={kubeconfig}", *words], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            assert any(READY in line for line in process.stdout)
            with sync.Client(load_config(kubeconfig)) as client:
                yield process, client
        finally:
            process.kill()


async def soon(probe: Callable[[], bool]) -> None:
    await eventually(probe, timeout=PATIENCE)


SCRIPT = "sleep 1000 & setsid sleep 1000 & (trap '' TERM HUP; while :; do sleep 0.1; done)"


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_nothing_is_left_of_a_server_that_ends(tmp_path: Path, place: Path, number: signal.Signals) -> None:
    mark = uuid4().hex
    with up(tmp_path) as (process, client):
        client.create(pod("work", "sh", "-c", SCRIPT, container={"env": [{"name": "MARK", "value": mark}]}))
        await soon(lambda: len(running(mark)) >= 4)
        assert len(folders(place)) == 1
        process.send_signal(number)
        process.wait(60)
        await soon(lambda: not running(mark))
        await soon(lambda: not folders(place))


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
async def test_nothing_is_left_when_the_guard_is_killed() -> None:
    mark = uuid4().hex
    async with Cluster(workloads=True, pods="process") as cluster:
        others = 30  # whose descriptors the guard has too
        env = {"env": [{"name": "MARK", "value": mark}]}
        for number in range(others):
            await cluster.client.create(pod(f"other-{number}", "sleep", "1000", container=env))
        await cluster.client.create(pod("work", "sh", "-c", SCRIPT, container=env))
        await soon(lambda: len(running(mark)) >= others + 4)
        guards = [one for one in running("_guard.py") if _parent(one) == os.getpid()]
        assert len(guards) == 1
        os.kill(guards[0], signal.SIGKILL)
        await soon(lambda: not running(mark))
        lost = await phase(cluster.client, "work", "Failed")
        assert terminated(lost)["exitCode"] == 137
        await cluster.client.create(pod("next", "echo", "works"))
        await phase(cluster.client, "next", "Succeeded")


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def terminated(found: Pod) -> dict[str, Any]:
    return to_dict(found)["status"]["containerStatuses"][0]["state"]["terminated"]


async def test_pods_of_an_earlier_life_have_failed(tmp_path: Path) -> None:
    data = tmp_path / "state.db"
    with up(tmp_path, f"--data={data}") as (process, client):
        client.create(pod("long", "sleep", "1000", restartPolicy="Always"))
        client.create(pod("done", "true"))
        client.create(pod("waits", image="nginx"))
        await eventually(
            lambda: {one.metadata.name: one.status.phase for one in client.list(Pod)},
            lambda phases: phases == {"long": "Running", "done": "Succeeded", "waits": "Pending"},
            timeout=PATIENCE,
        )
        process.kill()
        process.wait(60)
    with up(tmp_path, f"--data={data}") as (_, client):
        await eventually(
            lambda: {one.metadata.name: one.status.phase for one in client.list(Pod)},
            lambda phases: phases == {"long": "Failed", "done": "Succeeded", "waits": "Pending"},
            timeout=PATIENCE,
        )
        lost = terminated(client.get(Pod, "long"))
        assert (lost["exitCode"], lost["reason"]) == (137, "ContainerStatusUnknown")
        assert terminated(client.get(Pod, "done"))["exitCode"] == 0
        client.delete(Pod, "long")
        client.delete(Pod, "waits")
        await eventually(lambda: len(client.list(Pod)), lambda left: left == 1, timeout=PATIENCE)


async def test_files_go_with_the_pod_and_the_cluster(place: Path) -> None:
    async with Cluster(workloads=True, pods="process") as cluster:
        (folder,) = folders(place)
        assert folder.stat().st_mode & 0o777 == 0o700
        await cluster.client.create(pod("work", "true"))
        done = await phase(cluster.client, "work", "Succeeded")
        kept = folder / "node-1" / "pods" / done.metadata.uid
        assert kept.exists()
        assert not (kept / "volumes").exists()
        await cluster.client.delete(Pod, "work", namespace="default")
        await soon(lambda: not kept.exists())
    assert not folders(place)


async def test_a_flood_of_output_takes_bounded_room(place: Path) -> None:
    bounds = Bounds(size=64 * 1024, files=2)
    async with Cluster(workloads=True, pods="process", processes=Processes(limits=Limits(logs=bounds))) as cluster:
        flood = "head -c 20000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo the end"
        await cluster.client.create(pod("flood", "sh", "-c", flood))
        done = await phase(cluster.client, "flood", "Succeeded")
        kubelet = cluster.embedded.server.kubelets.of("node-1")
        assert kubelet is not None
        told = b"".join([part async for part in kubelet.logs(to_dict(done), LogOptions("main"))])
        assert told.endswith(b"the end\n")
        assert 64 * 1024 * 0.5 < len(told) < 2 * 64 * 1024
        (folder,) = folders(place)
        assert sum(file.stat().st_size for file in folder.rglob("*.log*")) <= 2 * 64 * 1024


async def test_a_fork_bomb_is_contained() -> None:
    mark = uuid4().hex
    async with Cluster(workloads=True, pods="process", processes=Processes(limits=Limits(pids=20))) as cluster:
        if not await limited(cluster):
            pytest.skip("nothing counts processes here: no control group and no user namespace")
        bomb = "i=0; while test $i -lt 60; do sleep 1000 & i=$((i+1)); done; wait"
        await cluster.client.create(
            pod("bomb", "sh", "-c", bomb, container={"env": [{"name": "MARK", "value": mark}]}, restartPolicy="Never")
        )
        await phase(cluster.client, "bomb", "Failed", "Running")
        await eventually(lambda: len(running(mark)), lambda count: count <= 20, timeout=PATIENCE)
        await cluster.client.delete(Pod, "bomb", namespace="default", grace_period=0)
        await soon(lambda: not running(mark))


async def limited(cluster: Cluster) -> bool:
    """Tell whether anything counts the processes of a container here."""
    script = "i=0; while test $i -lt 40; do sleep 5 & i=$((i+1)); done; kill %1; exit 0"
    await cluster.client.create(pod("probe", "sh", "-c", script))
    found = await phase(cluster.client, "probe", "Failed", "Succeeded")
    return terminated(found)["exitCode"] != 0


async def test_who_does_not_end_is_ended() -> None:
    clock = ManualClock()
    mark = uuid4().hex
    async with Cluster(workloads=True, pods="process", clock=clock) as cluster:
        env = {"env": [{"name": "MARK", "value": mark}]}
        stubborn = "trap '' TERM; touch /tmp/up; while :; do sleep 0.02; done"
        await cluster.client.create(pod("work", "sh", "-c", stubborn, container=env))
        await phase(cluster.client, "work", "Running")
        await cluster.client.delete(Pod, "work", namespace="default", grace_period=0)
        await soon(lambda: not running(mark))


async def test_a_job_is_complete_soon() -> None:
    async with Cluster(workloads=True, pods="process") as cluster:
        spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [_true()]}}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": spec}
        await cluster.client.create(DynamicObject({**job, "metadata": {"name": "work", "namespace": "default"}}))
        from flyball.k8s.batch.v1 import Job

        await eventually(
            lambda: cluster.client.get(Job, "work", namespace="default"),
            lambda found: any(one.type == "Complete" for one in found.status.conditions or ()),
            timeout=PATIENCE,
        )


def _true() -> dict[str, Any]:
    return {"name": "main", "image": "busybox", "command": ["true"]}


async def test_trouble_with_the_server_is_survived() -> None:
    clock = ManualClock()
    async with Cluster(workloads=True, pods="process", clock=clock) as cluster:
        cluster.faults.status(500, verb="list", resource="services", first=1)
        cluster.faults.status(503, verb="patch", resource="pods", subresource="status", first=3)
        cluster.faults.cut_after_commit(verb="patch", resource="pods", subresource="status", skip=3, first=1)
        cluster.faults.status(500, verb="delete", resource="pods", skip=1, first=2)
        await cluster.client.create(pod("work", "echo", "works"))

        async def done() -> bool:
            await clock.advance(1)
            found = await cluster.client.get(Pod, "work", namespace="default")
            return found.status.phase == "Succeeded"

        await eventually(done, timeout=PATIENCE)
        await cluster.client.delete(Pod, "work", namespace="default")

        async def gone() -> bool:
            await clock.advance(1)
            return not list(await cluster.client.list(Pod))

        await eventually(gone, timeout=PATIENCE)

"""Whatever happens to the process, the next one mends it; and the status is nobody's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from flyball import Context
from flyball.api import to_dict
from flyball.client import MergePatch, ref
from flyball.controller import Controller
from flyball.errors import NotFound
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import Cluster, eventually, install, running

from myownshell.api import MyOwnShell, MyOwnShellSpec, MyOwnShellStatus
from myownshell.controller import operator
from myownshell.lifetime import RENEW

from .conftest import in_the_box
from .world import NAME, Process, When, World

pytestmark = pytest.mark.capability("S10")
scenario = pytest.mark.scenario


@scenario("myownshell-7")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_7_half_way_crash(world: World, when: When) -> None:
    async with world.operator():
        await world.begun()
    process = Process(1, when)
    await world.change(MyOwnShell, size=5)
    async with world.operator(process=process):
        await world.until(lambda: _done(process.dead.is_set()))
    assert process.writes == [f"PATCH /apps/v1/namespaces/{world.namespace}/deployments/{NAME}"]
    assert ((await world.settings()).data or {})["replicas"] == "3"
    async with world.operator():
        await world.replicas(5)
        await world.noted(5)
        assert await world.warnings() == []


async def _done(value: bool) -> bool:
    return value


def plain(obj: Any) -> dict[str, Any]:
    """An object without what differs from run to run."""
    found = to_dict(obj)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        found["metadata"].pop(name, None)
    for owner in found["metadata"].get("ownerReferences", []):
        owner.pop("uid")
    for name in [one for one in found["metadata"].get("annotations", {}) if one.endswith(("renewed-at", "intent"))]:
        found["metadata"]["annotations"][name] = "some"
    for condition in found.get("status", {}).get("conditions", []):
        condition.pop("lastTransitionTime")
    found.get("status", {}).pop("expiresAt", None)
    return found


class Life:
    """A shell's life: made, scaled, renewed, deleted; and what is there at its height and after it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.height: list[dict[str, Any]] = []
        self.uids: set[str] = set()

    async def there(self) -> list[dict[str, Any]]:
        kinds: list[Any] = [MyOwnShell, Deployment, ConfigMap]
        found = [one for kind in kinds for one in await self.world.client.list(kind, namespace="default")]
        return sorted((plain(one) for one in found if "kube" not in one.metadata.name), key=str)

    async def story(self) -> None:
        world = self.world
        if not self.height:
            try:
                await world.shell()
            except NotFound:
                await world.make(lifetime_seconds=3600)
            if (await world.shell()).spec.size == 3:
                await world.noted(3)
                self.uids.add((await world.deployment()).metadata.uid)
                await world.change(MyOwnShell, size=5)
            await world.replicas(5)
            await world.noted(5)
            await world.patch(MyOwnShell, {"metadata": {"annotations": {RENEW: "please"}}})
            await world.until(world.settings, lambda one: one.metadata.annotations.get(RENEW) == "please")
            await world.until(self.is_told)
            self.uids.add((await world.deployment()).metadata.uid)
            self.height = await self.there()
            await world.remove()
        await world.gone(MyOwnShell)

    async def is_told(self) -> bool:
        shell = await self.world.shell()
        renewed = (shell.status.expires_at, shell.status.observed_generation)
        return renewed[0] is not None and renewed[1] == shell.metadata.generation and shell.status.is_false("Degraded")

    async def live(self, process: Process, made: Callable[[], Controller[MyOwnShell]] = operator) -> None:
        """Until the story is told; when the process dies on the way, another one goes on."""
        for one in (process, Process()):
            async with self.world.operator(made(), process=one):
                await _first(self.story, one.dead)
            if not one.dead.is_set():
                return


async def _first(story: Callable[[], Awaitable[None]], dead: asyncio.Event) -> None:
    telling, dying = asyncio.ensure_future(story()), asyncio.ensure_future(dead.wait())
    await asyncio.wait([telling, dying], return_when=asyncio.FIRST_COMPLETED)
    for one in (telling, dying):
        if not one.done():
            one.cancel()
    await asyncio.gather(telling, dying, return_exceptions=True)
    if not dead.is_set():
        telling.result()


async def lived(process: Process, made: Callable[[], Controller[MyOwnShell]] = operator) -> Life:
    async with in_the_box(workloads=False) as world:
        life = Life(world)
        await life.live(process, made)
        await world.gone(Deployment)
        await world.gone(ConfigMap)
        return life


@pytest.mark.capability("S17")
async def test_the_matrix() -> None:
    """Cut at each write, before it and after it: the end is the same, nothing is made twice, nothing is left."""
    whole = Process()
    wanted = await lived(whole)
    assert len(whole.writes) >= 10, whole.writes
    assert len(wanted.uids) == 1
    for point in range(1, len(whole.writes) + 1):
        for when in ("before", "after"):
            words = f"cut {when} write {point}: {whole.writes[point - 1]}"
            process = Process(point, when)
            life = await lived(process)
            assert process.dead.is_set(), words
            assert life.height == wanted.height, words
            assert len(life.uids) == 1, words


@pytest.mark.capability("S7")
async def test_without_its_status_it_does_the_same() -> None:
    kept, wiped = Process(), Process()
    with_status = await lived(kept)
    without = await lived(wiped, forgetful)
    assert wiped.changes == kept.changes
    assert without.height == with_status.height


def forgetful() -> Controller[MyOwnShell]:
    """The operator, to which each pass shows an empty status."""
    made = operator()
    for step in (made.step, *(one.step for one in made.finalizers)):
        step.function = _wiped_before(step.function)
    return made


def _wiped_before(function: Callable[[MyOwnShell, Context], Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def wiped(shell: MyOwnShell, ctx: Context) -> Any:
        shell.status = MyOwnShellStatus()
        return await function(shell, ctx)

    return wiped


async def test_a_status_that_was_wiped_comes_back(box: World) -> None:
    async with box.operator() as manager:
        await box.begun()
        await box.settled(manager)
        before = await box.shell()
        place = ref(MyOwnShell, NAME, namespace="default")
        await box.client.patch(place, MergePatch({"status": None}), subresource="status")
        assert (await box.shell()).status.shells == []
        await box.patch(MyOwnShell, {"metadata": {"annotations": {"example.org/look": "again"}}})
        found = await box.until(box.shell, lambda one: one.status.shells)
    assert plain(found)["status"] == plain(before)["status"]


@pytest.mark.capability("S7")
async def test_a_second_look_changes_nothing(box: World) -> None:
    """After each step of a shell's life a new process finds nothing to write."""

    async def nothing_to_do() -> None:
        process = Process()
        async with box.operator(process=process) as manager:
            await box.settled(manager)
        assert process.writes == []

    async with box.operator() as manager:
        await box.begun(lifetime_seconds=60)
        await box.settled(manager)
    await nothing_to_do()
    async with box.operator() as manager:
        await box.change(MyOwnShell, size=1)
        await box.noted(1)
        await box.settled(manager)
    await nothing_to_do()
    await box.advance(60)
    async with box.operator() as manager:
        await box.replicas(0)
        await box.settled(manager)
    await nothing_to_do()


async def test_a_thousand_at_once() -> None:
    async with Cluster() as cluster:
        client = cluster.client
        await install(client, MyOwnShell)
        async with running(client, operator(), definitions=False, clock=cluster.clock):
            await asyncio.gather(
                *(
                    client.create(MyOwnShell.new(f"shell-{n}", namespace="default", spec=MyOwnShellSpec(size=1)))
                    for n in range(1000)
                )
            )
            await _all(lambda: len(cluster.requests.of("patch", "configmaps")))
            await eventually(lambda: _told(cluster), lambda found: found == 1000, timeout=120)
        for kind in (Deployment, ConfigMap):
            assert await _count(cluster, kind) == 1000
        for resource in ("deployments", "configmaps"):
            made = [one for one in cluster.requests.of("patch", resource) if one.name.startswith("shell-")]
            assert len(made) == 1000, "none was written twice"


async def _all(done: Callable[[], int]) -> None:
    """Wait for a thousand, however long it takes while there is progress."""
    seen = 0
    while seen < 1000:
        seen = await eventually(done, lambda found: found > seen, timeout=60)  # noqa: B023 - asked before it changes


async def _count(cluster: Cluster, kind: type[Any]) -> int:
    found = await cluster.client.list(kind, namespace="default")
    return sum(1 for one in found if one.metadata.name.startswith("shell-"))


async def _told(cluster: Cluster) -> int:
    found = await cluster.client.list(MyOwnShell, namespace="default")
    return sum(1 for one in found if one.status.is_false("Degraded"))

"""The worlds in which scenarios are played, and the words in which they are told."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
import yaml
from flyball.api import DynamicObject
from flyball.client import Client, HttpRequest, HttpResponse, Interceptor, MergePatch, ref
from flyball.client.transport import Send
from flyball.clock import Clock, ManualClock
from flyball.controller import Controller
from flyball.errors import ConnectionLost, NotFound
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap, Container, Pod, PodSpec, PodStatus
from flyball.k8s.events.v1 import Event
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.manager import Manager, Options
from flyball.testing import Cluster, eventually, running
from flyball.testing.binaries import BinariesMissing, find_binaries

from myownshell.api import MyOwnShell, MyOwnShellSpec
from myownshell.children import selector_of
from myownshell.controller import operator

T = TypeVar("T")
When = Literal["before", "after"]

_QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0, grace=0.0)

NAME = "myownshell-sample"
ACCOUNT = "system:serviceaccount:myownshell-system:myownshell"
"""Whom config/rbac gives its rights."""
USER = "myownshell"
"""As whom the operator works, so that what it does can be told from what others do."""


class Process:
    """A life of the operator that is written down, and may end at one of its writes.

    `point` counts from 1 (0: never); it ends before the write is sent, or after it was done and before its answer came.
    """

    def __init__(self, point: int = 0, when: When = "before") -> None:
        self.point, self.when = point, when
        self.writes: list[str] = []
        self.dead = asyncio.Event()

    async def __call__(self, request: HttpRequest, send: Send) -> HttpResponse:
        """Reads pass while it lives; events for people are no writes of this kind."""
        if self.dead.is_set():
            raise ConnectionLost("the process is dead")
        if request.method == "GET" or "events.k8s.io" in request.path:
            return await send(request)
        self.writes.append(f"{request.method} {request.path.rpartition('/apis')[2].rpartition('/api')[2]}")
        if len(self.writes) != self.point:
            return await send(request)
        if self.when == "after":
            await (await send(request)).read()
        self.dead.set()
        raise ConnectionLost("the process is dead")

    @property
    def changes(self) -> list[str]:
        """Its writes but those of the status."""
        return [one for one in self.writes if not one.endswith("/status")]


def documents(folder: str) -> Iterator[DynamicObject]:
    """Everything in the files of a folder of config/, in the order of `kubectl apply -f`."""
    for path in sorted((Path(__file__).parents[1] / "config" / folder).glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            yield DynamicObject(one)


@dataclass
class World:
    """A cluster, a namespace in it, and a clock that is turned where it can be turned."""

    client: Client
    clock: Clock
    namespace: str
    kubeconfig: Callable[[], Path]
    cluster: Cluster | None
    """The cluster in the box, if it is one."""
    plays: bool
    """Deployments progress: there are controllers and a kubelet."""
    way_in: Callable[[Sequence[Interceptor]], Client]
    """The operator's own way in, which can be looked upon and cut."""

    # -- time

    async def until(
        self, probe: Callable[[], Awaitable[T]], right: Callable[[T], object] = bool, *, step: float = 0.02
    ) -> T:
        """Wait until the answer is right, turning the clock in small steps if it can be turned."""
        if not isinstance(self.clock, ManualClock):
            return await eventually(probe, right, timeout=60)
        seen: Any = None
        for _ in range(1000):
            try:
                seen = await probe()
            except NotFound as missing:
                seen = missing
            else:
                if right(seen):
                    return seen
            await self.clock.advance(step)
        raise AssertionError(f"not so after 1000 steps of {step} s; last seen: {seen}")

    async def advance(self, seconds: float) -> None:
        """Turn the clock."""
        assert isinstance(self.clock, ManualClock)
        await self.clock.advance(seconds)

    async def settled(self, manager: Manager) -> None:
        """Wait until the operator has nothing to do: neither a key to work on nor a write that comes back."""

        async def numbers() -> float:
            return manager.metrics.value(
                "controller_runtime_reconcile_total", controller="myownshell", result="success"
            )

        before = -1.0
        while before != (before := await numbers()):
            for _ in range(10):
                await self.advance(0.05)

    # -- the operator

    @asynccontextmanager
    async def operator(
        self, made: Controller[MyOwnShell] | None = None, *, process: Process | None = None
    ) -> AsyncGenerator[Manager]:
        """The operator at work: every write beyond one in a pass is an error."""
        made = made or operator()
        made.options = replace(made.options, write_budget=1)
        async with (
            self.way_in([process] if process is not None else []) as client,
            running(client, made, clock=self.clock, definitions=False, options=_QUIET) as manager,
        ):
            yield manager

    # -- what there is

    async def make(self, name: str = NAME, *, annotations: dict[str, str] | None = None, **spec: Any) -> MyOwnShell:
        spec.setdefault("size", 3)
        wanted = MyOwnShell.new(name, namespace=self.namespace, spec=MyOwnShellSpec(**spec), annotations=annotations)
        return await self.client.create(wanted)

    async def shell(self, name: str = NAME) -> MyOwnShell:
        return await self.client.get(MyOwnShell, name, namespace=self.namespace)

    async def deployment(self) -> Deployment:
        return await self.client.get(Deployment, NAME, namespace=self.namespace)

    async def settings(self) -> ConfigMap:
        return await self.client.get(ConfigMap, NAME, namespace=self.namespace)

    async def pods(self) -> list[Pod]:
        return list(await self.client.list(Pod, namespace=self.namespace, labels={"app": "myownshell"}))

    async def events(self, *reasons: str) -> list[Event]:
        """What was told about the shell, for these reasons, in the order of telling."""
        found = await self.client.list(Event, namespace=self.namespace)
        about = [one for one in found if one.regarding is not None and one.regarding.kind == "MyOwnShell"]
        told = sorted(about, key=lambda one: str(one.event_time))
        return [one for one in told if not reasons or one.reason in reasons]

    async def told(self) -> list[str]:
        """The reasons of all events about the shell."""
        return [str(one.reason) for one in await self.events()]

    async def warnings(self) -> list[Event]:
        return [one for one in await self.events() if one.type == "Warning"]

    # -- what people do

    async def change(self, kind: type[Any], **spec: Any) -> None:
        """Patch the spec of the object named like the shell."""
        await self.patch(kind, {"spec": spec})

    async def patch(self, kind: type[Any], what: dict[str, Any]) -> None:
        await self.client.patch(ref(kind, NAME, namespace=self.namespace), MergePatch(what))

    async def remove(self, kind: type[Any] = MyOwnShell, **options: Any) -> None:
        await self.client.delete(kind, NAME, namespace=self.namespace, **options)

    async def kubectl(self, *words: str) -> str:
        """What kubectl prints."""
        try:
            program = find_binaries().path("kubectl")
        except BinariesMissing as missing:
            pytest.skip(str(missing))
        command = [str(program), f"--kubeconfig={self.kubeconfig()}", f"--namespace={self.namespace}", *words]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    # -- what scenarios wait for

    async def replicas(self, number: int) -> Deployment:
        return await self.until(self.deployment, lambda one: one.spec.replicas == number)

    async def noted(self, number: int) -> ConfigMap:
        return await self.until(self.settings, lambda one: (one.data or {}).get("replicas") == str(number))

    async def condition(self, type: str, status: str, reason: str) -> MyOwnShell:
        def right(one: MyOwnShell) -> bool:
            found = one.status.condition(type)
            return found is not None and (found.status, found.reason) == (status, reason)

        return await self.until(self.shell, right)

    async def begun(self, size: int = 3, **spec: Any) -> MyOwnShell:
        """A shell that is made, with both children; and ready, where that happens."""
        made = await self.make(size=size, **spec)
        await self.replicas(size)
        await self.noted(size)
        if self.plays and size:
            await self.condition("Available", "True", "ShellsReady")
            return await self.condition("Progressing", "False", "Stable")
        return made

    async def gone(self, kind: type[Any], name: str = NAME) -> None:
        async def is_gone() -> bool:
            try:
                await self.client.get(kind, name, namespace=self.namespace)
            except NotFound:
                return True
            return False

        await self.until(is_gone)

    async def ready_pod(self, name: str, shell: str = NAME) -> Pod:
        """A pod of a shell that nobody looks after."""
        labels = {"app": "myownshell", "myownshell_cr": shell}
        made = await self.client.create(
            Pod(
                metadata=ObjectMeta(name=name, namespace=self.namespace, labels=labels),
                spec=PodSpec(containers=[Container(name="busybox", image="busybox")], node_name="nowhere"),
            )
        )
        made.status = PodStatus(phase="Running")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return await self.client.patch(
            ref(Pod, name, namespace=self.namespace), MergePatch({"status": status}), subresource="status"
        )


SELECTOR = selector_of(MyOwnShell.new(NAME))

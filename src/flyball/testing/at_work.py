"""Controllers at work in a test: `async with running(client, reconcile) as manager`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from flyball.api import DynamicObject, Resource, crd_of
from flyball.client import Client
from flyball.clock import Clock, RealClock
from flyball.controller.definition import Controller
from flyball.k8s.apiextensions.v1 import CustomResourceDefinition
from flyball.manager.election import Election
from flyball.manager.manager import Manager
from flyball.manager.options import Options
from flyball.testing.eventually import NeverHappened, eventually

__all__ = ["install", "running"]

_PATIENCE = 10.0
_QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)


async def install(client: Client, *kinds: type[Resource]) -> None:
    """Make the cluster serve these kinds; classes of one kind are its versions."""
    versions: dict[tuple[str, str], list[type[Resource]]] = {}
    for one in kinds:
        versions.setdefault((one.kind_options.group, one.kind_options.kind), []).append(one)
    for classes in versions.values():
        definition = crd_of(*classes)
        await client.apply(DynamicObject(definition), force=True, field_manager="flyball-testing")
        await _wait_established(client, definition["metadata"]["name"])


async def _wait_established(client: Client, name: str) -> None:
    await eventually(lambda: client.get(CustomResourceDefinition, name), _is_established)


def _is_established(definition: CustomResourceDefinition) -> bool:
    status = definition.status
    return any(one.type == "Established" and one.status == "True" for one in (status and status.conditions) or [])


@asynccontextmanager
async def running(
    client: Client,
    *controllers: Controller[Any],
    leader_election: bool | Election = False,
    definitions: bool = True,
    wait: bool = True,
    options: Options = _QUIET,
    clock: Clock | None = None,
) -> AsyncGenerator[Manager]:
    """Run controllers inside; they end with the block, and what went wrong in the manager is raised there.

    `definitions`: the controllers' own kinds are installed first. `wait`: the block begins when everything is listed
    and the controllers work; a cluster with faults may never get there. Nothing listens, nothing is watched over;
    `options` say otherwise.
    """
    if definitions:
        await install(client, *_own_kinds(controllers))
    async with Manager(
        client, controllers=controllers, leader_election=leader_election, options=options, clock=clock
    ) as manager:
        if wait:
            await _until_at_work(manager)
        yield manager


async def _until_at_work(manager: Manager) -> None:
    try:
        await eventually(lambda: manager.at_work, timeout=_PATIENCE, clock=RealClock())
    except NeverHappened:
        asked = await manager.ready.ask()
        why = "; ".join(f"{name}: {said}" for name, said in asked.items() if said) or "they were not started"
        raise NeverHappened(f"the controllers did not begin to work within {_PATIENCE:g} s: {why}") from None


def _own_kinds(controllers: tuple[Controller[Any], ...]) -> list[type[Resource]]:
    """The classes of the author's that the controllers reconcile, own or watch."""
    found: list[Any] = [source.given for one in controllers for source in one.sources]
    return [one for one in dict.fromkeys(found) if _is_custom(one)]


def _is_custom(kind: Any) -> bool:
    if not (isinstance(kind, type) and issubclass(kind, Resource)):
        return False
    options = getattr(kind, "kind_options", None)
    return options is not None and not options.builtin

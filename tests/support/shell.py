"""What must be so of `examples/my_own_shell.py` on any cluster; somebody plays the Deployment's status."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from flyball.client import Client
from flyball.errors import ApiError
from flyball.k8s.apps.v1 import Deployment
from flyball.testing import eventually, running

__all__ = ["SHELL", "first_program", "shell_follows_its_size"]

SHELL = Path(__file__).parents[2] / "examples" / "my_own_shell.py"


def first_program() -> ModuleType:
    """The program as a module of its own."""
    spec = importlib.util.spec_from_file_location("my_own_shell", SHELL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def deployments_become_ready(client: Client) -> AsyncGenerator[None]:
    """Where no controller does it: as many replicas as wanted are ready."""

    async def play() -> None:
        while True:
            for one in await client.list(Deployment):
                if one.status.ready_replicas != one.spec.replicas:
                    one.status.replicas = one.status.ready_replicas = one.spec.replicas
                    with suppress(ApiError):
                        await client.patch(one, subresource="status")
            await asyncio.sleep(0.01)

    player = asyncio.create_task(play())
    try:
        yield
    finally:
        player.cancel()
        await asyncio.gather(player, return_exceptions=True)


async def shell_follows_its_size(client: Client) -> None:
    """Design 1.4."""
    program = first_program()
    async with running(client, program.reconcile), deployments_become_ready(client):
        await client.create(program.MyOwnShell.new("demo", spec=program.MyOwnShellSpec(size=3)))
        await eventually(
            lambda: client.get(program.MyOwnShell, "demo"), lambda shell: shell.status.ready == 3, timeout=30
        )
        deployment = await client.get(Deployment, "demo")
        assert deployment.metadata.owner_references is not None
        owner = deployment.metadata.owner_references[0]
        assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == (
            "MyOwnShell",
            "demo",
            True,
            True,
        )
        await eventually(lambda: _resized(client, program.MyOwnShell, 1), timeout=30)
        await eventually(
            lambda: client.get(program.MyOwnShell, "demo"), lambda shell: shell.status.ready == 1, timeout=30
        )
        await client.delete(deployment)
        again = await eventually(
            lambda: client.get(Deployment, "demo"),
            lambda found: found.metadata.uid != deployment.metadata.uid,
            timeout=30,
        )
        assert again.spec.replicas == 1


async def _resized(client: Client, kind: Any, size: int) -> bool:
    """Change the size as a person does; the operator may be writing the status meanwhile (`Conflict`: once more)."""
    shell = await client.get(kind, "demo")
    shell.spec.size = size
    await client.patch(shell)
    return True

"""Launch once: one instance in a cloud for each object, however often and wherever the operator dies.

The cloud is no Kubernetes: an instance has no name that we choose, and a launch whose answer got lost may have worked.
So the launch carries a nonce, and the nonce is written down before the launch (`ctx.workspace`, `intent`). A pass that
finds an open intent repeats the launch with the same nonce; the cloud answers with the same instance.

Should the notebook be lost too, the cloud is asked for instances that carry the object's uid.

    python examples/fake_cloud.py 8099 &
    CLOUD_URL=http://127.0.0.1:8099 python examples/launch_once.py
"""

from __future__ import annotations

import os
from typing import Any

import aiohttp

from flyball import Context, Resource, Result, Spec, Status, controller, run
from flyball.api import Model
from flyball.controller import Controller, workspace_kind

CHECK = 60.0
"""Seconds after which an instance is looked at again: a cloud cannot be watched."""


class InstanceSpec(Spec):
    size: str = "small"
    """What to launch; a change after the launch is not carried out."""


class InstanceStatus(Status):
    id: str = ""
    """The cloud's name of the instance."""


class Instance(Resource, group="cloud.example.org", version="v1"):
    """One machine in the cloud."""

    spec: InstanceSpec
    status: InstanceStatus


class Notes(Model):
    """What no child can tell."""

    id: str = ""


InstanceWorkspace = workspace_kind(Instance)


class Cloud:
    """The cloud's API, as far as it is needed."""

    def __init__(self, url: str) -> None:
        """Where it is."""
        self.url = url

    async def launch(self, nonce: str, *, size: str, owner: str) -> str:
        """Start an instance; the same nonce starts none twice."""
        answer = await self.request("POST", "/instances", {"nonce": nonce, "size": size, "owner": owner})
        return str(answer["id"])

    async def find(self, owner: str) -> list[str]:
        """The instances that were launched for an object."""
        return [str(one["id"]) for one in await self.request("GET", f"/instances?owner={owner}")]

    async def state(self, id: str) -> str:
        """`running`, or `gone`."""
        answer = await self.request("GET", f"/instances/{id}")
        return str(answer["state"]) if answer else "gone"

    async def terminate(self, id: str) -> None:
        """End an instance; one that is gone is fine."""
        await self.request("DELETE", f"/instances/{id}")

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        """One request; errors are the reconciler's, who tries again."""
        async with aiohttp.ClientSession() as session, session.request(method, self.url + path, json=body) as answer:
            if answer.status == 404:
                return None
            answer.raise_for_status()
            return await answer.json() if answer.status != 204 else None


class LaunchOnce:
    """The reconciler."""

    def __init__(self, cloud: Cloud) -> None:
        """Which cloud."""
        self.cloud = cloud

    async def reconcile(self, instance: Instance, ctx: Context) -> Result | None:
        """Launch it if that has not happened, and say how it is."""
        id = await self._launched(instance, ctx)
        instance.status.id = id
        state = await self.cloud.state(id)
        instance.status.set_condition(
            "Ready", state == "running", reason=state.capitalize(), message=f"instance {id} is {state}"
        )
        return Result.after(CHECK)

    async def _launched(self, instance: Instance, ctx: Context) -> str:
        notes = await ctx.workspace(Notes)
        if notes.data.id:
            return notes.data.id
        if not notes.exists:
            known = await self.cloud.find(instance.metadata.uid)
            if known:  # the notebook was lost
                notes.data.id = known[0]
                await notes.save()
                return notes.data.id
        intent = await notes.intent("launch")
        notes.data.id = await intent.call(self.cloud.launch, size=instance.spec.size, owner=instance.metadata.uid)
        await notes.done("launch")
        return notes.data.id

    async def finalize(self, instance: Instance, ctx: Context) -> None:
        """End what was launched; a launch whose answer was lost is found by the object's uid."""
        for id in await self.cloud.find(instance.metadata.uid):
            await self.cloud.terminate(id)


def launch_once(cloud: Cloud) -> Controller[Instance]:
    """The operator, for a cloud."""
    return controller(Instance, conditions=["Ready"], events_on=["Ready"])(LaunchOnce(cloud))


if __name__ == "__main__":
    run(launch_once(Cloud(os.environ.get("CLOUD_URL", "http://127.0.0.1:8099"))))

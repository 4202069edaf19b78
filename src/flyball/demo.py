"""`make demo`: what Flyball does, shown in a terminal in a few seconds. It leaves nothing behind."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any

from flyball.api import Ge, Le, PrintColumn, Resource, Spec, Status, crd_of

__all__ = ["main"]


class LampSpec(Spec):
    """What somebody wants of a lamp."""

    brightness: Annotated[int, Ge(0), Le(100)] = 50
    """How bright the lamp shall shine, in percent."""
    room: str


class LampStatus(Status):
    """What the lamp does."""

    shining: bool = False


class Lamp(
    Resource,
    group="demo.flyball.dev",
    version="v1",
    short_names=["lp"],
    columns=[
        PrintColumn("Room", ".spec.room"),
        PrintColumn("Brightness", ".spec.brightness", type="integer"),
        PrintColumn("Shining", ".status.shining", type="boolean"),
    ],
):
    """A lamp in a room."""

    spec: LampSpec
    status: LampStatus


def main() -> None:
    """Show it, and end."""
    started = time.perf_counter()
    try:
        asyncio.run(_show(_say))
    except KeyboardInterrupt:
        sys.exit(130)
    _say(f"\nAll of it took {time.perf_counter() - started:.1f} s, with nothing but Python.")
    _say("Next: `flyball up` starts a cluster for kubectl; docs/index.md says where to read on.")


def _say(text: str = "") -> None:
    print(text)  # noqa: T201 - the demonstration talks


async def _show(say: Callable[[str], None]) -> None:
    import yaml

    from flyball.api import DynamicObject
    from flyball.client import Client
    from flyball.controlplane.cluster import EmbeddedCluster

    say("A class is an API. This one, made into a CustomResourceDefinition:\n")
    crd = crd_of(Lamp)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    shown = {"kind": crd["kind"], "name": crd["metadata"]["name"], "spec": schema}
    say(_indented(yaml.safe_dump(shown, sort_keys=False)) + "\n")

    began = time.perf_counter()
    async with EmbeddedCluster() as cluster:
        ready = (time.perf_counter() - began) * 1000
        say(f"A cluster in the box, ready after {ready:.0f} ms. It gets the new kind and some lamps.\n")
        client = Client(transport=cluster.transport, field_manager="demo", namespace="default")
        await client.apply(DynamicObject(crd))
        for room, brightness in (("kitchen", 80), ("hall", 20)):
            await client.create(Lamp.new(f"{room}-lamp", spec=LampSpec(room=room, brightness=brightness)))
        await _watched(client, say)
        say("\nWhat kubectl would print:\n")
        say(_indented(await _table(cluster)))
        await _refused(client, say)
        await client.aclose()


async def _watched(client: Any, say: Callable[[str], None]) -> None:
    lamp = await client.get(Lamp, "hall-lamp")
    async with client.watch(Lamp, resource_version=lamp.metadata.resource_version) as watch:
        lamp.spec.brightness = 60
        await client.patch(lamp)
        lamp = await client.get(Lamp, "hall-lamp")
        lamp.status.shining = True
        await client.patch(lamp, subresource="status")
        say("A watch sees what changes:\n")
        seen = 0
        async for event in watch:
            name, spec, status = event.object.metadata.name, event.object.spec, event.object.status
            say(f"    {event.type:9} {name}: brightness {spec.brightness}, shining {status.shining}")
            seen += 1
            if seen == 2:
                return


async def _table(cluster: Any) -> str:
    import msgspec

    from flyball.client.transport import HttpRequest

    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    path = "/apis/demo.flyball.dev/v1/namespaces/default/lamps"
    response = await cluster.transport.send(HttpRequest("GET", path, headers=headers))
    table = msgspec.json.decode(await response.read())
    rows = [[column["name"].upper() for column in table["columnDefinitions"]]]
    rows += [["" if cell is None else str(cell) for cell in row["cells"]] for row in table["rows"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


async def _refused(client: Any, say: Callable[[str], None]) -> None:
    from flyball.errors import ApiError

    try:
        await client.create(Lamp.new("sun", spec=LampSpec(room="garden", brightness=101)))
    except ApiError as error:
        say(f"\nWhat the class does not allow is refused:\n\n    {error.message}")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines())


if __name__ == "__main__":
    main()

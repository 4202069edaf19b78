"""Lists, watches and discovery, against a real API server that is also disturbed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.realclient import CRDS, client_of, widgets_are_served
from tests.support.widgets import Widget

from flyball.client import Client, HttpRequest, HttpResponse, Send, UnknownKind, dynamic, metadata_of, raw_of
from flyball.errors import BadRequest, Expired, RequestTimeout, TransportError
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing.eventually import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real

MEGABYTE = 1 << 20


async def config_maps(c: Client, count: int, size: int = 1) -> list[str]:
    """So many ConfigMaps with the label `mine`."""
    names = [f"c{number:03}" for number in range(count)]
    text = "x" * size
    for start in range(0, count, 10):
        made = (c.create(ConfigMap.new(n, labels={"mine": ""}, data={"d": text})) for n in names[start : start + 10])
        await asyncio.gather(*made)
    return names


# -- lists


async def test_pages(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        names = await config_maps(c, 25)
        found = await c.list(ConfigMap, labels="mine", page_size=10)
        assert [cm.metadata.name for cm in found] == names
        assert [cm.kind for cm in found] == ["ConfigMap"] * 25
        sizes = [len(page) async for page in c.list(ConfigMap, labels="mine", page_size=10).pages()]
        assert sizes == [10, 10, 5]
        seen: list[str] = []
        async for cm in c.list(metadata_of(ConfigMap), labels="mine", page_size=10):
            if not seen:
                await c.create(ConfigMap.new("c9999", labels={"mine": ""}))
            seen.append(cm.metadata.name)
        assert seen == names
        everywhere = await c.list(ConfigMap, namespace="*", labels="mine", fields={"metadata.name": "c000"})
        assert c.namespace in {cm.metadata.namespace for cm in everywhere}
        old = await c.list(ConfigMap, resource_version=found.resource_version, resource_version_match="Exact")
        assert "c9999" not in {cm.metadata.name for cm in old}


async def test_a_state_that_is_thrown_away_midway(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        names = await config_maps(c, 6)
        seen: list[str] = []

        async def read_and_compact() -> None:
            async for cm in c.list(ConfigMap, labels="mine", page_size=2):
                if not seen:
                    await c.create(ConfigMap.new("z", labels={"mine": ""}))
                    await asyncio.to_thread(real_cluster.compact, restart_apiserver=True)
                seen.append(cm.metadata.name)

        with pytest.raises(Expired, match="after 2 objects had come; list again"):
            await read_and_compact()
        assert seen == names[:2]


async def test_a_whole_list_begins_again_when_its_state_is_thrown_away(real_cluster: RealCluster) -> None:
    compacted: list[bool] = []

    async def compact_once(request: HttpRequest, send: Send) -> HttpResponse:
        if any(name == "continue" for name, _ in request.query) and not compacted:
            compacted.append(True)
            await asyncio.to_thread(real_cluster.compact, restart_apiserver=True)
        return await send(request)

    async with client_of(real_cluster, interceptors=[compact_once]) as c:
        names = await config_maps(c, 6)
        found = await c.list(ConfigMap, labels="mine", page_size=2)
        assert [cm.metadata.name for cm in found] == names
        assert compacted


async def test_20_megabytes_in_one_answer(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster, timeout=60) as c:
        names = await config_maps(c, 21, MEGABYTE - 10_000)
        raws = await c.list(raw_of(ConfigMap), labels="mine", page_size=None)
        assert sum(map(len, raws)) > 20 * MEGABYTE
        found = await c.list(ConfigMap, labels="mine", page_size=None)
        assert [cm.metadata.name for cm in found] == names
        assert {len((cm.data or {})["d"]) for cm in found} == {MEGABYTE - 10_000}
        async with c.watch(ConfigMap, labels="mine") as changes:
            seen: list[str] = []
            async for change in changes:
                seen.append(change.object.metadata.name)
                if len(seen) == len(names):
                    break
        assert sorted(seen) == names


async def test_selectors_that_a_server_refuses(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        with pytest.raises(BadRequest, match=f"^list ConfigMap in {c.namespace}: .*spec.foo"):
            await c.list(ConfigMap, fields="spec.foo=1")


# -- watches


async def test_a_watch_shows_every_change(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        start = (await c.list(ConfigMap, labels="mine")).resource_version
        made = await c.create(ConfigMap.new("a", labels={"mine": ""}))
        made.data = {"x": "1"}
        made = await c.patch(made)
        await c.delete(made)
        seen: list[tuple[str, Any]] = []
        async with c.watch(ConfigMap, labels="mine", resource_version=start) as changes:
            async for change in changes:
                seen.append((change.type, change.object.data.get("x") if change.object.data else None))
                if change.type == "DELETED":
                    break
        assert seen == [("ADDED", None), ("MODIFIED", "1"), ("DELETED", "1")]
        assert int(changes.resource_version) > int(made.metadata.resource_version)


async def test_the_server_ends_a_watch_and_its_bookmark_is_where_to_go_on(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        start = (await c.list(ConfigMap)).resource_version
        async with client_of(real_cluster) as elsewhere:
            watch = c.watch(ConfigMap, resource_version=start, labels="nobody", timeout=3)
            ended = asyncio.create_task(_all(watch))
            await elsewhere.create(ConfigMap.new("a"))
            assert await ended == []
        assert int(watch.resource_version) > int(start)


async def _all(watch: Any) -> list[Any]:
    return [change async for change in watch]


async def test_initial_events(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        names = await config_maps(c, 3)
        seen: list[str] = []
        async with c.watch(metadata_of(ConfigMap), labels="mine", send_initial_events=True) as changes:
            async for change in changes:
                if change.initial_events_end:
                    break
                seen.append(change.object.metadata.name)
        assert sorted(seen) == names
        assert changes.resource_version


async def test_nothing_is_lost_over_disconnects(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c, Cutter(real_cluster) as line:
        version = (await c.list(ConfigMap, labels="mine")).resource_version
        seen: list[str] = []
        for number in range(20):
            await c.create(ConfigMap.new(f"c{number:02}", labels={"mine": ""}))
        async with Client(replace(real_cluster.config, server=line.server), namespace=c.namespace) as following:
            while len(seen) < 20:
                watch = following.watch(ConfigMap, labels="mine", resource_version=version)
                with suppress(TransportError):
                    async for change in watch:
                        seen.append(change.object.metadata.name)
                        if len(seen) % 4 == 0:
                            line.cut()
                        if len(seen) == 20:
                            break
                version = watch.resource_version
        assert line.cuts >= 5
        assert seen == [f"c{number:02}" for number in range(20)]


async def test_a_connection_that_died_silently_is_noticed(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c, Cutter(real_cluster) as line:
        await c.create(ConfigMap.new("a", labels={"mine": ""}))
        through = Client(replace(real_cluster.config, server=line.server), namespace=c.namespace)
        async with through, through.watch(ConfigMap, labels="mine", inactivity=0.5) as changes:
            stream = aiter(changes)
            assert (await anext(stream)).object.metadata.name == "a"
            line.frozen = True
            with pytest.raises(RequestTimeout, match=f"^watch ConfigMap in {c.namespace}: 127.0.0.1"):
                await anext(stream)


async def test_a_restart_ends_a_watch(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        version = (await c.list(ConfigMap)).resource_version
        following = asyncio.create_task(_all(c.watch(ConfigMap, resource_version=version, labels="nobody")))
        await asyncio.to_thread(real_cluster.restart_apiserver)
        done, _ = await asyncio.wait([following], timeout=30)
        assert done
        assert following.exception() is None or isinstance(following.exception(), TransportError)


class Cutter:
    """A TCP forwarder before the API server, which can cut its connections, or let them die without a word."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cuts = 0
        self.frozen = False
        self._target = urlsplit(cluster.server)
        self._writers: set[asyncio.StreamWriter] = set()
        self._forwards: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Cutter:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self.cut()
        self._server.close()
        await asyncio.gather(*self._forwards, return_exceptions=True)

    @property
    def server(self) -> str:
        assert self._server is not None
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, to_server = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers |= {writer, to_server}
        for source, sink in ((reader, to_server), (theirs, writer)):
            self._forwards.append(asyncio.create_task(self._carry(source, sink)))

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                if not self.frozen:
                    sink.write(data)
                    await sink.drain()
        sink.close()


async def test_a_version_from_before_a_compaction_is_expired(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        old = (await c.list(ConfigMap)).resource_version
        await config_maps(c, 3)
        await asyncio.to_thread(real_cluster.compact)
        with pytest.raises(Expired, match=f"^watch ConfigMap in {c.namespace}: .*too old resource version: {old}"):
            await _all(c.watch(ConfigMap, resource_version=old, timeout=5))


# -- discovery


@pytest.mark.capability("C1")
async def test_both_ways_of_discovery_agree(real_cluster: RealCluster) -> None:
    async def only_legacy(request: HttpRequest, send: Send) -> HttpResponse:
        return await send(replace(request, headers={**request.headers, "Accept": "application/json"}))

    async with Client(real_cluster.config) as new, Client(real_cluster.config, interceptors=[only_legacy]) as old:
        await widgets_are_served(new)
        await new.discovery.refresh()
        aggregated = {served.resource: served for served in await new.discovery.kinds()}
        legacy = {served.resource: served for served in await old.discovery.kinds()}
        assert aggregated == legacy
        assert (await new.discovery.find("deploy")).resource.group == "apps"
        assert (await new.discovery.find("widgets.example.org")).subresources == {"status", "scale"}
        assert old.discovery.failed == {}


async def test_a_kind_that_comes_later_is_found(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        late = dynamic("late.example.org/v1", "Latecomer")
        with pytest.raises(UnknownKind, match=r"does not serve late.example.org/v1 Latecomer; check"):
            await c.list(late)
        crd = await _crd_named(c)
        await c.create(crd)
        await eventually(lambda: _is_listed(c, late))
        await c.delete(CRDS, "latecomers.late.example.org")


async def _is_listed(c: Client, kind: Any) -> bool:
    return await c.list(kind) == []


async def _crd_named(c: Client) -> Any:
    await widgets_are_served(c)
    crd = await c.get(CRDS, "widgets.example.org")
    crd["metadata"] = {"name": "latecomers.late.example.org"}
    crd["spec"]["group"] = "late.example.org"
    crd["spec"]["names"] = {"kind": "Latecomer", "plural": "latecomers"}
    crd.pop("status", None)
    return crd


async def test_a_custom_kind_is_read_and_watched(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await widgets_are_served(c)
        await c.create(Widget.new("w"))
        (found,) = await c.list(Widget)
        assert (found.kind, found.api_version) == ("Widget", "example.org/v1")
        async with c.watch(Widget, resource_version="0") as changes:
            async for change in changes:
                assert change.object.metadata.uid == found.metadata.uid
                break

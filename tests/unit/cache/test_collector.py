"""The cycle collector must not stall the loop because of what is cached."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from random import Random

import pytest
from tests.soak.faulty import FaultyServer
from tests.support.cached import WIDGETS, cached

from flyball.cache import CacheOptions, InformerCache, Store
from flyball.cache import collector as subject
from flyball.client import Client
from flyball.clock import ManualClock


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_it_rests_inside_only() -> None:
    assert gc.isenabled()
    with subject.resting():
        assert not gc.isenabled()
        with subject.resting():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), subject.resting():
        _ = 1 / 0
    assert gc.isenabled()


def test_the_collector_knows_next_to_nothing_of_cached_objects() -> None:
    """A full collection looks at what is tracked; so this is what its pause depends on."""
    store = Store()
    gc.collect()
    before = len(gc.get_objects())
    for number in range(2000):
        store.put(cached(f"w{number}"))
    gc.collect()
    assert len(gc.get_objects()) - before < 200


async def sync(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[bool], int]:
    """Sync so many objects: whether the collector was on at each page, and how many objects were frozen."""
    server = FaultyServer(Random(1), names=0, keep=10)
    for number in range(count):
        server.put(f"w{number}")
    on: list[bool] = []
    from flyball.api.rawlist import RawReader

    plain = RawReader.list

    def watched(self: RawReader, body: bytes) -> object:
        on.append(gc.isenabled())
        return plain(self, body)

    monkeypatch.setattr(RawReader, "list", watched)
    clock = ManualClock()
    cache = InformerCache(Client(transport=server), clock=clock, defaults=CacheOptions(page_size=400))
    informer = cache.informer(WIDGETS)
    async with cache:
        await cache.wait_synced()
        assert len(informer.store) == count
    return on, gc.get_freeze_count()


async def test_it_rests_while_lists_are_decoded_and_forgets_many_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    on, frozen = await sync(1200, monkeypatch)
    assert on == [False] * 3
    assert gc.isenabled()
    assert frozen > 0


async def test_few_objects_are_not_worth_freezing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, frozen = await sync(10, monkeypatch)
    assert frozen == 0

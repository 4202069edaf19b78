"""The soak of tests/soak/cache.py, short."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.soak.cache import Soak


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(("seed", "streaming"), [(1, False), (2, False), (3, True), (4, True)])
async def test_nothing_is_lost_however_the_server_fails(seed: int, streaming: bool) -> None:
    outcome = await Soak(seed, streaming=streaming, trouble=0.3).run(8_000)
    assert outcome.wrong == []
    assert outcome.told > 1_000
    assert outcome.own > 50
    assert len({"cut", "gone", "error", "silence", "end", "duplicate", "nonsense"} & set(outcome.faults)) >= 5


async def test_a_healthy_server_has_every_change_told() -> None:
    outcome = await Soak(5, trouble=0.0).run(3_000)
    assert outcome.wrong == []
    assert outcome.lists <= 20

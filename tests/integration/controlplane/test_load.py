"""Load: every watcher sees every event once and in order, and a kill loses nothing that was acknowledged.

Longer: `make soak`.
"""

from __future__ import annotations

from pathlib import Path

from tests.soak.apiserver import soak


async def test_many_watchers_and_writers_and_a_kill(tmp_path: Path) -> None:
    done = await soak(5, watchers=200, writers=64, slow=10, data=tmp_path / "data")
    assert done.wrong == []
    assert done.counts["closed by the server"] > 0, "no watcher was slow enough"
    assert done.counts["events"] > 50 * done.counts["writes"]


async def test_kills_again_and_again(tmp_path: Path) -> None:
    done = await soak(0.3, watchers=4, writers=16, slow=0, data=tmp_path / "data", kills=4)
    assert done.wrong == []
    assert done.counts["objects after the kill"] > 0

"""The pass that tests of machines imagine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flyball.client import ref
from flyball.errors import FlyballError
from flyball.fsm.testing import ImaginedPass
from flyball.k8s.core.v1 import ConfigMap, Secret

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def test_it_shows_what_it_was_given_and_notes_what_is_done() -> None:
    sample = ConfigMap.new("sample", namespace="default")
    ctx = ImaginedPass(sample, children=[ConfigMap.new("b"), ConfigMap.new("a"), Secret.new("key")], now=NOON)
    assert await ctx.load(ConfigMap) is sample
    assert (ctx.request.name, ctx.primary, ctx.now(), ctx.deleting) == ("sample", sample, NOON, False)
    assert [one.metadata.name for one in await ctx.owned(ConfigMap)] == ["a", "b"]
    assert len(await ctx.list(Secret, labels={"any": "label"})) == 1
    found = await ctx.get(ConfigMap, "a")
    assert found is not None

    await ctx.create(ConfigMap.new("c"))
    await ctx.apply(ConfigMap.new("b", data={"x": "1"}))
    await ctx.delete(found, guard=True)
    await ctx.patch(ref(Secret, "key"))
    assert await ctx.write_status()
    ctx.record("Normal", "Done", "it is done")
    ctx.requeue(after=5)
    assert ctx.done == [
        "create ConfigMap c",
        "apply ConfigMap b",
        "delete ConfigMap a Background guarded",
        "patch Secret key",
        "write status",
        "Normal Done: it is done",
        "requeue 5",
    ]
    assert [(one.metadata.name, one.data) for one in await ctx.owned(ConfigMap)] == [("b", {"x": "1"}), ("c", None)]


async def test_verbs_fail_when_they_are_told_to() -> None:
    ctx = ImaginedPass()
    assert await ctx.load(ConfigMap) is None
    ctx.fails["create"] = FlyballError("no")
    with pytest.raises(FlyballError, match="no"):
        await ctx.create(ConfigMap.new("a"))
    assert ctx.done == []


def test_numbers_and_reports_are_kept() -> None:
    ctx = ImaginedPass()
    ctx.count("attempts_total", result="failed")
    ctx.count("attempts_total", result="failed")
    ctx.observe("seconds", 2.5)
    ctx.measure("active", 1)
    assert ctx.numbers == {"attempts_total failed": 2, "seconds": 2.5, "active": 1}
    error = FlyballError("it is wrong")
    ctx.report(error)
    assert ctx.reported is error

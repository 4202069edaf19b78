"""Numbers about objects are served as their sum."""

from __future__ import annotations

from flyball.controller.measures import Totals
from flyball.controller.request import Request
from flyball.manager.metrics import Registry

A, B = Request("default", "a"), Request("default", "b")


def test_the_sum_follows_its_parts_and_forgets_who_is_gone() -> None:
    registry = Registry()
    totals = Totals(registry)
    totals.put("shells", A, 3)
    totals.put("shells", B, 2)
    totals.put("doors", B, 1)
    assert registry.value("shells") == 5
    totals.put("shells", A, 1)
    assert registry.value("shells") == 3
    totals.forget(B)
    totals.forget(B)
    assert (registry.value("shells"), registry.value("doors")) == (1, 0)

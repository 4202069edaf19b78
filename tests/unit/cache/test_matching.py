from __future__ import annotations

import pytest

from flyball.cache.changes import only_within
from flyball.cache.matching import demands, label_match


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True),
        ("a==1,b!=2", {"a": "1"}, True),
        ("a==1,b!=2", {"a": "1", "b": "2"}, False),
        ("a", {}, False),
        ("!a", {}, True),
        (" a in (1, 2) , b notin (x)", {"a": "2", "b": "y"}, True),
        ("a in (1,2)", {}, False),
        ("a notin (1)", {}, True),
        ("a=", {"a": ""}, True),
        ("example.org/app=x", {"example.org/app": "x"}, True),
        ("a in (1", {"a": "1"}, False),
        ("=x", {}, False),
    ],
)
def test_labels(selector: str, labels: dict[str, str], selected: bool) -> None:
    assert label_match(selector)(labels) is selected


@pytest.mark.parametrize(
    ("selector", "other", "told"),
    [
        ("app=web", "app=web", True),
        ("tier=db,app=web", "app=web", True),
        ("app=web", "tier=db", False),
        ("app=web", "app=web,tier=db", False),
        ("app=web", "", False),
        ("", "app=web", False),
        ("app in (web)", "app=web", False),
        ("app", "app", False),
        ("a==1", "a=1", False),
    ],
)
def test_what_a_selector_demands(selector: str, other: str, told: bool) -> None:
    assert demands(selector, other) is told


BEFORE = {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"x": 1, "y": {"z": 1}}}


@pytest.mark.parametrize(
    ("after", "sent", "ours"),
    [
        ({"spec": {"x": 2, "y": {"z": 1}}}, {"spec": {"x": 2}}, True),
        ({"spec": {"x": 2, "y": {"z": 2}}}, {"spec": {"x": 2}}, False),
        ({"spec": {"x": 2, "y": {"z": 2}}}, {"spec": {"x": 2, "y": {"z": 2}}}, True),
        ({"spec": {"x": 2, "y": {"z": 1, "w": 1}}}, {"spec": {"x": 2, "y": {"z": 1}}}, False),
        ({"spec": {"x": 1, "y": {"z": 1}}, "status": {}}, {"spec": {"x": 1}}, False),
        ({"spec": {"x": 1}}, {"spec": {"y": None}}, True),
        ({"metadata": {"name": "a", "resourceVersion": "2", "labels": {"l": "1"}}}, {"spec": {}}, False),
    ],
)
def test_whose_change_it_was(after: dict[str, object], sent: dict[str, object], ours: bool) -> None:
    whole = {**BEFORE, "metadata": {"name": "a", "resourceVersion": "2", "managedFields": []}, **after}
    assert only_within(BEFORE, whole, sent) is ours

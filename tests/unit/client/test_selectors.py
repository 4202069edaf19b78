from __future__ import annotations

import pytest

from flyball.client.refusals import RefusedRequest
from flyball.client.selectors import field_text, label_text
from flyball.k8s.meta.v1 import LabelSelector, LabelSelectorRequirement


def test_text_goes_as_it_is() -> None:
    assert label_text("a in (b,c),!d") == "a in (b,c),!d"
    assert field_text("status.phase!=Running") == "status.phase!=Running"
    assert label_text(None) is None
    assert field_text(None) is None


def test_mappings_are_equalities() -> None:
    assert label_text({"app": "web", "tier": "db"}) == "app=web,tier=db"
    assert field_text({"metadata.name": "demo", "x": "a=b,c\\"}) == "metadata.name=demo,x=a\\=b\\,c\\\\"


def test_the_selector_of_a_workload() -> None:
    selector = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=[
            LabelSelectorRequirement(key="tier", operator="In", values=["a", "b"]),
            LabelSelectorRequirement(key="zone", operator="NotIn", values=["c"]),
            LabelSelectorRequirement(key="on", operator="Exists"),
            LabelSelectorRequirement(key="off", operator="DoesNotExist"),
        ],
    )
    assert label_text(selector) == "app=web,tier in (a,b),zone notin (c),on,!off"
    assert label_text(LabelSelector()) == ""


def test_an_unknown_operator_is_refused() -> None:
    selector = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Like")])
    with pytest.raises(RefusedRequest, match=r"unknown operator 'Like' of 'a'"):
        label_text(selector)

"""Names, labels and hashes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.api import DynamicObject
from flyball.controller.naming import child_labels, child_name, instance_of, selector_labels, short_hash, spec_hash
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
from flyball.k8s.core.v1 import ConfigMap

names = st.from_regex(re.compile(r"[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?"), fullmatch=True)


@given(names, names)
def test_a_name_is_the_same_for_the_same_and_never_too_long(owner: str, part: str) -> None:
    name = child_name(owner, part)
    assert name == child_name(ConfigMap.new(owner), part)
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert name != child_name(owner, part + "x")


@pytest.mark.parametrize("part", ["Upper", "under_score", "", "sla/sh", "-", "dot.", "ümlaut"])
def test_illegal_characters_are_refused(part: str) -> None:
    with pytest.raises(ValueError, match="is no name for an object"):
        child_name("demo", part)


def test_labels_of_the_system_win() -> None:
    owner = ConfigMap.new("x" * 70)
    labels = child_labels(
        owner, manager="test", component="web", user={"app.kubernetes.io/name": "mine", "tier": "front"}
    )
    assert labels["app.kubernetes.io/name"] == "configmap"
    assert labels["app.kubernetes.io/managed-by"] == "test"
    assert labels["app.kubernetes.io/component"] == "web"
    assert labels["tier"] == "front"
    assert len(labels["app.kubernetes.io/instance"]) == 63
    assert selector_labels(owner).items() <= labels.items()
    assert set(selector_labels(owner)) == {"app.kubernetes.io/name", "app.kubernetes.io/instance"}


def test_a_hash_of_the_intent() -> None:
    one = Deployment.new("a", spec=DeploymentSpec(replicas=3, paused=True))
    same = Deployment.new("b", spec=DeploymentSpec(paused=True, replicas=3))
    other = Deployment.new("a", spec=DeploymentSpec(replicas=4, paused=True))
    assert spec_hash(one) == spec_hash(same) == spec_hash(one.spec)
    assert spec_hash(one) != spec_hash(other)
    assert spec_hash(one, include=["paused"]) == spec_hash(other, include=["paused"])
    plain = DynamicObject({"kind": "Deployment", "spec": {"paused": True, "replicas": 3}})
    assert spec_hash(plain, include=["replicas"]) == spec_hash(one, include=["replicas"])
    assert len(spec_hash(one, length=8)) == 8


def test_a_short_hash_is_stable_and_can_stand_in_a_name() -> None:
    assert short_hash({"image": "busybox", "command": "true"}, "uid") == "dq8jn"
    assert short_hash({"command": "true", "image": "busybox", "new": None}, "uid") == "dq8jn"
    assert short_hash({"image": "busybox", "command": "false"}, "uid") != "dq8jn"
    found = {short_hash(number) for number in range(1000)}
    assert len(found) > 990
    assert set("".join(found)) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert len(short_hash("x", length=8)) == 8


def test_the_owner_is_found_by_the_labels_of_a_child() -> None:
    owner = ConfigMap.new("demo")
    child = ConfigMap.new("child", labels=child_labels(owner, manager="m"))
    assert instance_of(child) == ["demo"]
    assert instance_of(ConfigMap.new("stranger")) == []

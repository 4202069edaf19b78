"""Controller references."""

from __future__ import annotations

import pytest

from flyball.api import DynamicObject
from flyball.controller.ownership import (
    AlreadyOwnedError,
    NotOwnable,
    controller_of,
    is_controlled_by,
    owner_reference,
    set_controller,
)
from flyball.k8s.core.v1 import ConfigMap, Namespace, Pod
from flyball.k8s.meta.v1 import ObjectMeta


def owner(name: str = "demo", uid: str = "u1", namespace: str = "default") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, uid=uid, namespace=namespace))


def child(namespace: str | None = None) -> Pod:
    return Pod(metadata=ObjectMeta(name="child", namespace=namespace))


@pytest.mark.capability("S7")
def test_a_reference_is_complete_and_comes_from_the_class() -> None:
    lying = owner()
    lying.kind, lying.api_version = "Other", "other/v1"
    pod = child("default")
    set_controller(lying, pod)
    set_controller(lying, pod)  # once more changes nothing
    (reference,) = pod.metadata.owner_references
    assert (reference.api_version, reference.kind, reference.name, reference.uid) == ("v1", "ConfigMap", "demo", "u1")
    assert reference.controller
    assert reference.block_owner_deletion
    assert is_controlled_by(pod, lying)
    assert not is_controlled_by(pod, owner(uid="u2"))


def test_a_dynamic_child() -> None:
    pod = DynamicObject({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "child", "namespace": "default"}})
    set_controller(owner(), pod)
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert is_controlled_by(pod, owner())
    assert controller_of(DynamicObject({})) is None


def test_refusals() -> None:
    with pytest.raises(NotOwnable, match="has no uid"):
        set_controller(owner(uid=""), child("default"))
    with pytest.raises(
        NotOwnable, match="in a namespace owns only objects of that namespace, and this one is in other"
    ):
        set_controller(owner(), child("other"))
    with pytest.raises(NotOwnable, match="the whole cluster"):
        set_controller(owner(), Namespace.new("n"))
    pod = child("default")
    set_controller(owner(), pod)
    with pytest.raises(AlreadyOwnedError, match="is controlled by ConfigMap demo"):
        set_controller(owner("other", "u2"), pod)


def test_an_owner_without_namespace_may_own_anything() -> None:
    namespace = Namespace(metadata=ObjectMeta(name="n", uid="u9"))
    for pod in (child("default"), child()):
        set_controller(namespace, pod)
        assert is_controlled_by(pod, namespace)


def test_another_owner_beside_the_controller_stays() -> None:
    pod = child("default")
    pod.metadata.owner_references = [owner_reference(owner("second", "u2"), controller=False)]
    set_controller(owner(), pod)
    assert [one.name for one in pod.metadata.owner_references] == ["second", "demo"]
    found = controller_of(pod)
    assert found is not None
    assert found.name == "demo"

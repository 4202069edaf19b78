"""Which fields of a child are not as its owner wants them."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.api import Quantity, from_dict
from flyball.controller.drift import changed_fields
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap, EmptyDirVolumeSource, PodSpec, Volume

CONTAINER = {"name": "web", "image": "i:1", "resources": {"requests": {"cpu": "0.5"}}, "command": ["a", "b"]}
WANTED: dict[str, Any] = {
    "metadata": {"name": "demo", "labels": {"app.kubernetes.io/name": "demo"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "demo"}},
        "template": {
            "spec": {
                "containers": [CONTAINER],
                "tolerations": [{"key": "slow"}],
                "volumes": [{"name": "tmp", "emptyDir": {}}],
            }
        },
    },
}
TEMPLATE = "spec.template.spec"


def deployment(**changes: Any) -> Deployment:
    """As it is wanted, but for what is at these paths."""
    plain: Any = _copy(WANTED)
    for path, value in changes.items():
        *above, last = path.split("__")
        at: Any = plain
        for step in above:
            at = at[int(step)] if step.isdigit() else at.setdefault(step, {})
        if value is None:
            del at[last]
        else:
            at[last] = value
    return from_dict(Deployment, plain)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, ()),
        ({"spec__replicas": 10}, ("spec.replicas",)),
        ({"spec__replicas": None}, ("spec.replicas",)),
        ({"metadata__labels": {"other": "label"}}, ("metadata.labels[app.kubernetes.io/name]",)),
        ({"metadata__labels__other": "label", "metadata__annotations": {"other": "too"}}, ()),
        ({"spec__template__spec__containers__0__image": "i:2"}, (f"{TEMPLATE}.containers[web].image",)),
        ({"spec__template__spec__containers": [{"name": "beside", "image": "i"}, CONTAINER]}, ()),
        ({"spec__template__spec__containers": [{**CONTAINER, "name": "w"}]}, (f"{TEMPLATE}.containers[web]",)),
        ({"spec__template__spec__containers__0__resources__requests__cpu": "500m"}, ()),
        (
            {"spec__template__spec__containers__0__resources__requests__cpu": "1"},
            (f"{TEMPLATE}.containers[web].resources.requests.cpu",),
        ),
        ({"spec__template__spec__containers__0__command": ["a"]}, (f"{TEMPLATE}.containers[web].command",)),
        ({"spec__template__spec__tolerations__0__operator": "Exists"}, ()),
        ({"spec__template__spec__tolerations": [{"key": "slow"}, {}]}, (f"{TEMPLATE}.tolerations",)),
        ({"spec__template__spec__volumes__0__emptyDir": None}, (f"{TEMPLATE}.volumes[tmp].emptyDir",)),
        ({"spec__paused": True, "status": {"replicas": 2}, "metadata__uid": "u"}, ()),
        ({"spec__selector": None, "spec__replicas": 1}, ("spec.replicas", "spec.selector")),
    ],
    ids=lambda one: ",".join(one)[:50] if isinstance(one, dict) else None,
)
def test_fields_that_are_otherwise(changes: dict[str, Any], fields: tuple[str, ...]) -> None:
    assert changed_fields(deployment(), deployment(**changes)) == fields


def test_an_emptied_map() -> None:
    wanted = ConfigMap.new("a", data={"x": "1", "y": "2"})
    assert changed_fields(wanted, ConfigMap.new("a")) == ("data.x", "data.y")
    assert changed_fields(wanted, ConfigMap.new("a", data={"x": "1", "y": "2", "z": "3"})) == ()


def test_amounts_in_every_form() -> None:
    def pod(limit: Any) -> PodSpec:
        return PodSpec(volumes=[Volume(name="tmp", empty_dir=EmptyDirVolumeSource(size_limit=limit))])

    assert changed_fields(pod(Quantity("1Gi")), pod("1024Mi")) == ()
    assert changed_fields(pod(1024), pod("1Ki")) == ()
    assert changed_fields(pod("no amount"), pod("1Ki")) == ("volumes[tmp].emptyDir.sizeLimit",)

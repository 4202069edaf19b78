"""Built-in objects take the form in which a Go server writes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.controlplane.apiserver.wire import Misfit, tidy

DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"
POD = "io.k8s.api.core.v1.Pod"
EVENT = "io.k8s.api.core.v1.Event"


def container(**more: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", **more}


def pod(**more: Any) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [container(**more)]}}


def test_fields_are_written_in_their_order_and_empty_structs_are_there() -> None:
    formed = tidy({"spec": {"template": {}, "selector": {}, "replicas": 1}, "metadata": {}}, DEPLOYMENT)
    assert list(formed) == ["metadata", "spec", "status"]
    assert list(formed["spec"]) == ["replicas", "selector", "template", "strategy"]
    assert formed["spec"]["template"] == {"metadata": {}, "spec": {"containers": None}}


def test_what_go_leaves_out_when_it_is_empty_goes_and_what_is_a_pointer_stays() -> None:
    spec = {"paused": False, "replicas": 0, "minReadySeconds": 0, "selector": {"matchLabels": {}}}
    formed = tidy({"metadata": {"labels": {}, "name": ""}, "spec": spec}, DEPLOYMENT)
    assert formed["metadata"] == {}
    assert formed["spec"]["replicas"] == 0
    assert not {"paused", "minReadySeconds"} & formed["spec"].keys()
    assert formed["spec"]["selector"] == {}


def test_values_come_in_their_one_spelling() -> None:
    resources = {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": 1}}
    formed = tidy(pod(resources=resources), POD)["spec"]["containers"][0]["resources"]
    assert formed == {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    stamped = tidy({"metadata": {"creationTimestamp": "2030-01-01T02:00:00.5+02:00"}, "spec": {}}, POD)
    assert stamped["metadata"]["creationTimestamp"] == "2030-01-01T00:00:00Z"


def test_times_that_are_not_set_are_null_where_go_writes_them() -> None:
    formed = tidy({"metadata": {"name": "e"}, "involvedObject": {}}, EVENT)
    assert (formed["firstTimestamp"], formed["eventTime"], formed["source"]) == (None, None, {})
    assert formed["reportingComponent"] == ""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            pod(image=1),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (pod(ports={}), "json: cannot unmarshal object into Go struct field"),
        (
            pod(tty="yes"),
            "json: cannot unmarshal string into Go struct field Container.spec.containers.tty of type bool",
        ),
        (pod(ports=[{"containerPort": 1 << 40}]), "json: cannot unmarshal number 1099511627776 into"),
        (pod(resources={"limits": {"cpu": "much"}}), "quantities must match the regular expression"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, 'parsing time "yesterday"'),
        ({"metadata": "x"}, "json: cannot unmarshal string"),
    ],
)
def test_values_of_the_wrong_type_are_told_as_go_tells_them(value: dict[str, Any], words: str) -> None:
    with pytest.raises(Misfit) as misfit:
        tidy(value, POD)
    assert words in str(misfit.value)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["metadata", "spec", "containers", "name", "labels", "ports"]), inner, max_size=3
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON))
def test_whatever_comes_is_formed_once_or_refused(value: dict[str, Any]) -> None:
    try:
        formed = tidy(value, POD)
    except Misfit:
        return
    assert tidy(formed, POD) == formed

from __future__ import annotations

import json

import pytest

from flyball.cache.shaping import by_transform, keep_fields
from flyball.errors import FlyballError

RAW = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"x": "1"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c"}], "securityContext": {"runAsUser": 1, "fsGroup": 2}},
        "status": {"phase": "Running", "podIP": "1.2.3.4"},
    }
).encode()


def test_metadata_and_the_paths_are_kept() -> None:
    found = json.loads(keep_fields([".spec.nodeName", "status.phase", "spec.securityContext.fsGroup"])(RAW))
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"x": "1"}},
        "spec": {"nodeName": "n", "securityContext": {"fsGroup": 2}},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize("paths", [["spec", "spec.nodeName"], ["spec.nodeName", "spec"]])
def test_the_wider_path_wins(paths: list[str]) -> None:
    assert json.loads(keep_fields(paths)(RAW))["spec"] == json.loads(RAW)["spec"]


def test_what_a_path_ends_at_or_misses() -> None:
    found = json.loads(keep_fields(["spec.containers.name", "nothing.there", "status"])(RAW))
    assert found["spec"] == {"containers": [{"name": "c"}]}
    assert "nothing" not in found
    assert keep_fields(["spec"])(b'{"metadata":{},"spec":null}') == b'{"spec":null,"metadata":{}}'


def test_a_path_that_is_none() -> None:
    with pytest.raises(FlyballError, match=r"'spec\.\.x' is no path"):
        keep_fields(["spec..x"])


def test_a_transform_sees_plain_json() -> None:
    shape = by_transform(lambda obj: {**obj, "spec": {}})
    assert json.loads(shape(RAW))["spec"] == {}

"""What a failed Pod means, and when enough indexes have succeeded."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.api import from_dict
from flyball.controlplane.controllers.jobs.indexes import Indexes
from flyball.controlplane.controllers.jobs.policies import Failure, judge_failure, rule_of_success
from flyball.k8s.batch.v1 import PodFailurePolicy, SuccessPolicy
from flyball.k8s.core.v1 import Pod


def pod(**status: Any) -> Pod:
    metadata = {"name": "p", "namespace": "n"}
    return from_dict(Pod, {"metadata": metadata, "spec": {"containers": []}, "status": status})


def ended(name: str, code: int) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code}}
    return {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}


def exits(action: str, operator: str, *values: int, container: str | None = None) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": [*values], "containerName": container}}


def on(action: str, type_: str, status: str = "True") -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": type_, "status": status}]}


@pytest.mark.parametrize(
    ("rules", "status", "expected"),
    [
        ([], {"containerStatuses": [ended("c", 1)]}, Failure()),
        ([exits("Ignore", "In", 1)], {"containerStatuses": [ended("c", 1)]}, Failure(False, "Ignore")),
        ([exits("Ignore", "In", 2)], {"containerStatuses": [ended("c", 1)]}, Failure()),
        ([exits("Count", "NotIn", 2)], {"containerStatuses": [ended("c", 1)]}, Failure(True, "Count")),
        ([exits("Count", "NotIn", 2)], {"containerStatuses": [ended("c", 0)]}, Failure()),
        ([exits("FailIndex", "In", 1, container="d")], {"containerStatuses": [ended("c", 1)]}, Failure()),
        ([exits("FailIndex", "In", 1)], {"initContainerStatuses": [ended("i", 1)]}, Failure(True, "FailIndex")),
        (
            [on("Ignore", "A"), exits("FailJob", "In", 3)],
            {"containerStatuses": [ended("c", 3)]},
            Failure(
                True, "FailJob", "Container c for pod n/p failed with exit code 3 matching FailJob rule at index 1"
            ),
        ),
        (
            [on("FailJob", "A", "False")],
            {"conditions": [{"type": "A", "status": "False"}]},
            Failure(True, "FailJob", "Pod n/p has condition A matching FailJob rule at index 0"),
        ),
        ([on("FailJob", "A")], {"conditions": [{"type": "A", "status": "Unknown"}]}, Failure()),
    ],
)
def test_the_first_rule_that_fits_decides(rules: list[Any], status: dict[str, Any], expected: Failure) -> None:
    policy = from_dict(PodFailurePolicy, {"rules": rules})
    assert judge_failure(policy, pod(phase="Failed", **status)) == expected


def test_without_a_policy_every_failure_counts() -> None:
    assert judge_failure(None, pod(phase="Failed")) == Failure()


@pytest.mark.parametrize(
    ("rules", "succeeded", "expected"),
    [
        ([{"succeededIndexes": "0-2"}], "0,1", None),
        ([{"succeededIndexes": "0-2"}], "0-5", 0),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], "1,2,7", 0),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], "1,7,8", None),
        ([{"succeededCount": 3}], "1,7,8", 0),
        ([{"succeededIndexes": "0"}, {"succeededCount": 1}], "9", 1),
        ([{"succeededIndexes": "nonsense"}], "9", None),
        ([{"succeededCount": 0}], "", None),
    ],
)
def test_the_first_rule_that_is_fulfilled_is_told(rules: list[Any], succeeded: str, expected: int | None) -> None:
    policy = from_dict(SuccessPolicy, {"rules": rules})
    assert rule_of_success(policy, Indexes.read(succeeded), 10) == expected

"""What the policies of a Job say: what a failed Pod means, and whether enough indexes have succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from flyball.controlplane.controllers.jobs.indexes import Indexes
from flyball.k8s.batch.v1 import (
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from flyball.k8s.core.v1 import ContainerStatus, Pod

__all__ = ["FAIL_INDEX", "Failure", "judge_failure", "rule_of_success"]

FAIL_INDEX, _FAIL_JOB, _IGNORE = "FailIndex", "FailJob", "Ignore"


class Failure(NamedTuple):
    """What the failure of a Pod means."""

    counts: bool = True
    """Whether it uses up one of the tries."""
    action: str | None = None
    """What the first rule that fits says; None when none does."""
    fails_job: str = ""
    """Why it ends the whole Job, if it does."""


def judge_failure(policy: PodFailurePolicy | None, pod: Pod) -> Failure:
    """Judge a failed Pod by the first rule that fits it."""
    for place, rule in enumerate(policy.rules if policy is not None else ()):
        cause = _cause(rule, pod)
        if cause:
            message = f"{cause} matching {_FAIL_JOB} rule at index {place}" if rule.action == _FAIL_JOB else ""
            return Failure(rule.action != _IGNORE, rule.action, message)
    return Failure()


def _cause(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """Tell why a rule fits a Pod; empty when it does not."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for containers in (pod.status.container_statuses, pod.status.init_container_statuses):
            for name, code in _exits(containers or ()):
                if _fits(rule.on_exit_codes, name, code):
                    return f"Container {name} for pod {where} failed with exit code {code}"
        return ""
    for condition in pod.status.conditions or ():
        for pattern in rule.on_pod_conditions or ():
            if (condition.type, condition.status) == (pattern.type, pattern.status or "True"):
                return f"Pod {where} has condition {condition.type}"
    return ""


def _exits(containers: Iterable[ContainerStatus]) -> Iterable[tuple[str, int]]:
    for container in containers:
        ended = container.state.terminated if container.state is not None else None
        if ended is not None and ended.exit_code:
            yield container.name, ended.exit_code


def _fits(requirement: PodFailurePolicyOnExitCodesRequirement, name: str, code: int) -> bool:
    if requirement.container_name is not None and requirement.container_name != name:
        return False
    return (code in (requirement.values or ())) == (requirement.operator == "In")


def rule_of_success(policy: SuccessPolicy | None, succeeded: Indexes, completions: int) -> int | None:
    """Return the place of the first rule that the indexes which have succeeded fulfil."""
    if policy is None or not succeeded.ranges:
        return None
    for place, rule in enumerate(policy.rules):
        if _fulfilled(rule, succeeded, completions):
            return place
    return None


def _fulfilled(rule: SuccessPolicyRule, succeeded: Indexes, completions: int) -> bool:
    enough = rule.succeeded_count
    if rule.succeeded_indexes is None:
        return enough is not None and succeeded.count >= enough
    wanted = Indexes.read(rule.succeeded_indexes, below=completions)
    if not wanted.ranges:
        return False
    done = (wanted & succeeded).count
    return done == wanted.count or (enough is not None and done >= enough)

"""Attempts: the Jobs of a SimpleJob, how they are made and what can be read from them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from flyball.api import find_condition, to_dict
from flyball.controller import child_labels, child_name, is_controlled_by, short_hash
from flyball.k8s.batch.v1 import Job, JobCondition, JobSpec
from flyball.k8s.core.v1 import (
    Capabilities,
    Container,
    ContainerStatus,
    Pod,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    SeccompProfile,
    SecurityContext,
)
from flyball.k8s.meta.v1 import ObjectMeta

from simplejob.api import SimpleJob

HASH = "jobs.example.com/hash"
ATTEMPT = "jobs.example.com/attempt"

NOT_IN_TEMPLATE = {"maxRetries", "retryBackoffSeconds", "suspend", "ttlSecondsAfterFinished"}
USUAL_WAITS = {"ContainerCreating", "PodInitializing"}


def template_hash(simplejob: SimpleJob) -> str:
    """Stands for what is run: another one means another run, with attempts of its own."""
    template = {name: value for name, value in to_dict(simplejob.spec).items() if name not in NOT_IN_TEMPLATE}
    return short_hash(template, simplejob.metadata.uid)


def new_attempt(simplejob: SimpleJob, number: int) -> Job:
    """The Job of an attempt."""
    spec, hash_ = simplejob.spec, template_hash(simplejob)
    labels = {
        **child_labels(simplejob, manager="simplejob", component="attempt"),
        HASH: hash_,
        ATTEMPT: str(number),
    }
    container = Container(
        name="job",
        image=spec.image,
        command=["/bin/sh", "-c", spec.command],
        env=spec.env,
        resources=spec.resources,
        image_pull_policy=spec.image_pull_policy,
        security_context=SecurityContext(allow_privilege_escalation=False, capabilities=Capabilities(drop=["ALL"])),
    )
    pod = PodSpec(
        restart_policy="Never",
        containers=[container],
        service_account_name=spec.service_account_name,
        automount_service_account_token=spec.service_account_name is not None,
        image_pull_secrets=spec.image_pull_secrets,
        security_context=PodSecurityContext(seccomp_profile=SeccompProfile(type="RuntimeDefault")),
    )
    return Job(
        metadata=ObjectMeta(name=child_name(simplejob, hash_, number), labels=labels),
        spec=JobSpec(
            completions=1,
            parallelism=1,
            backoff_limit=0,
            pod_replacement_policy="Failed",
            active_deadline_seconds=spec.active_deadline_seconds,
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


def number_of(job: Job) -> int:
    """Which attempt it is, counted from 1; 0 when somebody has changed the label."""
    label = job.metadata.labels.get(ATTEMPT, "")
    return int(label) if label.isdecimal() else 0


def end_of(job: Job | None) -> JobCondition | None:
    """The condition that says how it ended; None while it has not."""
    if job is None:
        return None
    found = (find_condition(job.status.conditions, name) for name in ("Complete", "Failed"))
    return next((one for one in found if one is not None and one.status == "True"), None)


def has_failed(job: Job) -> bool:
    """Whether it has ended, and not well."""
    end = end_of(job)
    return end is not None and end.type == "Failed"


def is_unfinished(job: Job) -> bool:
    """Whether it has to be waited for: until it ends, or until it is gone."""
    return end_of(job) is None or job.metadata.deletion_timestamp is not None


def ended_at(job: Job | None) -> datetime | None:
    """When it ended."""
    end = end_of(job)
    if job is None or end is None:
        return None
    return job.status.completion_time or end.last_transition_time


def in_words(simplejob: SimpleJob, number: int) -> str:
    """`attempt 2 of 4`."""
    return f"attempt {number} of {simplejob.spec.max_retries + 1}"


def pods_of(job: Job, pods: Iterable[Pod]) -> list[Pod]:
    """The pods that are this attempt's."""
    return [pod for pod in pods if is_controlled_by(pod, job)]


def has_begun(job: Job, pods: Iterable[Pod]) -> bool:
    """Whether anything of it has ever run; the Job may know it before its pods are seen."""
    states = [one.state for pod in pods_of(job, pods) for one in pod.status.container_statuses or () if one.state]
    return bool(job.status.ready) or any(one.running is not None or one.terminated is not None for one in states)


def is_running(pod: Pod) -> bool:
    """Whether it is ready, or has been and has ended."""
    ready = find_condition(pod.status.conditions, "Ready")
    return pod.status.phase in ("Succeeded", "Failed") or (ready is not None and ready.status == "True")


def why_it_waits(pods: Iterable[Pod]) -> str:
    """What keeps a pod from running; empty when nothing unusual does."""
    for pod in pods:
        for status in pod.status.container_statuses or ():
            waiting = status.state.waiting if status.state is not None else None
            if waiting is not None and waiting.reason and waiting.reason not in USUAL_WAITS:
                return f"container {status.name}: {_joined(waiting.reason, waiting.message)}"
        scheduled = find_condition(pod.status.conditions, "PodScheduled")
        if scheduled is not None and scheduled.status == "False":
            return f"pod {pod.metadata.name}: {_joined(scheduled.reason, scheduled.message)}"
    return ""


def why_it_failed(job: Job, pods: Iterable[Pod]) -> str:
    """The cause in a few words: the exit code, or what the Job says."""
    end = end_of(job)
    if end is None:
        return ""
    if end.reason in ("BackoffLimitExceeded", "PodFailurePolicy"):
        for status in (one for pod in pods for one in pod.status.container_statuses or ()):
            if exit_code := _exit_code(status):
                return exit_code
    return _joined(end.reason, end.message)


def _exit_code(status: ContainerStatus) -> str:
    ended = status.state.terminated if status.state is not None else None
    if ended is None or not ended.exit_code:
        return ""
    unusual = f" ({ended.reason})" if ended.reason not in (None, "", "Error") else ""
    return f"exit code {ended.exit_code}{unusual}"


def _joined(reason: str | None, message: str | None) -> str:
    return ": ".join(one for one in (reason, message) if one) or "no reason given"

"""The rules of Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.api.cron import BadSchedule, parse_schedule, time_zone
from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.rules.common import Errors, Object, at_least, immutable, items, matches, one_of
from flyball.controlplane.apiserver.rules.pods import template

__all__ = ["cron_job", "job", "job_update"]

_UID: Final = "batch.kubernetes.io/controller-uid"
_MAX_CRON_NAME: Final = 52
_NUMBERS: Final = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_MORE_NUMBERS: Final = ("backoffLimitPerIndex", "maxFailedIndexes")


def job(obj: Object) -> Errors:
    """Judge a Job."""
    spec: Mapping[str, Any] = obj["spec"]
    yield from _selector(obj, spec)
    yield from _spec(spec, "spec")


def _selector(obj: Object, spec: Mapping[str, Any]) -> Errors:
    selector = spec.get("selector")
    if selector is None:
        yield FieldError.required("spec.selector")
        return
    labels: Mapping[str, str] = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not spec.get("manualSelector"):
        generated = {"matchLabels": {_UID: obj["metadata"].get("uid")}}
        old = {"matchLabels": {"controller-uid": obj["metadata"].get("uid")}}
        if selector not in (generated, old):
            yield FieldError.invalid("spec.selector", selector, "`selector` not auto-generated")
    if not matches(selector, labels):
        told = "`selector` does not match template `labels`"
        wrong = FieldError.invalid("spec.template.metadata.labels", dict(labels), told)
        yield from [wrong] if spec.get("manualSelector") else [wrong, wrong]


def _spec(spec: Mapping[str, Any], path: str) -> Errors:
    for name in (*_NUMBERS, *_MORE_NUMBERS):
        yield from at_least(spec.get(name), f"{path}.{name}")
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        yield FieldError.not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"])
    if mode == "Indexed" and spec.get("completions") is None:
        yield FieldError.required(f"{path}.completions", f"when completion mode is {mode}")
    if spec.get("backoffLimitPerIndex") is not None and mode != "Indexed":
        told = "requires indexed completion mode"
        yield FieldError.invalid(f"{path}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], told)
    if spec.get("podReplacementPolicy") not in (None, "Failed", "TerminatingOrFailed"):
        allowed = ["Failed", "TerminatingOrFailed"]
        yield FieldError.not_supported(f"{path}.podReplacementPolicy", spec["podReplacementPolicy"], allowed)
    yield from template(spec, path)
    yield from _restart(spec, path)
    policy: Mapping[str, Any] = spec.get("podFailurePolicy") or {}
    for place, rule in enumerate(items(policy, "rules")):
        where = f"{path}.podFailurePolicy.rules[{place}]"
        yield from one_of(rule.get("action"), f"{where}.action", ("Count", "FailIndex", "FailJob", "Ignore"))


def _restart(spec: Mapping[str, Any], path: str) -> Errors:
    restart = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    if restart in ("", None, "Always"):
        yield FieldError.required(where, 'valid values: "OnFailure", "Never"')
    elif restart not in ("OnFailure", "Never"):
        yield FieldError.not_supported(where, restart, ["OnFailure", "Never"])
    elif restart != "Never" and spec.get("podFailurePolicy") is not None:
        told = 'only "Never" is supported when podFailurePolicy is specified'
        yield FieldError.invalid(where, restart, told)


def job_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a Job: what its Pods are made from, and how many are wanted, stays."""
    yield from job(obj)
    after, before = obj["spec"], old["spec"]
    indexed = after.get("completionMode") == "Indexed" and before.get("completionMode") == "Indexed"
    scaled = indexed and after.get("completions") == after.get("parallelism")
    if not scaled:
        yield from immutable(after.get("completions"), before.get("completions"), "spec.completions")
    yield from immutable(after.get("selector"), before.get("selector"), "spec.selector")
    if not _may_change_template(old):
        yield from immutable(after.get("template"), before.get("template"), "spec.template")
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from immutable(after.get(name), before.get(name), f"spec.{name}")


def _may_change_template(old: Object) -> bool:
    """Tell whether a Job was suspended before it had started: then where its Pods may run can still change."""
    return bool(old["spec"].get("suspend")) and not (old.get("status") or {}).get("startTime")


def cron_job(obj: Object) -> Errors:
    """Judge a CronJob."""
    spec: Mapping[str, Any] = obj["spec"]
    schedule = spec.get("schedule") or ""
    if not schedule:
        yield FieldError.required("spec.schedule")
    else:
        try:
            parse_schedule(schedule)
        except BadSchedule as error:
            yield FieldError.invalid("spec.schedule", schedule, str(error))
        if "TZ" in schedule:
            told = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            yield FieldError.invalid("spec.schedule", schedule, told)
    yield from at_least(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    yield from _time_zone(spec.get("timeZone"))
    yield from one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    yield from _spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    yield from at_least(spec.get("successfulJobsHistoryLimit"), "spec.successfulJobsHistoryLimit")
    yield from at_least(spec.get("failedJobsHistoryLimit"), "spec.failedJobsHistoryLimit")
    name = obj["metadata"].get("name") or ""
    if len(name) > _MAX_CRON_NAME:
        yield FieldError.invalid("metadata.name", name, f"must be no more than {_MAX_CRON_NAME} characters")


def _time_zone(zone: Any) -> Errors:
    if zone is None:
        return
    if not zone:
        yield FieldError.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
        return
    try:
        time_zone(zone)
    except BadSchedule as error:
        yield FieldError.invalid("spec.timeZone", zone, str(error))

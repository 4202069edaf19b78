"""The rules of CronJobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from flyball.api.cron import BadSchedule, parse_schedule, time_zone
from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.rules.common import Errors, Object, at_least, one_of
from flyball.controlplane.apiserver.rules.jobs import job_spec

__all__ = ["cron_job", "cron_job_update"]

_LONGEST_NAME: Final = 52
"""A Job of it has eleven characters more."""
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def cron_job(obj: Object) -> Errors:
    """Judge a new CronJob."""
    yield from _spec(obj["spec"], None)
    name = obj["metadata"].get("name") or ""
    if len(name) > _LONGEST_NAME:
        yield FieldError.invalid("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters")


def cron_job_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a CronJob."""
    yield from _spec(obj["spec"], old["spec"])


def _spec(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Errors:
    yield from _schedule(spec, old)
    yield from at_least(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if old is None or spec.get("timeZone") != old.get("timeZone"):
        yield from _time_zone(spec.get("timeZone"))
    yield from one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    job: Mapping[str, Any] = (spec.get("jobTemplate") or {}).get("spec") or {}
    yield from job_spec(job, "spec.jobTemplate.spec")
    if job.get("selector") is not None:
        told = "`selector` will be auto-generated"
        yield FieldError.invalid("spec.jobTemplate.spec.selector", job["selector"], told)
    if job.get("manualSelector"):
        yield FieldError.not_supported("spec.jobTemplate.spec.manualSelector", True, ["nil", "false"])
    yield from at_least(spec.get("successfulJobsHistoryLimit"), "spec.successfulJobsHistoryLimit")
    yield from at_least(spec.get("failedJobsHistoryLimit"), "spec.failedJobsHistoryLimit")


def _schedule(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Errors:
    schedule, where = spec.get("schedule") or "", "spec.schedule"
    if not schedule:
        yield FieldError.required(where)
        return
    try:
        parse_schedule(schedule)
    except BadSchedule as error:
        yield FieldError.invalid(where, schedule, str(error))
    if "TZ" not in schedule:
        return
    if old is None or "TZ" not in (old.get("schedule") or ""):
        told = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield FieldError.invalid(where, schedule, told)
    elif spec.get("timeZone") is not None:
        told = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield FieldError.invalid(where, schedule, told)


def _time_zone(zone: Any) -> Errors:
    where = "spec.timeZone"
    if zone is None:
        return
    if not zone:
        yield FieldError.invalid(where, zone, "timeZone must be nil or non-empty string")
    elif not all(map(_is_part, zone.split("/"))):
        yield FieldError.invalid(where, zone, f"unknown time zone {zone}")
    elif zone.lower() == "local":
        told = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield FieldError.invalid(where, zone, told)
    else:
        try:
            time_zone(zone)
        except BadSchedule as error:
            yield FieldError.invalid(where, zone, str(error))


def _is_part(part: str) -> bool:
    return part not in (".", "..") and not part.startswith("-") and bool(_ZONE_PART.fullmatch(part))

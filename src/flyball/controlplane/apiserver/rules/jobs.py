"""The rules of Jobs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.names import is_label, is_subdomain
from flyball.controlplane.apiserver.rules.common import (
    Errors,
    Object,
    at_least,
    immutable,
    items,
    label_selector,
    matches,
)
from flyball.controlplane.apiserver.rules.jobpolicies import failure_policy, success_policy
from flyball.controlplane.apiserver.rules.jobstatus import job_status
from flyball.controlplane.apiserver.rules.pods import template, template_warnings

__all__ = ["job", "job_spec", "job_update", "job_warnings"]

_UID: Final = "batch.kubernetes.io/controller-uid"
_NUMBERS: Final = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_MODES: Final = ("NonIndexed", "Indexed")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_MANY: Final = 100_000
"""More Pods at once, or failed indexes, an indexed Job cannot have; with more indexes other bounds are closer."""
_FEWER: Final = 10_000
_LONGEST_MANAGER: Final = 63
_OF_MANY: Final = f"when completions are above {_MANY} and used with backoff limit per index"
_DIRECTIVES: Final = ("nodeSelector", "tolerations", "schedulingGates")


def job(obj: Object) -> Errors:
    """Judge a Job."""
    spec: Mapping[str, Any] = obj["spec"]
    yield from _generated_selector(obj, spec)
    yield from job_spec(spec, "spec")
    yield from _selector(spec)
    completions, name = spec.get("completions"), obj["metadata"].get("name") or ""
    if spec.get("completionMode") == "Indexed" and completions is not None and completions > 0:
        hostname = f"{name}-{completions - 1}"
        if is_label(hostname, False):
            told = f"will not able to create pod with invalid DNS label: {hostname}"
            yield FieldError.invalid("metadata.name", name, told)


def _labels(spec: Mapping[str, Any]) -> Mapping[str, str] | None:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or None


def _generated_selector(obj: Object, spec: Mapping[str, Any]) -> Errors:
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    uid = obj["metadata"].get("uid")
    if selector not in ({"matchLabels": {_UID: uid}}, {"matchLabels": {"controller-uid": uid}}):
        yield FieldError.invalid("spec.selector", selector, "`selector` not auto-generated")


def _selector(spec: Mapping[str, Any]) -> Errors:
    selector, labels = spec.get("selector"), _labels(spec)
    yield from label_selector(selector, "spec.selector", required=True)
    if selector is None or not matches(selector, labels or {}):
        told = "`selector` does not match template `labels`"
        yield FieldError.invalid("spec.template.metadata.labels", labels, told)


def job_spec(spec: Mapping[str, Any], path: str) -> Errors:
    """Judge what a Job, or the template of one, asks for."""
    for name in _NUMBERS:
        yield from at_least(spec.get(name), f"{path}.{name}")
    yield from at_least(spec.get("backoffLimitPerIndex"), f"{path}.backoffLimitPerIndex")
    if spec.get("maxFailedIndexes") is not None:
        yield from at_least(spec["maxFailedIndexes"], f"{path}.maxFailedIndexes")
        if spec.get("backoffLimitPerIndex") is None:
            yield FieldError.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _manager(spec.get("managedBy"), f"{path}.managedBy")
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        yield FieldError.not_supported(f"{path}.completionMode", mode, list(_MODES))
    elif mode == "Indexed":
        yield from _indexed(spec, path)
    else:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield FieldError.invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
    if spec.get("podFailurePolicy") is not None:
        yield from failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        yield from success_policy(spec, f"{path}.successPolicy")
    replacement = spec.get("podReplacementPolicy")
    allowed = _REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    if replacement is not None and replacement not in allowed:
        yield FieldError.not_supported(f"{path}.podReplacementPolicy", replacement, list(allowed))
    yield from template(spec, path)
    yield from _restart(spec, path)


def _manager(name: Any, path: str) -> Errors:
    """Refuse what is no path below a domain."""
    if name is None:
        return
    domain, slash, rest = str(name).partition("/")
    if not name:
        yield FieldError.required(path)
    elif not slash or not domain or not rest:
        yield FieldError.invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from (FieldError.invalid(path, domain, words) for words in is_subdomain(domain, False))
    if len(name) > _LONGEST_MANAGER:
        yield FieldError.too_long(path, _LONGEST_MANAGER)


def _indexed(spec: Mapping[str, Any], path: str) -> Errors:
    completions, parallelism, lost = spec.get("completions"), spec.get("parallelism"), spec.get("maxFailedIndexes")
    if completions is None:
        yield FieldError.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MANY:
        told = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        yield FieldError.invalid(f"{path}.parallelism", parallelism, told)
    if completions is not None and lost is not None and lost > completions:
        yield FieldError.invalid(f"{path}.maxFailedIndexes", lost, "must be less than or equal to completions")
    if lost is not None and lost > _MANY:
        yield FieldError.invalid(f"{path}.maxFailedIndexes", lost, f"must be less than or equal to {_MANY}")
    if completions is None or completions <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return
    if lost is None:
        told = f"must be specified when completions is above {_MANY}"
        yield FieldError.required(f"{path}.maxFailedIndexes", told)
    for name in ("parallelism", "maxFailedIndexes"):
        number = spec.get(name)
        if number is not None and number > _FEWER:
            yield FieldError.invalid(f"{path}.{name}", number, f"must be less than or equal to {_FEWER} {_OF_MANY}")


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
    if obj.get("status") != old.get("status"):
        yield from job_status(obj, old)
        return
    yield from job(obj)
    after, before = obj["spec"], old["spec"]
    yield from job_spec(after, "spec")  # upstream asks twice, and tells both answers
    yield from _selector(after)
    yield from _completions(after, before)
    yield from immutable(after.get("selector"), before.get("selector"), "spec.selector")
    yield from _template(after, old)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from immutable(after.get(name), before.get(name), f"spec.{name}")


def _completions(after: Mapping[str, Any], before: Mapping[str, Any]) -> Errors:
    wanted = after.get("completions")
    if after.get("completionMode") != "Indexed":
        yield from immutable(wanted, before.get("completions"), "spec.completions")
    elif wanted is not None and wanted != before.get("completions") and wanted != after.get("parallelism"):
        told = "can only be modified in tandem with spec.parallelism"
        yield FieldError.invalid("spec.completions", wanted, told)


def _template(after: Mapping[str, Any], old: Object) -> Errors:
    """Refuse another template; of a Job that waits, what says where its Pods run and what they need may change."""
    new, before = after.get("template") or {}, copy.deepcopy(old["spec"].get("template") or {})
    if not _waits(old):
        yield from immutable(new, before, "spec.template")
        return
    spec, pod = before.setdefault("spec", {}), new.get("spec") or {}
    for name in _DIRECTIVES:
        _take_over(spec, pod, name)
    _allow_node_affinity(spec, pod)
    for kind in ("containers", "initContainers"):
        ours, theirs = items(spec, kind), items(pod, kind)
        if [one.get("name") for one in ours] == [one.get("name") for one in theirs]:
            for one, other in zip(ours, theirs, strict=True):
                _take_over(one, other, "resources")
    yield from immutable(pod, spec, "spec.template.spec")


def _take_over(old: Object, new: Mapping[str, Any], name: str) -> None:
    if name in new:
        old[name] = new[name]
    else:
        old.pop(name, None)


def _allow_node_affinity(old: Object, new: Mapping[str, Any]) -> None:
    affinity: Object = dict(old.get("affinity") or {})
    _take_over(affinity, new.get("affinity") or {}, "nodeAffinity")
    if affinity or new.get("affinity") is not None:
        old["affinity"] = affinity
    else:
        old.pop("affinity", None)


def _waits(old: Object) -> bool:
    """Tell whether a Job is suspended, and none of its Pods is left."""
    status: Mapping[str, Any] = old.get("status") or {}
    told = any(one.get("type") == "Suspended" and one.get("status") == "True" for one in status.get("conditions") or ())
    return bool(old["spec"].get("suspend")) and (told or not status.get("startTime")) and not status.get("active")


def job_warnings(obj: Object) -> list[str]:
    """Return what the writer of a new Job is told."""
    words = is_label(obj["metadata"].get("name") or "", False)
    told = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior"
    named = [f"{told}; a DNS label is recommended: [{' '.join(words)}]"] if words else []
    return [*named, *template_warnings(obj)]

"""What is wrong with an object of a built-in kind: upstream's validation, for what operators touch.

    common          rules of values: names, ports, selectors, amounts
    containers      containers of a Pod
    pods            Pods and templates
    workloads       Deployments and their kin
    jobs            Jobs, with jobpolicies and jobstatus
    cronjobs        CronJobs
    services        Services
    config          ConfigMaps, Secrets, claims, leases, events, roles

Each function gives the refusals of one object, in upstream's order and words. `RULES` says which kind has which;
`without_rules` names the kinds that are held to their types and names only, which `docs/compatibility.md` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.rules import config, cronjobs, jobs, pods, services, workloads

__all__ = ["RULES", "Rules", "without_rules"]

Object = dict[str, Any]
Judge = Callable[[Object], Iterator[FieldError]]
JudgeChange = Callable[[Object, Object], Iterator[FieldError]]


class Rules(NamedTuple):
    """The rules of one kind; without rules for changes, a new state is judged like a new object."""

    new: Judge
    change: JudgeChange | None = None
    warn: Callable[[Object], list[str]] | None = None

    def parts(self) -> dict[str, Any]:
        """Give the rules as parts of a `Strategy`."""
        change = self.change
        judged: dict[str, Any] = {
            "validate": lambda obj: list(self.new(obj)),
            "validate_update": lambda obj, old: list(self.new(obj) if change is None else change(obj, old)),
        }
        return judged if self.warn is None else {**judged, "warn_on_create": self.warn}


def _deployment_change(obj: Object, old: Object) -> Iterator[FieldError]:
    if obj.get("status") != old.get("status"):
        yield from workloads.deployment_status(obj)
    yield from workloads.fixed_selector(workloads.deployment)(obj, old)


RULES: Final[Mapping[str, Rules]] = {
    "pods": Rules(pods.pod, pods.pod_update, pods.pod_warnings),
    "podtemplates": Rules(lambda obj: pods.template(obj, "")),
    "deployments.apps": Rules(workloads.deployment, _deployment_change, pods.template_warnings),
    "replicasets.apps": Rules(
        workloads.replica_set, workloads.fixed_selector(workloads.replica_set), pods.template_warnings
    ),
    "daemonsets.apps": Rules(
        workloads.daemon_set, workloads.fixed_selector(workloads.daemon_set), pods.template_warnings
    ),
    "statefulsets.apps": Rules(workloads.stateful_set, workloads.stateful_set_update, pods.template_warnings),
    "controllerrevisions.apps": Rules(lambda obj: iter(()), workloads.revision_update),
    "replicationcontrollers": Rules(workloads.controller),
    "jobs.batch": Rules(jobs.job, jobs.job_update, jobs.job_warnings),
    "cronjobs.batch": Rules(cronjobs.cron_job, cronjobs.cron_job_update),
    "services": Rules(services.service, services.service_update, services.service_warnings),
    "configmaps": Rules(config.config_map, config.config_map_update),
    "secrets": Rules(config.secret, config.secret_update),
    "persistentvolumeclaims": Rules(config.claim, config.claim_update),
    "leases.coordination.k8s.io": Rules(config.lease),
    "events": Rules(config.event),
    "events.events.k8s.io": Rules(config.event),
    "poddisruptionbudgets.policy": Rules(config.budget),
    "roles.rbac.authorization.k8s.io": Rules(config.role),
    "clusterroles.rbac.authorization.k8s.io": Rules(config.role),
    "rolebindings.rbac.authorization.k8s.io": Rules(config.role_binding, config.role_binding_update),
    "clusterrolebindings.rbac.authorization.k8s.io": Rules(config.role_binding, config.role_binding_update),
}


def without_rules(resources: Iterable[str]) -> list[str]:
    """Name those of the resources that have no rules yet, apart from the definitions of custom kinds."""
    own = {*RULES, "namespaces", "bindings", "customresourcedefinitions.apiextensions.k8s.io"}
    return sorted(set(resources) - own)

"""The defaults of built-in kinds that are code upstream: what a field is when nobody said anything.

Each function fills in one kind of object, in place. Structs that Go always writes are there already (`wire.tidy`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["DEFAULTS", "pod_spec"]

Object = dict[str, Any]
Default = Callable[[Object], None]


def _fill(obj: Object, **values: Any) -> None:
    for name, value in values.items():
        if obj.get(name) is None:
            obj[name] = value


def _each(obj: Object, name: str) -> list[Object]:
    return [item for item in obj.get(name) or () if isinstance(item, dict)]


# Pods and what holds templates of them


def pod_spec(spec: Object) -> None:
    """Fill in the spec of a Pod or of a template."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    _fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in _each(spec, field):
            _container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in _each(spec, "volumes"):
        _volume(volume)


def _container(container: Object, *, host_network: bool) -> None:
    policy = "Always" if _is_latest(container.get("image") or "") else "IfNotPresent"
    _fill(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy=policy,
    )
    for port in _each(container, "ports"):
        _fill(port, protocol="TCP")
        if host_network and port.get("containerPort"):
            _fill(port, hostPort=port["containerPort"])
    for env in _each(container, "env"):
        _field_ref((env.get("valueFrom") or {}).get("fieldRef"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name):
            _probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _http_get(hook.get("httpGet"))
    _limits_are_requests(container.get("resources") or {})


def _is_latest(image: str) -> bool:
    name = image.partition("@")[0]
    if "@" in image:
        return False
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return not colon or tag == "latest"


def _limits_are_requests(resources: Object) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _field_ref(reference: Object | None) -> None:
    if reference is not None:
        _fill(reference, apiVersion="v1")


def _probe(probe: Object) -> None:
    _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _http_get(probe.get("httpGet"))
    if probe.get("grpc") is not None:
        _fill(probe["grpc"], service="")


def _http_get(action: Object | None) -> None:
    if action is not None:
        _fill(action, path="/", scheme="HTTP")


_MODE: Final = 420


_NETWORK_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def _volume(volume: Object) -> None:
    for name, values in _NETWORK_DEFAULTS.items():
        if volume.get(name) is not None:
            _fill(volume[name], **values)
    sources = [name for name, value in volume.items() if name != "name" and value is not None]
    if not sources:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(name) is not None:
            _fill(volume[name], defaultMode=_MODE)
            _projected_items(volume[name])
    if volume.get("hostPath") is not None:
        _fill(volume["hostPath"], type="")
    if volume.get("ephemeral") is not None:
        claim = volume["ephemeral"].get("volumeClaimTemplate") or {}
        _fill(claim.setdefault("spec", {}), volumeMode="Filesystem")


def _projected_items(source: Object) -> None:
    for item in _each(source, "items"):
        _field_ref(item.get("fieldRef"))
    for inner in _each(source, "sources"):
        if inner.get("serviceAccountToken") is not None:
            _fill(inner["serviceAccountToken"], expirationSeconds=3600)
        for item in _each(inner.get("downwardAPI") or {}, "items"):
            _field_ref(item.get("fieldRef"))


def _pod(obj: Object) -> None:
    spec = obj["spec"]
    pod_spec(spec)
    _fill(spec, enableServiceLinks=True)


def _node(obj: Object) -> None:
    spec = obj.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]


def _template(spec: Object) -> None:
    template = spec.get("template")
    if template is not None:
        pod_spec(template.setdefault("spec", {}))


def _pod_template(obj: Object) -> None:
    if obj.get("template") is not None:
        pod_spec(obj["template"].setdefault("spec", {}))


# Workloads


def _rolling(update: Object, **values: Any) -> None:
    _fill(update, type="RollingUpdate")
    if update["type"] == "RollingUpdate":
        if update.get("rollingUpdate") is None:
            update["rollingUpdate"] = {}
        _fill(update["rollingUpdate"], **values)


def _deployment(obj: Object) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _rolling(spec.setdefault("strategy", {}), maxUnavailable="25%", maxSurge="25%")


def _replica_set(obj: Object) -> None:
    _template(obj["spec"])
    _fill(obj["spec"], replicas=1)


def _replication_controller(obj: Object) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, replicas=1)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def _daemon_set(obj: Object) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, revisionHistoryLimit=10)
    _rolling(spec.setdefault("updateStrategy", {}), maxUnavailable=1, maxSurge=0)
    annotations = obj["metadata"].setdefault("annotations", {})
    _fill(annotations, **{"deprecated.daemonset.template.generation": "1"})


def _stateful_set(obj: Object) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    _rolling(spec.setdefault("updateStrategy", {}), partition=0)
    if spec.get("persistentVolumeClaimRetentionPolicy") is None:
        spec["persistentVolumeClaimRetentionPolicy"] = {}
    _fill(spec["persistentVolumeClaimRetentionPolicy"], whenDeleted="Retain", whenScaled="Retain")
    for claim in _each(spec, "volumeClaimTemplates"):
        _fill(claim, kind="PersistentVolumeClaim", apiVersion="v1")
        _claim(claim)


def _job(obj: Object) -> None:
    _job_spec(obj["spec"])
    _fill(obj["spec"], manualSelector=False)
    template = obj["spec"].get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = (
            labels  # the same, not equal ones: what the template is given later, the Job has too
        )


def _job_spec(spec: Object) -> None:
    template = spec.get("template")
    if template is not None:
        pod_spec(template.setdefault("spec", {}))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        _fill(spec, completions=1, parallelism=1)
    _fill(spec, parallelism=1, completionMode="NonIndexed", suspend=False)
    _fill(spec, backoffLimit=2147483647 if spec.get("backoffLimitPerIndex") is not None else 6)
    _fill(spec, podReplacementPolicy="Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed")
    for rule in _each(spec.get("podFailurePolicy") or {}, "rules"):
        for condition in _each(rule, "onPodConditions"):
            if not condition.get("status"):
                condition["status"] = "True"


def _cron_job(obj: Object) -> None:
    spec = obj["spec"]
    _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    if template.get("template") is not None:
        pod_spec(template["template"].setdefault("spec", {}))


# Services and networking


def _service(obj: Object) -> None:
    spec = obj["spec"]
    _fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    else:
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        _fill(config, timeoutSeconds=10800)
    for port in _each(spec, "ports"):
        _fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    external = spec["type"] in ("NodePort", "LoadBalancer")
    if external or spec.get("externalIPs"):
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        _fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)
        for entry in _each((obj.get("status") or {}).get("loadBalancer") or {}, "ingress"):
            if entry.get("ip"):
                _fill(entry, ipMode="VIP")


def _endpoints(obj: Object) -> None:
    for subset in _each(obj, "subsets"):
        for port in _each(subset, "ports"):
            _fill(port, protocol="TCP")


def _endpoint_slice(obj: Object) -> None:
    for port in _each(obj, "ports"):
        _fill(port, name="", protocol="TCP")


def _network_policy(obj: Object) -> None:
    spec = obj["spec"]
    for rule in [*_each(spec, "ingress"), *_each(spec, "egress")]:
        for port in _each(rule, "ports"):
            _fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _ingress_class(obj: Object) -> None:
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        _fill(parameters, scope="Cluster")


# Configuration and storage


def _secret(obj: Object) -> None:
    _fill(obj, type="Opaque")
    texts: Mapping[str, str] | None = obj.pop("stringData", None)
    if texts:
        data = obj.setdefault("data", {})
        data.update({name: base64.b64encode(text.encode()).decode() for name, text in texts.items()})


def _claim(obj: Object) -> None:
    _fill(obj.setdefault("status", {}), phase="Pending")
    _fill(obj.setdefault("spec", {}), volumeMode="Filesystem")


def _volume_object(obj: Object) -> None:
    _fill(obj["status"], phase="Pending")
    _fill(obj["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if obj["spec"].get("hostPath") is not None:
        _fill(obj["spec"]["hostPath"], type="")


def _storage_class(obj: Object) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _csi_driver(obj: Object) -> None:
    _fill(
        obj["spec"],
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )
    if not obj["spec"].get("volumeLifecycleModes"):
        obj["spec"]["volumeLifecycleModes"] = ["Persistent"]


def _limit_range(obj: Object) -> None:
    for item in _each(obj["spec"], "limits"):
        if item.get("type") != "Container":
            continue
        for low, high in (("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")):
            for name, amount in (item.get(high) or {}).items():
                item.setdefault(low, {}).setdefault(name, amount)


# Policy, scaling, admission, access


_CPU_USE: Final = 80


def _autoscaler(obj: Object) -> None:
    spec = obj["spec"]
    _fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _CPU_USE}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        up, down = behavior.get("scaleUp") or {}, behavior.get("scaleDown") or {}
        by_percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        _fill(up, stabilizationWindowSeconds=0, selectPolicy="Max")
        _fill(down, selectPolicy="Max")
        if not up.get("policies"):
            up["policies"] = [{"type": "Pods", "value": 4, "periodSeconds": 15}, by_percent]
        if not down.get("policies"):
            down["policies"] = [dict(by_percent)]
        behavior["scaleUp"], behavior["scaleDown"] = up, down


def _old_autoscaler(obj: Object) -> None:
    spec = obj["spec"]
    _fill(spec, minReplicas=1)
    if "autoscaling.alpha.kubernetes.io/metrics" not in (obj["metadata"].get("annotations") or {}):
        _fill(spec, targetCPUUtilizationPercentage=_CPU_USE)


def _webhooks(obj: Object, *, mutating: bool) -> None:
    for webhook in _each(obj, "webhooks"):
        _fill(
            webhook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        if mutating:
            _fill(webhook, reinvocationPolicy="Never")
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            _fill(service, port=443)
        for rule in _each(webhook, "rules"):
            _fill(rule, scope="*")


def _policy(obj: Object) -> None:
    spec = obj["spec"]
    _fill(spec, failurePolicy="Fail")
    if spec.get("matchConstraints") is not None:
        _match(spec["matchConstraints"])


def _policy_binding(obj: Object) -> None:
    if obj["spec"].get("matchResources") is not None:
        _match(obj["spec"]["matchResources"])


def _match(match: Object) -> None:
    _fill(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in _each(match, name):
            _fill(rule, scope="*")


_RBAC: Final = "rbac.authorization.k8s.io"


def _binding(obj: Object) -> None:
    _fill(obj["roleRef"], apiGroup=_RBAC)
    if not obj["roleRef"].get("apiGroup"):
        obj["roleRef"]["apiGroup"] = _RBAC
    for subject in _each(obj, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _RBAC


def _priority_class(obj: Object) -> None:
    _fill(obj, preemptionPolicy="PreemptLowerPriority")


def _devices(spec: Object) -> None:
    for request in _each(spec.get("devices") or {}, "requests"):
        for wanted in (request.get("exactly"), *_each(request, "firstAvailable")):
            if wanted is None:
                continue
            if not wanted.get("allocationMode"):
                wanted["allocationMode"] = "ExactCount"
            if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                wanted["count"] = 1


def _api_service(obj: Object) -> None:
    service = obj["spec"].get("service")
    if service is not None:
        _fill(service, port=443)


def _namespace(obj: Object) -> None:
    _fill(obj["status"], phase="Active")
    if obj["metadata"].get("name"):
        labels = obj["metadata"].setdefault("labels", {})
        labels.setdefault("kubernetes.io/metadata.name", obj["metadata"]["name"])


DEFAULTS: Final[Mapping[str, Default]] = {
    "pods": _pod,
    "podtemplates": _pod_template,
    "nodes": _node,
    "namespaces": _namespace,
    "replicationcontrollers": _replication_controller,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "daemonsets.apps": _daemon_set,
    "statefulsets.apps": _stateful_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "services": _service,
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "networkpolicies.networking.k8s.io": _network_policy,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "secrets": _secret,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume_object,
    "storageclasses.storage.k8s.io": _storage_class,
    "csidrivers.storage.k8s.io": _csi_driver,
    "limitranges": _limit_range,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "horizontalpodautoscalers.autoscaling/v1": _old_autoscaler,
    "resourceclaims.resource.k8s.io": lambda obj: _devices(obj["spec"]),
    "resourceclaimtemplates.resource.k8s.io": lambda obj: _devices(obj["spec"].get("spec") or {}),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": lambda obj: _webhooks(obj, mutating=False),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": lambda obj: _webhooks(obj, mutating=True),
    "validatingadmissionpolicies.admissionregistration.k8s.io": _policy,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _policy_binding,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _policy_binding,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "apiservices.apiregistration.k8s.io": _api_service,
}
"""What fills in objects of a resource, or of one version of it."""

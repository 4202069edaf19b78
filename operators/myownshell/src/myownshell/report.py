"""What the status says."""

from collections.abc import Sequence

from flyball import find_condition, is_true
from flyball.client.selectors import label_text
from flyball.controller import bounded
from flyball.k8s.apps.v1 import Deployment, DeploymentStatus
from flyball.k8s.core.v1 import Pod

from myownshell.api import MyOwnShell
from myownshell.children import selector_of
from myownshell.lifetime import Lifetime


def is_ready(pod: Pod) -> bool:
    """Whether somebody can enter."""
    return is_true(pod.status.conditions, "Ready")


def report(
    shell: MyOwnShell, deployment: Deployment | None, pods: Sequence[Pod], lifetime: Lifetime, *, contested: bool
) -> None:
    """Put into the status what was found."""
    status, open_shells = shell.status, _counted(shell, deployment, pods)
    if open_shells:
        status.connect = f"kubectl exec -it -n {shell.metadata.namespace} {open_shells[0]} -- {shell.spec.shell}"
    status.expires_at = lifetime.end
    _available(shell, lifetime)
    _progressing(shell, deployment)
    _degraded(shell, deployment.status if deployment is not None else DeploymentStatus(), pods, contested)


def report_closing(shell: MyOwnShell, deployment: Deployment | None, pods: Sequence[Pod]) -> None:
    """The same for a shell that is being deleted; what its spec says does not matter any more."""
    _counted(shell, deployment, pods)
    shell.status.set_condition("Available", False, reason="ScaledToZero", message="the shells are being closed")
    shell.status.set_condition("Progressing", True, reason="Deleting", message="the shells are being closed")


def _counted(shell: MyOwnShell, deployment: Deployment | None, pods: Sequence[Pod]) -> list[str]:
    status, found = shell.status, deployment.status if deployment is not None else DeploymentStatus()
    status.replicas, status.ready_replicas = found.replicas or 0, found.ready_replicas or 0
    status.selector = label_text(selector_of(shell))
    status.shells, _ = bounded([pod.metadata.name for pod in pods if is_ready(pod) and _stays(pod)], 20)
    status.connect = None
    return status.shells


def _stays(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None


def _available(shell: MyOwnShell, lifetime: Lifetime) -> None:
    status, size, ready = shell.status, shell.spec.size, shell.status.ready_replicas
    told = f"{ready} of {size} shells are ready"
    if lifetime.over:
        message = f"they were closed at {lifetime.end:%Y-%m-%dT%H:%M:%SZ}; change the annotation renew to open them"
        status.set_condition("Available", False, reason="Expired", message=message)
    elif size == 0:
        status.set_condition("Available", False, reason="ScaledToZero", message="no shell is asked for")
    elif ready < size:
        status.set_condition("Available", False, reason="ShellsStarting", message=told)
    else:
        status.set_condition("Available", True, reason="ShellsReady", message=told)


def _progressing(shell: MyOwnShell, deployment: Deployment | None) -> None:
    status = shell.status
    if deployment is None or not _is_rolled_out(deployment):
        status.set_condition("Progressing", True, reason="RollingOut", message="shells are being opened or closed")
    else:
        status.set_condition("Progressing", False, reason="Stable")


def _is_rolled_out(deployment: Deployment) -> bool:
    found, wanted = deployment.status, deployment.spec.replicas
    seen = (found.observed_generation or 0) >= (deployment.metadata.generation or 0)
    return seen and {found.replicas or 0, found.updated_replicas or 0, found.available_replicas or 0} == {wanted}


def _degraded(shell: MyOwnShell, found: DeploymentStatus, pods: Sequence[Pod], contested: bool) -> None:
    status = shell.status
    failure, progress = (find_condition(found.conditions, one) for one in ("ReplicaFailure", "Progressing"))
    if contested:
        message = (
            f"somebody else keeps changing the replicas of Deployment {shell.metadata.name}; "
            "let autoscalers and people scale the MyOwnShell instead"
        )
        status.set_condition("Degraded", True, reason="ReplicasContested", message=message)
    elif failure is not None and failure.status == "True":
        status.set_condition("Degraded", True, reason="ReplicaFailure", message=failure.message or "")
    elif progress is not None and progress.reason == "ProgressDeadlineExceeded":
        told = dict.fromkeys([progress.message or "", *(_waits_for(pod) for pod in pods if _stays(pod))])
        message = "; ".join(one for one in told if one)
        status.set_condition("Degraded", True, reason="ProgressDeadlineExceeded", message=message)
    else:
        status.set_condition("Degraded", False, reason="AsExpected")


def _waits_for(pod: Pod) -> str:
    for one in pod.status.container_statuses or ():
        if one.state is not None and one.state.waiting is not None:
            return f"{one.state.waiting.reason}: {one.state.waiting.message}"
    return ""

"""The objects that a MyOwnShell owns."""

from flyball.controller import child_labels
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
from flyball.k8s.core.v1 import (
    Capabilities,
    ConfigMap,
    Container,
    EnvVar,
    ExecAction,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    Probe,
    SeccompProfile,
    SecurityContext,
)
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta

from myownshell.api import MyOwnShell

APP = {"app": "myownshell"}
OWNER = "myownshell_cr"
NOBODY = 65534

WAIT = """\
printf '%s\\n' "$MESSAGE"
trap 'kill $!; exit 0' TERM INT
while true; do sleep 3600 & wait $!; done
"""
"""A shell that is PID 1 ignores SIGTERM unless it says otherwise, and hears of it only while it waits."""


def selector_of(shell: MyOwnShell) -> dict[str, str]:
    """The labels of a shell's pods."""
    return {**APP, OWNER: shell.metadata.name}


def deployment_of(shell: MyOwnShell, replicas: int, *, restricted: bool) -> Deployment:
    """The Deployment that keeps the pods."""
    spec, labels = shell.spec, child_labels(shell, manager="myownshell", component="shell")
    selector = selector_of(shell)
    container = Container(
        name="busybox",
        image=spec.image,
        command=[spec.shell, "-c", WAIT],
        env=[EnvVar(name="MESSAGE", value=spec.message.replace("$", "$$"))],
        resources=spec.resources,
        readiness_probe=Probe(exec=ExecAction(command=[spec.shell, "-c", "true"])),
        security_context=SecurityContext(
            allow_privilege_escalation=False,
            capabilities=Capabilities(drop=["ALL"]),
            run_as_non_root=True if restricted else None,
            run_as_user=NOBODY if restricted else None,
        ),
    )
    pod = PodSpec(
        containers=[container],
        termination_grace_period_seconds=5,
        security_context=PodSecurityContext(seccomp_profile=SeccompProfile(type="RuntimeDefault")),
        automount_service_account_token=spec.service_account_name is not None,
        service_account_name=spec.service_account_name or "default",
        node_selector=spec.node_selector,
        tolerations=spec.tolerations,
    )
    return Deployment(
        metadata=ObjectMeta(name=shell.metadata.name, labels={**labels, **selector}),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=selector),
            template=PodTemplateSpec(metadata=ObjectMeta(labels={**labels, **selector}), spec=pod),
        ),
    )


def settings_of(shell: MyOwnShell, notes: dict[str, str]) -> ConfigMap:
    """The ConfigMap that tells how the shells are set up; its annotations are the operator's notebook."""
    return ConfigMap(
        metadata=ObjectMeta(
            name=shell.metadata.name,
            labels=child_labels(shell, manager="myownshell", component="settings"),
            annotations=notes,
        ),
        data={"replicas": str(shell.spec.size), "image": shell.spec.image, "message": shell.spec.message},
    )

"""The API: what a MyOwnShell looks like."""

from datetime import datetime
from typing import Annotated

from flyball import (
    Ge,
    Int32,
    Int64,
    Le,
    MaxLength,
    MinLength,
    PrintColumn,
    Resource,
    Rule,
    Scale,
    Spec,
    Status,
    field,
)
from flyball.k8s.core.v1 import ResourceRequirements, Toleration

GROUP = "my-first-operator.jgato.io"

NAME_FITS = Rule(
    "size(self.metadata.name) <= 63",
    message="metadata.name must be no more than 63 characters: it is the value of a label",
)

IS_ABSOLUTE = Rule("self.startsWith('/')", message="must be an absolute path")


class MyOwnShellSpec(Spec):
    """What is asked for."""

    size: Annotated[Int32, Ge(0), Le(100)]
    """How many shells to keep open."""
    image: Annotated[str, MinLength(1)] = "busybox:1.36"
    """The image to run."""
    message: Annotated[str, MaxLength(1024)] = "shell ready, use exec to enter"
    """What a shell writes into its log when it starts."""
    shell: Annotated[str, MaxLength(1024), IS_ABSOLUTE] = "/bin/sh"
    """The program to open, by its absolute path in the image."""
    lifetime_seconds: Annotated[Int64, Ge(60)] | None = None
    """Close the shells so long after the creation, or after the annotation `renew` was changed last."""
    resources: ResourceRequirements = ResourceRequirements(requests={"cpu": "10m", "memory": "16Mi"})
    """What one shell needs and may use."""
    node_selector: dict[str, str] | None = None
    """Labels of the nodes to run on."""
    tolerations: list[Toleration] | None = None
    """Taints of nodes that do not matter."""
    service_account_name: str | None = None
    """The ServiceAccount of the pods; without one they get no token."""


class MyOwnShellStatus(Status):
    """What was found."""

    replicas: Int32 = 0
    """How many pods there are."""
    ready_replicas: Int32 = 0
    """How many of them are ready."""
    selector: str | None = None
    """The label selector of the pods, for autoscalers."""
    shells: list[str] = field(default_factory=list)
    """The names of pods that are ready, the first 20."""
    connect: str | None = None
    """The command that opens the first of them."""
    expires_at: datetime | None = None
    """When the shells are closed."""


class MyOwnShell(
    Resource,
    group=GROUP,
    version="v1alpha1",
    short_names=["mos"],
    rules=[NAME_FITS],
    scale=Scale(spec=".spec.size", status=".status.replicas", selector=".status.selector"),
    columns=[
        PrintColumn("Size", ".spec.size"),
        PrintColumn("Ready", ".status.readyReplicas"),
        PrintColumn("Available", '.status.conditions[?(@.type=="Available")].status', type="string"),
        PrintColumn("Age", ".metadata.creationTimestamp"),
        PrintColumn("Image", ".spec.image", priority=1),
        PrintColumn("Expires", ".status.expiresAt", type="string", priority=1),
    ],
):
    """Pods that wait for somebody to open a shell in them."""

    spec: MyOwnShellSpec
    status: MyOwnShellStatus

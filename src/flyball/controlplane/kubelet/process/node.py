"""What the Pods of a node have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from flyball.client import Client
from flyball.clock import Clock
from flyball.controller import EventRecorder
from flyball.controlplane.kubelet.process.environment import Surroundings
from flyball.controlplane.kubelet.process.guarding import Guard, Isolation
from flyball.controlplane.kubelet.process.images import Images
from flyball.controlplane.kubelet.process.logs import Bounds

__all__ = ["Limits", "Node"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may take."""

    logs: Bounds = field(default_factory=Bounds)
    pids: int = 1024
    """Processes and threads, where a control group or a user namespace can count them."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node whose Pods are processes of this machine."""

    name: str
    client: Client
    clock: Clock
    recorder: EventRecorder
    guard: Guard
    isolation: Isolation
    images: Images
    around: Surroundings
    folder: Path
    """Where Pods have their files."""
    limits: Limits
    host_paths: Sequence[Path]

    def tell(self, pod: Any, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Say something about a Pod by an event."""
        self.recorder.record(pod, type_, reason, message, reporter="kubelet")

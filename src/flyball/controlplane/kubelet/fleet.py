"""What a cluster asks of the nodes in it: that they are there, and that somebody runs the Pods on them.

A fleet is one way to do that: simulated, or as processes of this machine. `flyball.controlplane.controllers.workloads`
makes one with what it needs (`Setting`), starts it before the controllers, and stops it after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flyball.cache import InformerCache
from flyball.client import Client
from flyball.clock import Clock
from flyball.controller import Controller
from flyball.controller.events import EventRecorder
from flyball.controlplane.apiserver.kubelets import Kubelets

__all__ = ["Fleet", "MakeFleet", "Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a fleet is given."""

    client: Client
    """The way to the cluster."""
    clock: Clock
    cache: InformerCache
    """What is watched. It is started after the fleet, so handlers that it adds at its start hear of everything."""
    recorder: EventRecorder
    """Says things about objects."""
    kubelets: Kubelets
    """Where it registers for logs and the like, under the names of its nodes; nobody asks there on other clusters."""


class Fleet(Protocol):
    """Nodes, and whoever runs their Pods."""

    @property
    def controllers(self) -> Sequence[Controller[Any]]:
        """The controllers that act for its kubelets; asked once, after `start`."""
        ...

    async def start(self) -> None:
        """Make the nodes, those that an earlier life left included, and register for them."""
        ...

    async def stop(self) -> None:
        """Leave nothing running. The nodes stay as they are stored. Called also when `start` has failed."""
        ...


MakeFleet = Callable[[Setting], Fleet]

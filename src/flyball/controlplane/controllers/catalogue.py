"""The controllers by the names that kube-controller-manager gives them, and the choice among them.

    CATALOGUE   controllers of workloads, which a manager runs
    LOOPS       the small loops that are part of every cluster (`running.NAMES`)

A choice is what kube-controller-manager's `--controllers` takes: `*` is all of them, `name` one, `-name` all but this
one, and of two words about the same controller the first counts. Names may be written without the `-controller` at
their end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flyball.client import Client
from flyball.controller import Controller
from flyball.controlplane.controllers.cronjobs import cronjob_controllers
from flyball.controlplane.controllers.deployments import deployments
from flyball.controlplane.controllers.endpoints import endpoints
from flyball.controlplane.controllers.endpointslices import endpointslices
from flyball.controlplane.controllers.jobs import job_controllers
from flyball.controlplane.controllers.mirroring import mirrored
from flyball.controlplane.controllers.protection import claims, volumes
from flyball.controlplane.controllers.replicasets import replicasets, replicationcontrollers
from flyball.controlplane.controllers.statefulsets import statefulsets
from flyball.controlplane.controllers.ttl import ttl
from flyball.errors import ConfigError

__all__ = ["CATALOGUE", "EVERYTHING", "LOOPS", "UnknownController", "chosen", "loops"]

Make = Callable[[Client], Sequence[Controller[Any]]]

CATALOGUE: Final[dict[str, Make]] = {
    "cronjob-controller": lambda _: cronjob_controllers(),
    "deployment-controller": lambda _: [deployments],
    "endpoints-controller": lambda _: [endpoints()],
    "endpointslice-controller": lambda _: [endpointslices()],
    "endpointslice-mirroring-controller": lambda _: [mirrored],
    "job-controller": lambda _: job_controllers(),
    "persistentvolume-protection-controller": lambda _: [volumes],
    "persistentvolumeclaim-protection-controller": lambda _: [claims],
    "replicaset-controller": lambda _: [replicasets],
    "replicationcontroller-controller": lambda _: [replicationcontrollers],
    "statefulset-controller": lambda _: [statefulsets],
    "ttl-after-finished-controller": lambda _: [ttl],
}
"""Makes the Flyball controllers that stand for one controller of kube-controller-manager; the client is its own."""

LOOPS: Final = {
    "garbage-collector-controller": "garbage-collector",
    "namespace-controller": "namespace",
    "root-ca-certificate-publisher-controller": "root-ca-certificate-publisher",
    "serviceaccount-controller": "serviceaccount",
    "event-ttl": "event-ttl",
}
"""The loops, by the names of kube-controller-manager. It has no `event-ttl`: there the storage forgets Events."""

EVERYTHING: Final = ("*",)

_SUFFIX: Final = "-controller"
_ALIASES: Final = {"garbagecollector": "garbage-collector", "root-ca-cert-publisher": "root-ca-certificate-publisher"}


class UnknownController(ConfigError, ValueError):
    """A name was chosen that no controller has."""


def chosen(wanted: Sequence[str] = EVERYTHING) -> list[str]:
    """Return the names of the workload controllers that a choice means. Raises UnknownController."""
    choice = _read(wanted)
    return [name for name in CATALOGUE if choice.get(name, choice.get("*", False))]


def loops(wanted: Sequence[str] = EVERYTHING) -> list[str]:
    """Return the loops that a choice means, as `running.NAMES` calls them. Raises UnknownController.

    Events are forgotten unless somebody says `-event-ttl`: on other clusters that is nothing one could choose.
    """
    choice = _read(wanted)
    choice.setdefault("event-ttl", True)
    return [loop for name, loop in LOOPS.items() if choice.get(name, choice.get("*", False))]


def _read(wanted: Sequence[str]) -> dict[str, bool]:
    """Tell for each name in a choice whether it is wanted; `*` stands for those without a word of their own."""
    found: dict[str, bool] = {}
    unknown: list[str] = []
    for word in (part.strip() for part in wanted):
        if not word:
            continue
        name = word if word == "*" else _full(word.removeprefix("-"))
        if name is None:
            unknown.append(word.removeprefix("-"))
        else:
            found.setdefault(name, not word.startswith("-"))
    if unknown:
        known = ", ".join(sorted({*CATALOGUE, *LOOPS}))
        raise UnknownController(f"there is no controller {', '.join(sorted(set(unknown)))}; there are {known}")
    return found


def _full(name: str) -> str | None:
    plain = _ALIASES.get(name, name)
    return next((one for one in (plain, plain + _SUFFIX) if one in CATALOGUE or one in LOOPS), None)

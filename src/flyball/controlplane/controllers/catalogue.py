"""The controllers of workloads by the names that kube-controller-manager gives them, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flyball.client import Client
from flyball.controller import Controller
from flyball.controlplane.controllers.deployments import deployments
from flyball.controlplane.controllers.jobs import jobs, orphans
from flyball.controlplane.controllers.replicasets import replicasets

__all__ = ["CATALOGUE", "EVERYTHING", "UnknownController", "chosen"]

Make = Callable[[Client], Sequence[Controller[Any]]]

CATALOGUE: Final[dict[str, Make]] = {
    "deployment-controller": lambda _: [deployments],
    "job-controller": lambda _: [jobs, orphans],
    "replicaset-controller": lambda _: [replicasets],
}
"""Makes the Flyball controllers that stand for one controller of kube-controller-manager; the client is its own."""

EVERYTHING: Final = ("*",)


class UnknownController(ValueError):
    """A name was chosen that no controller has."""


def chosen(wanted: Sequence[str] = EVERYTHING) -> list[str]:
    """Return the names that a choice means, as kube-controller-manager reads its `--controllers`.

    `*` is all of them, `name` one, `-name` all but this one (which needs a `*` to have something to take away from).
    """
    bare = {one.removeprefix("-") for one in wanted} - {"*"}
    unknown = sorted(bare - set(CATALOGUE))
    if unknown:
        raise UnknownController(f"there is no controller {', '.join(unknown)}; there are {', '.join(CATALOGUE)}")
    return [name for name in CATALOGUE if name in wanted or ("*" in wanted and f"-{name}" not in wanted)]

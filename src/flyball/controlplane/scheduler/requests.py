"""What a Pod asks for, in whole numbers: thousandths of a processor, bytes, pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from flyball.api import Quantity
from flyball.controlplane.scheduler.seen import Container, PodSeen

__all__ = ["Amounts", "amounts", "requests_of"]

Amounts = dict[str, int]


@lru_cache(maxsize=8192)
def _amount(name: str, value: str) -> int:
    number = Quantity(value).value * (1000 if name == "cpu" else 1)
    whole = int(number)
    return whole if whole == number else whole + 1


def amounts(given: Mapping[str, object] | None) -> Amounts:
    """Read a list of resources."""
    return {name: _amount(name, str(value)) for name, value in given.items()} if given else {}


def requests_of(pod: PodSeen) -> Amounts:
    """Return what a Pod asks for.

    All containers together, and those that are started first and stay; or, when that is more, what is needed while an
    init container runs. What the Pod asks for as a whole takes their place; its overhead comes on top.
    """
    spec = pod.spec
    total = _together(spec.containers)
    if spec.init_containers:
        beside: Amounts = {}
        peak: Amounts = {}
        for container in spec.init_containers:
            own = _of(container)
            if container.restart_policy == "Always":
                _add(beside, own)
                own = {}
            for name in own.keys() | beside.keys():
                peak[name] = max(peak.get(name, 0), own.get(name, 0) + beside.get(name, 0))
        _add(total, beside)
        for name, amount in peak.items():
            total[name] = max(total.get(name, 0), amount)
    if spec.resources is not None:
        total.update(amounts(spec.resources.requests))
    if spec.overhead:
        _add(total, amounts(spec.overhead))
    return total


def _of(container: Container) -> Amounts:
    return amounts(container.resources.requests) if container.resources is not None else {}


def _together(containers: Iterable[Container]) -> Amounts:
    total: Amounts = {}
    for container in containers:
        _add(total, _of(container))
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount

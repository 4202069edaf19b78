"""Stages: what happens to Pods of one's choice, as data.

    @stage("flaky", labels={"app": "flaky"}, where=[Match(".status.phase", "In", ["Running"])], delay=2.0)
    def flaky(pod: SimulatedPod) -> None:
        pod.end("main", exit_code=1)

A stage selects Pods by labels, annotations and what stands at JSON paths, waits, and changes the Pod: a Python function
does it, or actions read from YAML (`stage_files`). As long as a stage selects a Pod, it is what happens next, and the
usual life waits; when the Pod has changed so that no stage selects it, the usual life goes on. Of several that select
it the first counts, or one of them by chance when they have weights. A stage without a word on `deletionTimestamp`
does not hold up a Pod that is being deleted.

Chance (jitter, weights) comes from a seed, the Pod's name and the number of the pass: the same Pods live the same way
each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from flyball.controlplane.apiserver.printing.jsonpath import JsonPath, JsonPathError, as_text
from flyball.controlplane.kubelet.simulated.state import SimulatedPod
from flyball.errors import ConfigError

__all__ = ["Match", "Stage", "chosen_stage", "stage"]

Act = Callable[[SimulatedPod], None]

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True)
class Match:
    """What must stand at a JSON path: `Match(".status.phase", "In", ["Running"])`."""

    key: str
    """A path as kubectl's: `.spec.nodeName`, `.status.conditions[?(@.type=="Ready")].status`."""
    operator: str = "Exists"
    values: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be meant. Raises ConfigError."""
        if self.operator not in OPERATORS:
            raise ConfigError(f"{self.key}: operator {self.operator!r} is not one of {', '.join(OPERATORS)}")
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            raise ConfigError(f"{self.key}: {self.operator} {'needs' if not self.values else 'takes no'} values")
        _ = self._path

    @cached_property
    def _path(self) -> JsonPath:
        try:
            return JsonPath(self.key)
        except JsonPathError as error:
            raise ConfigError(f"{self.key}: {error}; write a path like .status.phase") from None

    def holds(self, pod: Mapping[str, Any]) -> bool:
        """Tell whether it is so."""
        try:
            found = [as_text(one) for one in self._path.find(pod) if one not in (None, "", [], {})]
        except JsonPathError:
            found = []
        match self.operator:
            case "In":
                return any(one in self.values for one in found)
            case "NotIn":
                return not any(one in self.values for one in found)
            case "Exists":
                return bool(found)
            case _:
                return not found


@dataclass(frozen=True)
class Stage:
    """See the module."""

    name: str
    act: Act
    """What happens."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    where: Sequence[Match] = ()
    delay: float = 0.0
    """Seconds for which the Pod waits in this stage."""
    jitter: float = 0.0
    """Up to so many seconds more, by chance."""
    weight: int = 0
    """Above 0: how likely it is among the stages with weights that select the same Pod."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant. Raises ConfigError."""
        if self.delay < 0 or self.jitter < 0 or self.weight < 0:
            raise ConfigError(f"stage {self.name}: delay, jitter and weight are not negative")

    def selects(self, pod: SimulatedPod) -> bool:
        """Tell whether it is about this Pod, as it is now."""
        if pod.deleting and not any("deletionTimestamp" in one.key for one in self.where):
            return False
        metadata = pod.pod["metadata"]
        return (
            self.labels.items() <= (metadata.get("labels") or {}).items()
            and self.annotations.items() <= (metadata.get("annotations") or {}).items()
            and all(one.holds(pod.pod) for one in self.where)
        )

    def wait(self, chance: random.Random) -> float:
        """Return the seconds for which a Pod waits."""
        return self.delay + (chance.uniform(0, self.jitter) if self.jitter else 0.0)


def stage(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    where: Sequence[Match] = (),
    delay: float = 0.0,
    jitter: float = 0.0,
    weight: int = 0,
) -> Callable[[Act], Stage]:
    """Make a stage of a function that changes a Pod."""

    def made(act: Act) -> Stage:
        return Stage(name, act, labels or {}, annotations or {}, where, delay, jitter, weight)

    return made


def chosen_stage(stages: Sequence[Stage], pod: SimulatedPod, chance: random.Random) -> Stage | None:
    """Return the stage that a Pod is in; None when it lives as usual."""
    found = [one for one in stages if one.selects(pod)]
    if not found:
        return None
    if not found[0].weight:
        return found[0]
    weighted = [one for one in found if one.weight]
    return chance.choices(weighted, [one.weight for one in weighted])[0]

"""How people are told that no node takes a Pod: the sentences of kube-scheduler 1.36.

Of preemption, which it does not do, this scheduler says what kube-scheduler says when there is nothing to preempt; and
when there would be, that it does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from flyball.controlplane.scheduler.filters import Refusal

__all__ = ["GATED", "NO_NODES", "no_node_takes_it", "not_even_looked"]

NO_NODES: Final = "no nodes available to schedule pods"
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"

_NO_HELP: Final = "Preemption is not helpful for scheduling"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NOT_DONE: Final = "Preemption would help and is not done by this scheduler"


def no_node_takes_it(refusals: Iterable[tuple[Refusal, bool]], *, never: bool) -> str:
    """Tell it from what each node said, and whether it has less important Pods.

    `never`: the Pod does not want others to go for it.
    """
    reasons: Counter[str] = Counter()
    help_: Counter[str] = Counter()
    nodes = 0
    for refusal, has_victims in refusals:
        nodes += 1
        reasons.update(refusal.reasons)
        help_[_NO_HELP if refusal.lasting else _NOT_DONE if has_victims else _NO_VICTIMS] += 1
    first = f"0/{nodes} nodes are available: {_counted(reasons)}."
    if never:
        return f"{first} no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    return f"{first} no new claims to deallocate, preemption: 0/{nodes} nodes are available: {_counted(help_)}."


def not_even_looked(nodes: int, reason: str) -> str:
    """Tell what keeps a Pod from every node alike."""
    return f"0/{nodes} nodes are available: {reason}. not found"


def _counted(words: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {word}" for word, count in words.items()))

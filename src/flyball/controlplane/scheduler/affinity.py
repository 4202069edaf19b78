"""Which nodes a Pod wants: its node selector, and its node affinity."""

from __future__ import annotations

from collections.abc import Mapping

from flyball.controlplane.scheduler.seen import PodSeen, Selector, Term

__all__ = ["names_wanted", "preference", "wants_node"]


def wants_node(pod: PodSeen, name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether the node selector and the required affinity of a Pod select a node."""
    selector = pod.spec.node_selector
    if selector and any(labels.get(key) != value for key, value in selector.items()):
        return False
    terms = _required(pod)
    return terms is None or any(_holds(term, name, labels) for term in terms)


def names_wanted(pod: PodSeen) -> frozenset[str] | None:
    """Return the names of the only nodes that a Pod wants, when every term of its affinity names some; else None."""
    terms = _required(pod)
    if not terms:
        return None
    found: set[str] = set()
    for term in terms:
        named = [set(one.values) for one in term.match_fields if one.key == "metadata.name" and one.operator == "In"]
        if not named:
            return None
        found |= set.intersection(*named)
    return frozenset(found)


def preference(pod: PodSeen, name: str, labels: Mapping[str, str]) -> int:
    """Return the weight of what a Pod prefers and a node has."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return 0
    preferred = affinity.node_affinity.preferred
    return sum(one.weight for one in preferred if _holds(one.preference, name, labels))


def _required(pod: PodSeen) -> tuple[Term, ...] | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return None
    return affinity.node_affinity.required.node_selector_terms


def _holds(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not (term.match_expressions or term.match_fields):
        return False
    fields = {"metadata.name": name}
    return all(_selects(one, labels) for one in term.match_expressions) and all(
        _selects(one, fields) for one in term.match_fields
    )


def _selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    present = labels.get(selector.key)
    match selector.operator:
        case "In":
            return present in selector.values
        case "NotIn":
            return present not in selector.values
        case "Exists":
            return present is not None
        case "DoesNotExist":
            return present is None
        case "Gt" | "Lt":
            return _compares(selector, present)
        case _:
            return False


def _compares(selector: Selector, present: str | None) -> bool:
    try:
        ours, bound = int(present or ""), int(selector.values[0])
    except (ValueError, IndexError):
        return False
    return ours > bound if selector.operator == "Gt" else ours < bound

"""Horizontal places: as near to what is wished as the order and the sizes allow."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flyball.fsm.draw.layered import Node

__all__ = ["place_rows", "spread"]

_ROUNDS = 60
_WORK = 60_000
"""How many nodes may be moved in all before there are fewer rounds."""
_PULL = {
    ("box", "box"): 1.0,
    ("box", "label"): 1.0,
    ("box", "trunk"): 0.4,
    ("label", "box"): 1.0,
    ("label", "trunk"): 2.0,
    ("trunk", "box"): 0.5,
    ("trunk", "label"): 0.15,
    ("trunk", "trunk"): 12.0,
}
"""How strongly the first wants to stand where the second stands."""
_MASS = {"box": 3.0, "label": 1.0, "trunk": 5.0}
"""How hard it is to push aside."""


def place_rows(rows: Sequence[Sequence[Node]]) -> None:
    """Give every node its horizontal place; the order of the rows is kept."""
    for row in rows:
        x = 0.0
        for index, node in enumerate(row):
            if index:
                x += _apart(row[index - 1], node)
            node.x = x
        middle = (row[0].x - row[0].left + row[-1].x + row[-1].right) / 2 if row else 0.0
        for node in row:
            node.x -= middle
    trunks = _trunks(rows)
    rounds = max(min(_ROUNDS, _WORK // max(sum(map(len, rows)), 1)), 8)
    for turn in range(rounds):
        late = turn >= rounds // 2
        for row in rows:
            _settle(row, up=True, down=late)
        for row in reversed(rows):
            _settle(row, up=late, down=True)
        if late:
            _straighten(trunks)
    for row in rows:
        _settle(row, up=True, down=True, rigid=True)


def _trunks(rows: Sequence[Sequence[Node]]) -> list[list[Node]]:
    """The pieces of each trunk."""
    found: dict[Hashable, list[Node]] = {}
    for row in rows:
        for node in row:
            if node.trunk is not None:
                found.setdefault(node.trunk, []).append(node)
    return list(found.values())


def _straighten(trunks: Sequence[Sequence[Node]]) -> None:
    """Put the pieces of each trunk below each other."""
    for trunk in trunks:
        x = sum(node.x for node in trunk) / len(trunk)
        for node in trunk:
            node.x = x


def spread(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Ascending wishes, moved as little as possible until they are `apart` and between two bounds."""
    if not wanted:
        return []
    offsets = [apart * index for index in range(len(wanted))]
    places = _ascending([wish - offset for wish, offset in zip(wanted, offsets, strict=True)], [1.0] * len(wanted))
    highest = high - offsets[-1]
    return [max(min(place, highest), low) + offset for place, offset in zip(places, offsets, strict=True)]


def _settle(row: Sequence[Node], *, up: bool, down: bool, rigid: bool = False) -> None:
    """Move the nodes of a row towards their neighbours; trunks stay where they are when they are `rigid`."""
    if not row:
        return
    offsets = [0.0]
    for one, other in itertools.pairwise(row):
        offsets.append(offsets[-1] + _apart(one, other))
    wishes = [
        (node.x if rigid and node.trunk is not None else _wish(node, up=up, down=down)) - offset
        for node, offset in zip(row, offsets, strict=True)
    ]
    places = _ascending(
        wishes,
        [_MASS[node.kind] * (40.0 if rigid else 1.0) if node.trunk is not None else _MASS[node.kind] for node in row],
    )
    for node, place, offset in zip(row, places, offsets, strict=True):
        node.x = place + offset


def _wish(node: Node, *, up: bool, down: bool) -> float:
    near = [*(node.up if up else ()), *(node.down if down else ())]
    if not near:
        return node.x
    pulls = [_pull(node, one) for one in near]
    moment: float = sum(pull * one.x for pull, one in zip(pulls, near, strict=True))
    return moment / sum(pulls)


def _pull(one: Node, other: Node) -> float:
    return _PULL[one.kind, other.kind] * (other.weight if one.kind == "box" else 1.0)


def _apart(one: Node, other: Node) -> float:
    """How far apart the middles of two neighbours must be."""
    gap = 26.0 if one.kind == other.kind == "box" else 8.0 if one.kind == other.kind == "trunk" else 12.0
    return one.right + other.left + gap


def _ascending(wishes: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The ascending numbers nearest to the wishes in weighted least squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for wish, weight in zip(wishes, weights, strict=True):
        mean, mass, count = wish, weight, 1
        while blocks and blocks[-1][0] > mean:
            before, heavy, many = blocks.pop()
            mean = (before * heavy + mean * mass) / (heavy + mass)
            mass, count = mass + heavy, count + many
        blocks.append((mean, mass, count))
    return [mean for mean, _, count in blocks for _ in range(count)]

"""A layered layout of one level: boxes in rows from the first downwards, links between them, labels beside the links.

1. Links that lead back are turned round until the graph has no cycle.
2. Every box gets a row: below everything that leads to it.
3. Between two rows of boxes is a row for labels. A link has its label in the row next to its source. Links over
   several rows share one trunk per target, so that many ways to one state stay one line.
4. The rows are ordered by barycentres, down and up, and the order with the fewest crossings is kept.
5. Horizontal places are the weighted least squares of where the neighbours are, in the given order and without
   overlap, solved exactly per row and repeated.

The result depends on the input only; nothing is random.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from flyball.fsm.draw.places import place_rows, spread

__all__ = ["Box", "Layout", "Link", "Node", "Route", "layout"]

_SWEEPS = 16
_LARGE = 1200
"""Nodes from which on less effort is made, so that a large machine is drawn in a few seconds."""


@dataclass(slots=True)
class Box:
    """Something to place: half the width of its body, its height, and how far things beside it reach to the right."""

    key: str
    half: float
    height: float
    beside: float = 0.0


@dataclass(slots=True)
class Link:
    """A way from one box to another with the size of its label; links of one `bundle` to one target share a trunk."""

    source: str
    target: str
    width: float = 0.0
    height: float = 0.0
    bundle: str = ""
    weight: float = 1.0
    """How much it counts that the link is straight."""


@dataclass(slots=True, eq=False)
class Node:
    """A box, a label or a piece of a trunk, in a row."""

    left: float
    right: float
    height: float
    rank: int
    kind: str
    half: float = 0.0
    weight: float = 1.0
    trunk: Hashable = None
    x: float = 0.0
    y: float = 0.0
    index: int = 0
    up: list[Node] = field(default_factory=list)
    down: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Route:
    """The way of a link: points at which it is vertical, from the source to the target, and where its label stands."""

    points: list[tuple[float, float]]
    label: tuple[float, float] | None
    """The middle of the label's left edge."""


@dataclass(slots=True)
class Layout:
    """The middle of every box, the routes in the order of the links, and the size of it all; places begin at 0."""

    boxes: dict[str, tuple[float, float]]
    routes: list[Route]
    width: float
    height: float


def layout(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Place boxes and links; the first box is where the reader begins. No link leads from a box to itself."""
    ranks = _ranks(boxes, links)
    graph = _Graph(boxes, links, ranks)
    _order(graph.rows)
    place_rows(graph.rows)
    return graph.result()


# ---------------------------------------------------------------------------------------------- rows


def _ranks(boxes: Sequence[Box], links: Sequence[Link]) -> dict[str, int]:
    """The row of each box, two apart, by the longest way to it along links that do not lead back."""
    forward = _forward(boxes, links)
    incoming = {box.key: 0 for box in boxes}
    following: dict[str, list[str]] = {box.key: [] for box in boxes}
    for source, target in forward:
        following[source].append(target)
        incoming[target] += 1
    ranks = {box.key: 0 for box in boxes}
    ready = [box.key for box in boxes if not incoming[box.key]]
    while ready:
        key = ready.pop()
        for target in following[key]:
            ranks[target] = max(ranks[target], ranks[key] + 2)
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    return ranks


def _forward(boxes: Sequence[Box], links: Sequence[Link]) -> list[tuple[str, str]]:
    """The links without those that lead back, and these turned round: a graph without cycles."""
    following: dict[str, list[str]] = {box.key: [] for box in boxes}
    for link in links:
        following[link.source].append(link.target)
    on_way: set[str] = set()
    done: set[str] = set()
    forward: list[tuple[str, str]] = []
    for box in boxes:
        stack = [(box.key, iter(following[box.key]))] if box.key not in done else []
        on_way.update(key for key, _ in stack)
        while stack:
            key, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                stack.pop()
                on_way.discard(key)
                done.add(key)
            elif target in on_way:
                forward.append((target, key))
            else:
                forward.append((key, target))
                if target not in done:
                    stack.append((target, iter(following[target])))
                    on_way.add(target)
    return forward


class _Graph:
    """The rows with boxes, labels and trunks, and the chain of nodes of every link."""

    def __init__(self, boxes: Sequence[Box], links: Sequence[Link], ranks: dict[str, int]) -> None:
        self.rows: list[list[Node]] = [[] for _ in range(max(ranks.values(), default=0) + 1)]
        self.nodes: dict[str, Node] = {}
        self.chains: list[list[Node]] = []
        self._trunks: dict[Hashable, Node] = {}
        self._joined: set[tuple[int, int]] = set()
        for box in _depth_first(boxes, links):
            self.nodes[box.key] = self._node(box.half, box.half + box.beside, box.height, ranks[box.key], "box")
            self.nodes[box.key].half = box.half
        for link in links:
            self.chains.append(self._chain(link, ranks))

    def _node(self, left: float, right: float, height: float, rank: int, kind: str) -> Node:
        node = Node(left, right, height, rank, kind)
        self.rows[rank].append(node)
        return node

    def _chain(self, link: Link, ranks: dict[str, int]) -> list[Node]:
        source, target = ranks[link.source], ranks[link.target]
        step = 1 if source < target else -1
        label = self._node(5.0, link.width + 9.0 if link.width else 5.0, link.height, source + step, "label")
        label.weight = link.weight
        chain = [self.nodes[link.source], label]
        for rank in range(source + 2 * step, target, step):
            key = (link.target, link.bundle, step, rank)
            trunk = self._trunks.get(key)
            if trunk is None:
                trunk = self._trunks[key] = self._node(4.0, 4.0, 0.0, rank, "trunk")
                trunk.trunk = key[:3]
            chain.append(trunk)
        chain.append(self.nodes[link.target])
        for one, other in itertools.pairwise(chain):
            self._join(one, other)
        return chain

    def _join(self, one: Node, other: Node) -> None:
        upper, lower = (one, other) if one.rank < other.rank else (other, one)
        key = (id(upper), id(lower))
        if key not in self._joined:
            self._joined.add(key)
            upper.down.append(lower)
            lower.up.append(upper)

    # ------------------------------------------------------------------------------------------ places

    def result(self) -> Layout:
        """Heights of the rows, routes and the size."""
        heights = [max((node.height for node in row), default=0.0) for row in self.rows]
        tops: list[float] = []
        y = 0.0
        for rank, row in enumerate(self.rows):
            tops.append(y)
            for node in row:
                node.y = y + heights[rank] / 2
            y += heights[rank] + (self._gap(rank) if rank + 1 < len(self.rows) else 0.0)
        shift = min((node.x - node.left for row in self.rows for node in row), default=0.0)
        width = max((node.x + node.right for row in self.rows for node in row), default=0.0) - shift
        for row in self.rows:
            for node in row:
                node.x -= shift
        ports = self._ports()
        routes = [self._route(chain, ports, tops, heights) for chain in self.chains]
        return Layout({key: (node.x, node.y) for key, node in self.nodes.items()}, routes, width, y)

    def _gap(self, rank: int) -> float:
        """The gap below a row: wider where lines run far to the side."""
        far = max((abs(node.x - lower.x) for node in self.rows[rank] for lower in node.down), default=0.0)
        return min(12.0 + far * 0.09, 54.0)

    def _ports(self) -> dict[tuple[int, int], float]:
        """Where each line meets the box at its end."""
        ports: dict[tuple[int, int], float] = {}
        for node in self.nodes.values():
            for side in (node.up, node.down):
                lines = sorted(side, key=lambda one: (one.x, one.index))
                room = max(node.half - 14.0, 0.0)
                apart = min(16.0, 2 * room / max(len(lines) - 1, 1))
                low, high = node.x - room, node.x + room
                wanted = [min(max(one.x, low), high) for one in lines]
                for one, x in zip(lines, spread(wanted, apart, low, high), strict=True):
                    ports[id(node), id(one)] = x
        return ports

    def _route(
        self, chain: list[Node], ports: dict[tuple[int, int], float], tops: list[float], heights: list[float]
    ) -> Route:
        first, last = chain[0], chain[-1]
        sign = 1 if first.rank < last.rank else -1
        points = [(ports[id(first), id(chain[1])], first.y + sign * first.height / 2)]
        points.append((points[0][0], tops[first.rank] + (heights[first.rank] if sign > 0 else 0.0)))
        for node in chain[1:-1]:
            top, bottom = tops[node.rank], tops[node.rank] + heights[node.rank]
            points += [(node.x, top), (node.x, bottom)] if sign > 0 else [(node.x, bottom), (node.x, top)]
        x = ports[id(last), id(chain[-2])]
        points.append((x, tops[last.rank] + (heights[last.rank] if sign < 0 else 0.0)))
        points.append((x, last.y - sign * last.height / 2))
        label = chain[1]
        return Route(points, (label.x + 5.0, label.y) if label.right > 5.0 else None)


def _depth_first(boxes: Sequence[Box], links: Sequence[Link]) -> list[Box]:
    """The boxes in the order in which somebody meets them who follows the links."""
    by_key = {box.key: box for box in boxes}
    following: dict[str, list[str]] = {box.key: [] for box in boxes}
    for link in links:
        following[link.source].append(link.target)
    found: dict[str, Box] = {}
    for box in boxes:
        waiting = [box.key]
        while waiting:
            key = waiting.pop()
            if key not in found:
                found[key] = by_key[key]
                waiting.extend(reversed(following[key]))
    return list(found.values())


# ---------------------------------------------------------------------------------------------- order


def _order(rows: list[list[Node]]) -> None:
    """Order every row so that few lines cross: the best of a few beginnings."""
    start = [list(row) for row in rows]
    best, fewest = start, -1
    large = sum(map(len, rows)) > _LARGE
    for mirrored in (False,) if large else (False, True):
        for downwards in (True,) if large else (True, False):
            for row, given in zip(rows, start, strict=True):
                row[:] = reversed(given) if mirrored else given
            found, count = _swept(rows, _SWEEPS // 4 if large else _SWEEPS, downwards=downwards)
            if fewest < 0 or count < fewest:
                best, fewest = found, count
    rows[:] = best
    _number(rows)


def _swept(rows: list[list[Node]], sweeps: int, *, downwards: bool) -> tuple[list[list[Node]], int]:
    """The best order that sweeping down and up finds, and how many lines cross in it."""
    _number(rows)
    best, fewest = [list(row) for row in rows], _crossings(rows)
    for sweep in range(sweeps):
        down = (sweep % 2 == 0) is downwards
        for row in rows if down else reversed(rows):
            _sort(row, downwards=down)
        _swap(rows)
        count = _crossings(rows)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
        if not fewest:
            break
    return best, fewest


def _number(rows: list[list[Node]]) -> None:
    for row in rows:
        for index, node in enumerate(row):
            node.index = index


def _sort(row: list[Node], *, downwards: bool) -> None:
    def wanted(node: Node) -> tuple[float, int]:
        near = node.up if downwards else node.down
        return (sum(one.index for one in near) / len(near) if near else node.index, node.index)

    row.sort(key=wanted)
    for index, node in enumerate(row):
        node.index = index


def _swap(rows: list[list[Node]]) -> None:
    """Swap neighbours as long as that saves crossings, a few times over."""
    for _ in range(4):
        swapped = False
        for row in rows:
            for index in range(len(row) - 1):
                one, other = row[index], row[index + 1]
                if _pair(one, other) > _pair(other, one):
                    row[index], row[index + 1] = other, one
                    other.index, one.index = index, index + 1
                    swapped = True
        if not swapped:
            return


def _pair(one: Node, other: Node) -> int:
    """How many lines of two neighbours cross when `one` stands left of `other`."""
    pairs = ((one.up, other.up), (one.down, other.down))
    return sum(_cost(a, b) for near, far in pairs for a in near for b in far if a.index > b.index)


def _cost(one: Node, other: Node) -> int:
    """What a crossing costs: two trunks that cross are hard to follow."""
    return 3 if one.trunk is not None and other.trunk is not None else 1


def _crossings(rows: list[list[Node]]) -> int:
    """What all crossings cost."""
    count = 0
    for row in rows:
        ends: list[int] = []
        trunks: list[int] = []
        for node in row:
            for lower in sorted(node.down, key=_index):
                ends.append(lower.index)
                if node.trunk is not None and lower.trunk is not None:
                    trunks.append(lower.index)
        count += _inversions(ends) + 2 * _inversions(trunks)
    return count


def _inversions(ends: list[int]) -> int:
    """How many pairs stand in the wrong order."""
    seen: list[int] = []
    count = 0
    for end in ends:
        at = bisect_right(seen, end)
        count += len(seen) - at
        seen.insert(at, end)
    return count


def _index(node: Node) -> int:
    return node.index

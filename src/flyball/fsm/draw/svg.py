"""A diagram as SVG: no program but this one is needed, and the same diagram gives the same bytes.

Colours fit light and dark backgrounds: the drawing brings its own background and follows the reader's preference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from flyball.fsm.draw.measure import text_width
from flyball.fsm.draw.overlay import Overlay
from flyball.fsm.draw.scene import ACTION, LABEL, LINE, NAME, Arrow, Figure, Scene, scene
from flyball.fsm.draw.words import heading
from flyball.fsm.model import Diagram

__all__ = ["to_svg"]

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARGIN = 20.0
_TITLE = 17.0
_STYLE = """\
text{font-family:"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;fill:#1f2933}
.bg{fill:#ffffff}.h{font-size:17px;font-weight:600}
.s{fill:#eef4fb;stroke:#4a6d94;stroke-width:1.2}.c{fill:#f8fafc;stroke:#7b8ea3;stroke-width:1.2}
.rule{stroke:#b6c6d8;stroke-width:1}.cur{fill:#fff1c2;stroke:#b7791f;stroke-width:2.4}
.cur-box{stroke:#b7791f;stroke-width:2.4}
.n{font-size:13px;font-weight:600}.a{font-size:11.5px;fill:#425466}
.l{font-size:11px;fill:#334e68}.la{fill:#6b4fa0}.le{fill:#b4232c}.lh{font-weight:700;fill:#0b6b43}
.halo{stroke:#ffffff;stroke-width:3.5;stroke-linejoin:round;paint-order:stroke}
.e{fill:none;stroke:#7b8ea3;stroke-width:1.2}.ed{stroke:#35506e;stroke-width:1.7}
.ee{stroke:#c2414b;stroke-dasharray:5 3}.et{stroke:#12855a;stroke-width:2.2}
text.ez{opacity:.5}path.ez{stroke:#d0d9e3}polygon.ez{fill:#d0d9e3}
.p{fill:#7b8ea3}.pd{fill:#35506e}.pe{fill:#c2414b}.pt{fill:#12855a}.dot{fill:#35506e}
.ring{fill:none;stroke:#35506e;stroke-width:1.5}
@media (prefers-color-scheme:dark){
text{fill:#e4eaf1}.bg{fill:#12181f}.s{fill:#1d2c3d;stroke:#7ea3cc}.c{fill:#161f29;stroke:#6b7f94}
.rule{stroke:#3a4d61}.cur{fill:#4a3a10;stroke:#f0b93a}.cur-box{stroke:#f0b93a}
.a{fill:#b4c2d0}.l{fill:#b9cbdd}.la{fill:#c3a9f0}.le{fill:#ff8f95}
.lh{fill:#5fd8a4}.halo{stroke:#12181f}.e{stroke:#75889b}.ed{stroke:#a9c1da}.ee{stroke:#ee7078}.et{stroke:#3ccf92}
.p{fill:#75889b}.pd{fill:#a9c1da}.pe{fill:#ee7078}.pt{fill:#3ccf92}.dot{fill:#a9c1da}.ring{stroke:#a9c1da}
path.ez{stroke:#36434f}polygon.ez{fill:#36434f}}
"""


def to_svg(diagram: Diagram, overlay: Overlay | None = None) -> str:
    """The diagram as one SVG document."""
    drawn = scene(diagram.machine, overlay)
    title = heading(diagram)
    top = _MARGIN + _TITLE * LINE + 8
    width = max(drawn.width, text_width(title, _TITLE, bold=True)) + 2 * _MARGIN
    height = top + drawn.height + _MARGIN
    shift = (width - drawn.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}"'
        f' viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label={quoteattr(_clean(title))}>',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="bg" width="{_n(width)}" height="{_n(height)}"/>',
        f'<text class="h" x="{_n(_MARGIN)}" y="{_n(_MARGIN + _TITLE)}">{_text(title)}</text>',
        f'<g transform="translate({_n(shift)} {_n(top)})">',
        *_shapes(drawn),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _shapes(drawn: Scene) -> Iterator[str]:
    """Composites, then lines, then states, then labels: nothing hides what must be read."""
    for figure in drawn.figures:
        if figure.kind == "composite":
            yield from _composite(figure)
    for arrow in sorted(drawn.arrows, key=_weight):
        yield from _line(arrow)
    for figure in drawn.figures:
        if figure.kind != "composite":
            yield from _figure(figure)
    for arrow in drawn.arrows:
        yield from _label(arrow)


def _weight(arrow: Arrow) -> int:
    """Lines that matter more are drawn later, on top."""
    return 3 if arrow.taken else {"guard": 0, "error": 1, "default": 2}[arrow.kind]


# ---------------------------------------------------------------------------------------------- states


def _figure(one: Figure) -> Iterator[str]:
    match one.kind:
        case "initial":
            yield f'<circle class="dot" cx="{_n(one.x)}" cy="{_n(one.y)}" r="7"/>'
            yield from _lines(one.lines, one.x + 14, one.y - len(one.lines) * ACTION * LINE / 2)
        case "final" | "end":
            yield f'<circle class="ring{_current(one)}" cx="{_n(one.x)}" cy="{_n(one.y)}" r="9"/>'
            yield f'<circle class="dot" cx="{_n(one.x)}" cy="{_n(one.y)}" r="5"/>'
            yield from _beside(one)
        case "choice":
            points = ((0, -11), (11, 0), (0, 11), (-11, 0))
            outline = " ".join(f"{_n(one.x + dx)},{_n(one.y + dy)}" for dx, dy in points)
            yield f'<polygon class="s{_current(one)}" points="{outline}"/>'
            yield from _beside(one)
        case _:
            yield from _state(one)


def _state(one: Figure) -> Iterator[str]:
    left, top = one.x - one.width / 2, one.y - one.height / 2
    yield f"<g>{_hint(one)}"
    dash = ' stroke-dasharray="6 3"' if one.poll else ""
    yield _rect(f"s{_current(one)}", left, top, one.width, one.height, 8, dash)
    base = top + 7 + NAME
    yield f'<text class="n" x="{_n(one.x)}" y="{_n(base)}" text-anchor="middle">{_text(one.name)}</text>'
    if one.lines:
        rule = top + 14 + NAME * LINE - 4
        yield f'<path class="rule" d="M{_n(left + 1)} {_n(rule)}H{_n(left + one.width - 1)}"/>'
        yield from _lines(one.lines, left + 12, rule + 4)
    yield "</g>"


def _composite(one: Figure) -> Iterator[str]:
    left, top = one.x - one.width / 2, one.y - one.height / 2
    yield f"<g>{_hint(one)}"
    dash = ' stroke-dasharray="6 3"' if one.poll else ""
    yield _rect(f"c{' cur-box' if one.current else ''}", left, top, one.width, one.height, 12, dash)
    yield f'<text class="n" x="{_n(left + 14)}" y="{_n(top + 7 + NAME)}">{_text(one.name)}</text>'
    rule = top + 8 + NAME * LINE
    yield from _lines(one.lines, left + 14, rule)
    bottom = rule + (len(one.lines) * ACTION * LINE + 4 if one.lines else 2)
    yield f'<path class="rule" d="M{_n(left + 1)} {_n(bottom)}H{_n(left + one.width - 1)}"/>'
    yield "</g>"


def _rect(css: str, x: float, y: float, width: float, height: float, radius: int, more: str) -> str:
    return (
        f'<rect class="{css}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{radius}"{more}/>'
    )


def _current(one: Figure) -> str:
    return " cur" if one.current else ""


def _hint(one: Figure) -> str:
    return f"<title>{_text(one.hint)}</title>" if one.hint else ""


def _beside(one: Figure) -> Iterator[str]:
    if one.name:
        yield f'<text class="l" x="{_n(one.x + 15)}" y="{_n(one.y + 4)}">{_text(one.name)}</text>'


def _lines(lines: tuple[str, ...], x: float, top: float) -> Iterator[str]:
    for index, line in enumerate(lines):
        y = top + (index + 1) * ACTION * LINE - 3
        yield f'<text class="a" x="{_n(x)}" y="{_n(y)}">{_text(line)}</text>'


# ---------------------------------------------------------------------------------------------- transitions


def _line(one: Arrow) -> Iterator[str]:
    kind = "t" if one.taken else {"default": "d", "error": "e", "guard": ""}[one.kind]
    css = f"e e{kind}" if kind else "e"
    faint = " ez" if one.taken is False else ""
    yield f'<path class="{css}{faint}" d="{_loop(one) if one.loop else _way(one)}"/>'
    x, y = one.points[-1]
    tip = ((0, 0), (7, -3.8), (7, 3.8)) if one.loop else ((0, 0), (-3.8, -7), (3.8, -7))
    up = -1 if not one.loop and one.points[-1][1] < one.points[0][1] else 1
    head = " ".join(f"{_n(x + dx)},{_n(y + dy * up)}" for dx, dy in tip)
    yield f'<polygon class="p{kind}{faint}" points="{head}"/>'


def _loop(one: Arrow) -> str:
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = one.points
    return f"M{_n(x0)} {_n(y0)}C{_n(x1)} {_n(y1)} {_n(x2)} {_n(y2)} {_n(x3 + 6)} {_n(y3)}"


def _way(one: Arrow) -> str:
    """Straight down the rows, and in curves between them."""
    points = list(one.points)
    sign = 1 if points[-1][1] > points[0][1] else -1
    points[-1] = (points[-1][0], points[-1][1] - 6 * sign)
    x, y = points[0]
    path = [f"M{_n(x)} {_n(y)}"]
    for px, py in points[1:]:
        if abs(px - x) < 0.05:
            if abs(py - y) > 0.05:
                path.append(f"V{_n(py)}")
        else:
            middle = (y + py) / 2
            path.append(f"C{_n(x)} {_n(middle)} {_n(px)} {_n(middle)} {_n(px)} {_n(py)}")
        x, y = px, py
    return "".join(path)


def _label(one: Arrow) -> Iterator[str]:
    styles = {"action": "l la", "error": "l le", "guard": "l", "hits": "l lh"}
    x, middle = one.label
    top = middle - len(one.words) * LABEL * LINE / 2
    for index, word in enumerate(one.words):
        y = top + (index + 1) * LABEL * LINE - 3.5
        faint = " ez" if one.taken is False else ""
        yield f'<text class="{styles[word.style]} halo{faint}" x="{_n(x)}" y="{_n(y)}">{_text(word.text)}</text>'


# ---------------------------------------------------------------------------------------------- writing


def _n(number: float) -> str:
    """A number with at most one digit behind the point."""
    text = f"{number:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def _clean(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


def _text(text: str) -> str:
    return escape(_clean(text))

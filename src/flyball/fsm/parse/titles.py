"""From the title of a diagram to the name of its class."""

from __future__ import annotations

from flyball.fsm.model import Position
from flyball.fsm.parse.codes import Report
from flyball.fsm.parse.statements import Statement, Title

__all__ = ["class_name", "find_title"]


def class_name(text: str) -> str:
    """`traffic light` gives `TrafficLight`; characters that cannot be in an identifier are dropped."""
    words = ("".join(char for char in word if f"_{char}".isidentifier()) for word in text.split())
    return "".join(word[:1].upper() + word[1:] for word in words)


def find_title(statements: list[Statement], name: str, at: Position, report: Report) -> tuple[str, str]:
    """The class name and the title as written: the last title of the outermost level, else the diagram's name."""
    titles = [one for one in statements if isinstance(one, Title)]
    for earlier in titles[:-1]:
        report.add(
            "I-title",
            earlier.position,
            f"the title '{earlier.text}' is replaced by a later one",
            subject=earlier.text or "title",
            remedy="keep one title",
        )
    if titles:
        return _usable(titles[-1].text, titles[-1].position, report)
    if class_name(name).isidentifier():
        report.add(
            "W-title",
            at,
            f"there is no title; the diagram's name '{name}' is taken",
            subject=class_name(name),
            remedy=f"add the line `title {name}`",
        )
        return _usable(name, at, report)
    report.add(
        "E-no-title", at, "the diagram has no title", subject="title", remedy="add a line such as `title Traffic Light`"
    )
    return "", ""


def _usable(text: str, at: Position, report: Report) -> tuple[str, str]:
    name = class_name(text)
    if not name.isidentifier():
        report.add(
            "E-bad-title",
            at,
            f"the title '{text}' gives no class name",
            subject=text or "title",
            remedy="begin the title with a letter",
        )
    elif any(not f"_{char}".isidentifier() for char in text if not char.isspace()):
        report.add(
            "W-title",
            at,
            f"the title '{text}' holds characters that no class name can have; it becomes {name}",
            subject=name,
            remedy="write letters and digits only",
        )
    return name, text

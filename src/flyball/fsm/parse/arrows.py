"""Transitions: `A --> B`, in every spelling that PlantUML has for an arrow, in both directions."""

from __future__ import annotations

import re
from typing import Final

from flyball.fsm.model import INITIAL, Call, guard_calls
from flyball.fsm.parse.codes import Report
from flyball.fsm.parse.labels import NAME, Label, LabelError, is_name, parse_label
from flyball.fsm.parse.lines import Line
from flyball.fsm.parse.statements import Arrow, Statement, Unknown

__all__ = ["check_params", "read_arrow"]

_STYLE: Final = r"(?:\[[^\]]*+\])?"
_WAY: Final = r"(?:left|right|up|down|le|ri|do|[lrud])?"
_FORWARD: Final = rf"-++{_STYLE}{_WAY}{_STYLE}-*+>"
_BACKWARD: Final = rf"<-++(?:{_STYLE}{_WAY}{_STYLE}-++)?"
_END: Final = rf"\[\*\]|\[H\*?\]|{NAME}(?:\[H\*?\])?"
_ARROW: Final = re.compile(
    rf"\s*(?P<left>{_END})\s*(?:(?P<to>{_FORWARD})|(?P<from>{_BACKWARD}))\s*(?P<right>{_END})\s*(?::(?P<label>.*))?",
    re.DOTALL,
)


def read_arrow(line: Line, report: Report) -> list[Statement]:
    """The transition of a line; nothing for a line that is none."""
    match = _ARROW.fullmatch(line.text)
    if match is None:
        return []
    for end in (match["left"], match["right"]):
        if end.endswith(("[H]", "[H*]")):
            return [_history(line, end, report)]
        if end != INITIAL and not is_name(end):
            return []
    label: Label | None = None
    if match["label"] is not None:
        try:
            label = parse_label(line, *match.span("label"))
        except LabelError as error:
            report.syntax(line.position(error.index), error.message, error.remedy)
            return [Unknown(line.start(), (line.raw,))]
        calls = [*guard_calls(label.guard), *([label.action] if label.action else [])]
        check_params(line, calls, report)
    reverse = match["to"] is None
    source, target = ("right", "left") if reverse else ("left", "right")
    return [
        Arrow(
            position=line.start(),
            source=match[source],
            target=match[target],
            source_at=line.position(match.start(source)),
            target_at=line.position(match.start(target)),
            arrow=match["from"] if reverse else match["to"],
            label=label,
            label_text=_raw_label(line, match),
            reverse=reverse,
            raw=line.raw,
        )
    ]


def check_params(line: Line, calls: list[Call], report: Report) -> None:
    """Warn of parameters that are not what they seem: a comma in quotes, a line break that vanished."""
    if not calls:
        return
    starts = [_index(line, call) for call in calls]
    for call, start, end in zip(calls, starts, [*starts[1:], len(line.text)], strict=True):
        if not call.params:
            continue
        text = line.text[start:end]
        opened, closed = text.find("("), text.rfind(")")
        content = text[opened + 1 : closed]
        if any("," in quoted for quoted in content.split('"')[1::2]):
            _warn(report, call, "a comma inside double quotes separates parameters all the same", "leave the comma out")
        if line.breaks_between(start + opened + 1, start + closed):
            _warn(report, call, "the line break `\\n` inside a parameter vanishes", "put it outside of the parentheses")


def _warn(report: Report, call: Call, message: str, remedy: str) -> None:
    report.add("W-param", call.position, f"{call.name}: {message}", subject=call.name, remedy=remedy)


def _index(line: Line, call: Call) -> int:
    """Where a call begins in the text of its line."""
    column = call.position.column - 1
    return column - 2 * line.breaks_before(column)


def _history(line: Line, end: str, report: Report) -> Statement:
    subject = end.partition("[")[0] or end
    report.add(
        "E-unsupported",
        line.start(),
        f"{end}: a machine keeps no history",
        subject=subject,
        remedy="decide with guards on the extended state where to go on",
    )
    return Unknown(line.start(), (line.raw,))


def _raw_label(line: Line, match: re.Match[str]) -> str:
    if match["label"] is None:
        return ""
    return line.raw[line.position(match.start("label")).column - 1 :].strip()

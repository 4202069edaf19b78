"""One test for each row of the table of findings, with the line it is reported at."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from flyball.fsm.compile import compile_text
from flyball.fsm.parse.codes import CODES

SOUND = "title T\n[*] --> A\nA --> [*]\n"


@dataclass(frozen=True)
class Row:
    code: str
    text: str
    line: int
    subject: str
    alone: bool = True
    """Whether it is the only error or warning of the text."""


ROWS = [
    Row("E-no-title", "[*] --> A\nA --> [*]\n", 1, "title"),
    Row("E-bad-title", "\ntitle 1st light\n[*] --> A\nA --> [*]\n", 2, "1st light"),
    Row("E-bad-title", "title ---\n[*] --> A\nA --> [*]\n", 1, "---"),
    Row("E-no-initial", "title T\nA --> [*]\n", 1, "[*]"),
    Row("E-no-initial", "title T\n[*] --> A\nA --> [*]\nstate A {\nB --> [*]\n}\n", 2, "A"),
    Row("E-no-initial", "title T\n[*] --> A\nA --> [*]\nstate A {\n}\n", 2, "A"),
    Row("E-no-final", "title T\n[*] --> A\nA --> B: IsX\nA --> B\nB --> A\n", 1, "[*]"),
    Row("E-no-final", "title T\n[*] --> A\nA --> [*]\nstate A {\n[*] --> B\nB --> B: IsX\nB --> B\n}\n", 2, "A"),
    Row("E-dead-end", "title T\n[*] --> A\nA --> B\n", 3, "B"),
    Row("E-dead-end", "title T\n[*] --> A\n", 2, "A"),
    Row(
        "E-crosses-border",
        "title T\n[*] --> A\nA --> [*]\nA: some text\nstate C {\n[*] --> B\nB --> A: IsX\nB --> [*]\n}\nA --> C: IsC\n",
        7,
        "A",
        alone=False,
    ),
    Row(
        "E-crosses-border",
        "title T\n[*] --> C\nC --> [*]\nC --> B: IsX\nstate C {\n[*] --> B\nB --> [*]\n}\n",
        4,
        "B",
        alone=False,
    ),
    Row("E-syntax", SOUND + "A --> B: two words\n", 4, "4"),
    Row("E-syntax", SOUND + "A -->> B\n", 4, "4"),
    Row("E-syntax", SOUND + "[*] --> \n", 4, "4"),
    Row("E-syntax", SOUND + "A: do / two words\n", 4, "4"),
    Row("E-syntax", SOUND + "A:\n", 4, "4"),
    Row("E-syntax", SOUND + "state \n", 4, "4"),
    Row("E-syntax", SOUND + "state 1A\n", 4, "4"),
    Row("E-syntax", SOUND + "A --> [*]: Ev [IsX]\n", 4, "4"),
    Row("E-syntax", SOUND + "A --> [*]: Ev [IsX] / Do\n", 4, "4"),
    Row("E-syntax", SOUND + "A <--> B\n", 4, "4"),
    Row("E-unclosed-block", "title T\n[*] --> A\nA --> [*]\nstate A {\n[*] --> B\nB --> [*]\n", 4, "A"),
    Row("E-unclosed-block", SOUND + "note left of A\nTODO: fix\n", 4, "note"),
    Row("E-unclosed-block", SOUND + "/' A --> B\n", 4, "comment"),
    Row("E-unclosed-block", SOUND + "skinparam state {\nA: x\n", 4, "skinparam"),
    Row("E-unopened-block", SOUND + "}\n", 4, "4"),
    Row("E-unsupported", SOUND + "state F <<fork>>\n", 4, "F"),
    Row("E-unsupported", SOUND + "state F <<join>>\n", 4, "F"),
    Row("E-unsupported", SOUND + "state F <<history>>\n", 4, "F"),
    Row("E-unsupported", SOUND + "A --> [H]\n", 4, "[H]"),
    Row("E-unsupported", SOUND + "A --> C[H*]\n", 4, "C"),
    Row("E-unsupported", SOUND + "--\n", 4, "--"),
    Row("E-unsupported", SOUND + "||\n", 4, "||"),
    Row("E-unsupported", SOUND + "!include other.puml\n", 4, "!include"),
    Row("E-unsupported", SOUND + "!define X y\n", 4, "!define"),
    Row("E-initial-loop", SOUND + "[*] --> [*]\n", 4, "[*]", alone=False),
    Row("E-final-actions", SOUND + "FinalState: do / Save\n", 4, "FinalState", alone=False),
    Row("E-final-actions", SOUND + "FinalState --> A\n", 4, "FinalState", alone=False),
    Row("E-final-actions", "title T\n[*] --> A\nA --> E\nstate E <<end>>\nE --> A\n", 5, "E", alone=False),
    Row(
        "E-duplicate-composite",
        "title T\n[*] --> A\nA --> [*]\nstate A {\n[*] --> B\n}\nstate A {\nB --> [*]\n}\n",
        7,
        "A",
    ),
    Row("W-unreachable", SOUND + "B --> [*]\n", 4, "B"),
    Row("W-not-exhaustive", "title T\n[*] --> A\nA --> [*]: IsX\nA --> [*]: IsY\n", 4, "A"),
    Row("W-default-not-last", "title T\n[*] --> A\nA --> [*]\nA --> A: IsX\n", 3, "A"),
    Row("W-second-default", SOUND + "A --> A\n", 4, "A"),
    Row("W-shadowed", "title T\n[*] --> A\nA --> [*]: IsX(a)\nA --> A: IsX(a)\nA --> [*]\n", 4, "A"),
    Row(
        "W-cycle-without-exit",
        "title T\n[*] --> A: IsX\n[*] --> [*]: IsY\n[*] --> A\nA --> B\nB --> A\n",
        2,
        "A",
        alone=False,
    ),
    Row("W-unhandled-error", "title T\n[*] --> A\nA: do / Load\nA --> [*]\n", 3, "A"),
    Row("W-composite-do", SOUND + "A: do / Load\nstate A {\n[*] --> B\nB --> [*]\n}\n", 4, "A"),
    Row("W-reserved-name", "title T\nInitialState --> A\nA --> [*]\n", 2, "InitialState"),
    Row("W-reserved-name", "title T\n[*] --> A\nA --> FinalState\n", 3, "FinalState"),
    Row("W-more-diagrams", f"@startuml\n{SOUND}@enduml\n@startuml\ntitle U\n[*] --> A\nA --> [*]\n@enduml\n", 6, "U"),
    Row("W-unknown-line", SOUND + "hello there\n", 4, "4"),
    Row("W-param", 'title T\n[*] --> A\nA --> [*]: IsX("a,b")\nA --> [*]\n', 3, "IsX"),
    Row("W-param", "title T\n[*] --> A\nA --> [*]: IsX(a\\nb)\nA --> [*]\n", 3, "IsX"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code}-{row.subject}-{row.line}")
def test_each_row_is_reported_at_its_line(row: Row) -> None:
    _, findings = compile_text(row.text, "t.puml")
    found = [one for one in findings if one.code == row.code]
    assert [(one.code, one.subject, one.line) for one in found] == [(row.code, row.subject, row.line)]
    one = found[0]
    assert one.source_line == row.text.split("\n")[row.line - 1]
    assert 1 <= one.column <= len(one.source_line) + 1
    assert str(one).startswith(f"t.puml:{row.line}:{one.column}: {row.code}: ")
    assert one.remedy or row.code == "E-unsupported"
    if row.alone:
        assert [other.key for other in findings if other.severity != "info"] == [one.key]


def test_no_row_is_forgotten() -> None:
    listed = {row.code for row in ROWS}
    assert listed == {code for code in CODES if not code.startswith("I-")} - {"W-title", "E-signature"}

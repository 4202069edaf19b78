"""Arbitrary text through the diagram parser: it never fails, never hangs, and an error always names a line.

::

    python -m tests.fuzz.fsm_parse --count 100000 [--seed N]

Texts are made of real lines, of pieces of lines, of random characters, and of each other. `run` is what the short run
in the unit tests calls. A text that breaks a promise is printed, and the seed that makes it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from flyball.fsm.compile import judged
from flyball.fsm.document import model_document
from flyball.fsm.parse import parse_text

PIECES = (
    *("[*]", "A", "B", "Box", "IsX", "IsError", "Do", "error", "InitialState", "FinalState", "1x", "ä", "A-b", "x.y"),
    *(
        " --> ",
        "-->",
        "->",
        "<--",
        "-[bold]->",
        "-left->",
        "--[#red]down->",
        "<-",
        "-->>",
        "..>",
        ":",
        "::",
        "/",
        " / ",
    ),
    *("(", ")", "(a)", "(a, b)", '("a,b")', "[", "]", "{", "}", " {", "!", "not ", " and ", " or ", "&&", "||", ","),
    *(
        "state ",
        "title ",
        "note left of A",
        "note right: ",
        "end note",
        "'",
        "/'",
        "'/",
        "\\n",
        '"',
        " as ",
        "<<choice>>",
    ),
    *(
        "<<end>>",
        "<<poll>>",
        "<<fork>>",
        "@startuml",
        "@enduml",
        "skinparam x {",
        "legend",
        "endlegend",
        "header",
        "--",
    ),
    *(
        "!include x",
        "!theme y",
        "do / ",
        "entry / ",
        "exit/",
        "```plantuml",
        "```",
        "~~~",
        "<style>",
        "</style>",
        "[H]",
    ),
    *("' fsm: ignore W-param", "\t", " ", "\u2028", "\x0b", "\x00", "\ud800", "²", "\ufeff", "words and words"),
)
LINES = (
    *("title T", "[*] --> A", "A --> [*]", "A --> B: IsX", "B --> [*]: IsError", "B --> A", "A: do / Load(x)", "}"),
    *(
        "state A {",
        "state Box {",
        "state B <<poll>>",
        "A: some words",
        "note left of A",
        "end note",
        "B --> C: IsX::Do(y)",
    ),
    *("@startuml", "@enduml", "```plantuml", "```", "/' c", "'/", "[*]: do / Boot", "A <-- B", "state C <<end>>", ""),
)
FILES = ("t.puml", "t.md", "")
SLOW = 2.0
"""Seconds that no text of a run may take."""


def make(seed: int) -> tuple[str, str]:
    """The text and file name of a seed."""
    rng = random.Random(seed)
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    lines = [_line(rng) for _ in range(rng.choice((1, 3, 8, 20, 60)))]
    if rng.random() < 0.02:
        lines.append(rng.choice(PIECES) * rng.choice((100, 5000)))
    return end.join(lines), rng.choice(FILES)


def _line(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.55:
        return rng.choice(LINES)
    if kind < 0.9:
        return "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 9)))
    if kind < 0.95:
        line = rng.choice(LINES)
        at = rng.randrange(len(line) + 1)
        return line[:at] + rng.choice(PIECES) + line[at + rng.randrange(3) :]
    return "".join(chr(rng.randrange(0x2100)) for _ in range(rng.randrange(20)))


def hold(text: str, file: str = "t.puml") -> None:
    """Assert what the parser promises of any text."""
    result = parse_text(text, file)
    count = len(result.lines)
    for one in judged(result):
        assert 1 <= one.line <= count, one
        assert one.column >= 1, one
        assert all((one.code, one.subject, one.message)), one
    for part in result.split():
        model_document(part.diagrams[0] if part.diagrams else None, part.findings)


def run(count: int, seed: int = 0) -> None:
    """Hold the promises for `count` texts, beginning with a seed; raises at the first that breaks one."""
    for number in range(seed, seed + count):
        text, file = make(number)
        try:
            run_one(text, file)
        except Exception as error:
            raise AssertionError(f"seed {number}, file {file!r}, text {text!r}: {error!r}") from error


def run_one(text: str, file: str = "t.puml") -> None:
    """Hold the promises for one text, in the time it may take."""
    began = time.process_time()
    hold(text, file)
    took = time.process_time() - began
    assert took < SLOW, f"{took:.1f} s for {len(text)} characters"


def main(args: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(args)
    began = time.perf_counter()
    run(given.count, given.seed)
    print(f"{given.count} texts in {time.perf_counter() - began:.0f} s: nothing broke")
    return 0


if __name__ == "__main__":
    sys.exit(main())

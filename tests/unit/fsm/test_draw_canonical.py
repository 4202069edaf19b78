"""The canonical form: only the form changes, and only once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fuzz import fsm_parse
from tests.unit.fsm.fsm_texts import model

from flyball.cli.fsm_fmt import command
from flyball.fsm.draw.canonical import format_text
from flyball.fsm.parse import DiagramError, parse_text
from flyball.fsm.parse.statements import Comment, NoteText

MESSY = """\
@startuml  x


   title   Traffic Light
[*]-->A
' a comment
   A:Load( a,b )
A -[dotted]left-> [*] :[IsError
A <-[bold]down- B: !IsX&&( IsY||IsZ(" a ") )/Do()


state "Some text" as B <<poll>> #red{

B2:entry/X
   [*] --> B2
note right of B2
     one
       two
end note
  B2 --> [*] : error(NotFound,Conflict)[IsX]::Do
  A --> [*]: IsX\\n::Do
}
B: some   words
B --> [*] /' behind '/
skinparam state {
BackgroundColor red
}
@enduml
"""

CLEAN = """\
@startuml  x

title Traffic Light
[*] --> A
' a comment
A: do / Load(a, b)
A -[dotted]left-> [*]: IsError
B -[bold]-> A: not IsX and (IsY or IsZ(" a ")) :: Do

state "Some text" as B <<poll>> #red {
  B2: entry / X
  [*] --> B2
  note right of B2
    one
      two
  end note
  B2 --> [*]: error(NotFound, Conflict) [IsX] :: Do
  A --> [*]: IsX\\n::Do
}
B: some   words
/' behind '/
B --> [*]
skinparam state {
  BackgroundColor red
}
@enduml
"""


def test_the_form() -> None:
    assert format_text(MESSY) == CLEAN


def test_formatting_again_changes_nothing() -> None:
    once = format_text(MESSY)
    assert format_text(once) == once


def test_line_ends_and_byte_order_mark_stay() -> None:
    text = "\ufeff" + MESSY.replace("\n", "\r\n")
    assert format_text(text) == "\ufeff" + format_text(MESSY).replace("\n", "\r\n")


def test_everything_outside_of_the_diagrams_stays() -> None:
    text = f"# Words  \n\n  ```plantuml\n{MESSY}  ```\n*  a list: x\n\n```plantuml\ntitle T\n[*]-->A\n```\nend"
    done = format_text(text, "a.md")
    assert done.startswith("# Words  \n\n  ```plantuml\n  @startuml  x\n\n  title Traffic Light\n")
    assert done.endswith("  ```\n*  a list: x\n\n```plantuml\ntitle T\n[*] --> A\n```\nend")


def test_a_text_with_errors_is_refused() -> None:
    with pytest.raises(DiagramError, match=r"t\.puml:2:1: E-syntax: .*nothing is written"):
        format_text("title T\nA -->> B\n", "t.puml")


def _told(text: str, file: str) -> list[str]:
    found = model(text, file, diagram=1)
    return sorted(re.sub(r":\d+$", "", one) for one in (*found["errors"], *found["warnings"]) if "W-param" not in one)


def test_meaning_comments_and_notes_of_random_diagrams_are_kept() -> None:
    formatted, refused = 0, list[str]()
    for seed in range(2_000_000, 2_004_000):
        text, file = fsm_parse.make(seed)
        if "\ufeff" in text[1:]:
            continue
        try:
            done = format_text(text, file)
        except DiagramError as error:
            if not error.findings:
                refused.append(f"{seed}: {error}")
            continue
        formatted += 1
        before, after = parse_text(text, file), parse_text(done, file)
        assert format_text(done, file) == done, (seed, text)
        assert [one.machine for one in after.diagrams] == [one.machine for one in before.diagrams]
        for old, new in zip(before.documents, after.documents, strict=True):
            for kind in (Comment, NoteText):
                kept = [sum(isinstance(one, kind) for one in document.statements) for document in (old, new)]
                assert kept[0] == kept[1], (seed, text)
        if before.documents:
            assert _told(done, file) == _told(text, file), (seed, text)
    assert formatted > 100
    assert refused == []


def test_the_verb(tmp_path: Path) -> None:
    file = tmp_path / "a.puml"
    file.write_bytes(MESSY.encode())
    run = CliRunner()
    assert run.invoke(command, ["--check", str(file)]).exit_code == 3
    shown = run.invoke(command, ["--diff", str(file)])
    assert (shown.exit_code, "\n+A: do / Load(a, b)\n" in shown.output) == (0, True)
    assert file.read_bytes() == MESSY.encode()
    assert run.invoke(command, [str(file)]).output == f"formatted {file}\n"
    assert file.read_text() == format_text(MESSY)
    before = file.stat().st_mtime_ns
    again = run.invoke(command, ["--check", str(file)])
    assert (again.exit_code, again.output, file.stat().st_mtime_ns) == (0, "", before)


def test_the_verb_writes_nothing_when_one_file_has_errors(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.puml", tmp_path / "b.puml"
    good.write_text(MESSY)
    bad.write_text("title T\n}\n")
    result = CliRunner().invoke(command, [str(good), str(bad)])
    assert isinstance(result.exception, DiagramError)
    assert good.read_text() == MESSY

"""Where the text of a diagram comes from (2.1)."""

from __future__ import annotations

import pytest
from tests.unit.fsm.fsm_texts import model

from flyball.fsm.compile import compile_text
from flyball.fsm.parse import DiagramError, ParseResult, parse_text

ONE = "title One\n[*] --> A\nA --> [*]\n"
TWO = "title Two\n[*] --> B\nB --> [*]\n"


def fence(text: str, info: str = "plantuml", mark: str = "```") -> str:
    return f"{mark}{info}\n{text}{mark}\n"


@pytest.mark.parametrize("file", ["a.md", "a.markdown", "A.MD", "dir.x/README.md"])
def test_markdown_is_known_by_its_ending(file: str) -> None:
    assert model(f"# Words\n\n{fence(ONE)}\nwords\n", file)["title"] == "One"


@pytest.mark.parametrize("file", ["a.puml", "a.uml", "a.txt", "md", "a.mdx", ""])
def test_any_other_file_is_a_diagram_as_a_whole(file: str) -> None:
    assert model(ONE, file)["title"] == "One"


@pytest.mark.parametrize("info", ["plantuml", "puml", "uml", "PlantUML", "plantuml {name=x}", "puml, more words"])
def test_the_info_string_of_a_fence(info: str) -> None:
    assert model(fence(ONE, info), "a.md")["title"] == "One"


@pytest.mark.parametrize("mark", ["```", "~~~", "`````", "   ```"])
def test_the_marks_of_a_fence(mark: str) -> None:
    assert model(fence(ONE, mark=mark), "a.md")["title"] == "One"


def test_a_fence_is_closed_by_one_of_its_length() -> None:
    text = f"````plantuml\n{ONE}```\n````\n"
    assert model(text, "a.md")["errors"] == []


@pytest.mark.parametrize("text", ["Write ```plantuml to begin\n", "    ```plantuml\n    title X\n", "> nothing\n"])
def test_words_about_fences_are_no_fences(text: str) -> None:
    assert model(f"{text}\n{fence(ONE)}", "a.md")["title"] == "One"


def test_a_fence_inside_another_language_is_text() -> None:
    assert model(f"````text\n{fence(TWO)}````\n\n{fence(ONE)}", "a.md")["title"] == "One"


def test_markdown_without_a_diagram_is_an_error_at_line_one() -> None:
    diagram, findings = compile_text("# Words\n", "a.md")
    assert diagram is None
    assert [(one.key, one.line) for one in findings] == [("E-no-title:title", 1)]


def test_an_unclosed_fence_is_reported() -> None:
    _, findings = compile_text(f"words\n```plantuml\n{ONE}", "a.md")
    assert [(one.key, one.line) for one in findings] == [("E-unclosed-block:plantuml", 2)]


def test_lines_in_markdown_are_those_of_the_file() -> None:
    _, findings = compile_text(f"# Words\n\n{fence(ONE + 'A --> B: two words' + chr(10))}", "a.md")
    assert [(one.code, one.line, one.column) for one in findings] == [("E-syntax", 7, 10)]


BOTH = f"@startuml\n{ONE}@enduml\n\n@startuml second\n{TWO}@enduml\n"


def test_each_block_of_a_plain_file_is_a_diagram() -> None:
    assert [one.title for one in parse_text(BOTH).diagrams] == ["One", "Two"]


def test_the_first_diagram_is_taken_and_the_others_are_named() -> None:
    found = model(BOTH)
    assert (found["title"], found["warnings"]) == ("One", ["W-more-diagrams:Two"])


@pytest.mark.parametrize("which", ["second", "Two", "2", 2])
def test_a_diagram_is_chosen_by_name_title_or_index(which: str | int) -> None:
    found = model(BOTH, diagram=which)
    assert (found["title"], found["warnings"]) == ("Two", [])


def test_a_diagram_is_chosen_by_the_name_of_its_fence() -> None:
    text = fence(ONE) + fence(TWO, 'plantuml name="the second"')
    assert model(text, "a.md", diagram="the second")["title"] == "Two"


def test_all_diagrams_can_be_chosen() -> None:
    result = parse_text(BOTH).select("all")
    assert [one.title for one in result.diagrams] == ["One", "Two"]
    assert result.findings == ()


def test_a_diagram_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(DiagramError, match="no diagram 'three'; there are: One, Two"):
        parse_text(BOTH, "a.puml").select("three")


def test_findings_of_diagrams_that_are_not_used_are_not_told() -> None:
    broken = f"@startuml\n{ONE}@enduml\n@startuml\ntitle Two\nA --> B: two words\n@enduml\n"
    assert model(broken)["errors"] == []
    assert model(broken, diagram="Two")["errors"] == ["E-syntax:8", "E-no-initial:[*]"][:1]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark(end: str, mark: str) -> None:
    text = mark + f"@startuml\n{ONE}A --> A: IsX::Do\n@enduml\n".replace("\n", end)
    assert model(text) == model(f"@startuml\n{ONE}A --> A: IsX::Do\n@enduml\n")


def test_text_around_a_block_is_not_read_but_a_transition_there_is_reported() -> None:
    found = model(f"Some words: here\nA --> B\n@startuml\n{ONE}@enduml\nmore\n")
    assert (found["errors"], found["warnings"]) == ([], ["W-unknown-line:2"])


def test_results_are_whole() -> None:
    result = parse_text(BOTH, "x.puml")
    assert isinstance(result, ParseResult)
    assert result.diagrams[0].source == f"@startuml\n{ONE}@enduml"
    assert (result.diagrams[1].name, result.diagrams[1].heading, result.diagrams[1].file) == ("second", "Two", "x.puml")
    assert len(result.diagrams[0].sha256) == 64

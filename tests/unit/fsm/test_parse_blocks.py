"""Composites, borders, what silences what, positions (2.5, 2.7)."""

from __future__ import annotations

import pytest
from tests.unit.fsm.fsm_texts import errors, model, of

from flyball.fsm.compile import compile_text

NEST = (
    "[*] --> A",
    "A --> [*]",
    "state A {",
    "[*] --> B",
    "B --> [*]",
    "state B {",
    "[*] --> C",
    "C --> [*]",
    "state C {",
    "[*] --> D",
    "D: do / X",
    "D --> [*]: IsError",
    "D --> [*]",
    "}",
    "}",
    "}",
)


def test_real_nesting() -> None:
    found = of(*NEST)
    assert (found["errors"], found["warnings"]) == ([], [])
    inner = found["states"]["A"]["states"]["B"]["states"]["C"]
    assert inner["initial"] == [{"to": "D"}]
    assert inner["states"]["D"]["do"] == ["X"]


def test_names_of_inner_levels_flow_into_the_lists() -> None:
    diagram, _ = compile_text("\n".join(("title T", *NEST)))
    assert diagram is not None
    assert diagram.states == ("A", "B", "C", "D", "FinalState", "InitialState")
    assert (diagram.actions, diagram.guards) == (("X",), ("IsError",))


def test_what_is_written_before_the_block_is_kept() -> None:
    found = of(
        "[*] --> A",
        "A --> B: IsX",
        "A --> [*]",
        "A: entry / E",
        "B --> [*]",
        "state A {",
        "[*] --> C",
        "C --> [*]",
        "}",
        "A --> A: IsY",
    )
    assert [one["to"] for one in found["states"]["A"]["transitions"]] == ["B", "[*]", "A"]
    assert found["states"]["A"]["entry"] == ["E"]


@pytest.mark.parametrize(
    "opening",
    [
        "state A {",
        "state A {  ",
        "state A{",
        "\tstate\tA\t{",
        "state A #red {",
        "state A <<x>> {",
        'state "Some text" as A {',
    ],
)
def test_openings(opening: str) -> None:
    found = of("[*] --> A", "A --> [*]", opening, "[*] --> B", "B --> [*]", "  } ")
    assert (found["errors"], list(found["states"]), list(found["states"]["A"]["states"])) == ([], ["A"], ["B"])


def test_a_declaration_without_brace_is_no_block() -> None:
    assert "states" not in of("[*] --> A", "state A", "A --> [*]")["states"]["A"]


def test_an_empty_block() -> None:
    assert errors("[*] --> A", "A --> [*]", "state A { }") == ["E-no-initial:A"]


def test_one_name_in_several_composites() -> None:
    block = ("[*] --> S", "S --> [*]: IsError", "S --> [*]", "}")
    found = of(
        "[*] --> P",
        "P --> Q",
        "Q --> S",
        "S --> [*]",
        "state P {",
        "S: do / One",
        *block,
        "state Q {",
        "S: do / Two",
        *block,
    )
    assert (found["errors"], found["warnings"]) == ([], [])
    assert found["states"]["P"]["states"]["S"]["do"] == ["One"]
    assert "do" not in found["states"]["S"]


@pytest.mark.parametrize(
    ("lines", "subject", "line"),
    [
        (("B --> Out", "B --> [*]: IsX"), "Out", 8),
        (("[*] --> Out: IsX", "B --> [*]"), "Out", 8),
        (("Out --> B", "B --> [*]"), "Out", 8),
        (("B --> C", "B --> [*]: IsX"), "C", 8),
        (("B --> Deep", "B --> [*]: IsX"), "Deep", 8),
    ],
)
def test_a_refused_transition_creates_no_state(lines: tuple[str, ...], subject: str, line: int) -> None:
    text = "\n".join(
        (
            "title T",
            "[*] --> A",
            "A --> Out",
            "Out: do / Load",
            "Out --> [*]: IsError",
            "Out --> [*]",
            "state A {",
            *lines,
            "[*] --> B",
            "}",
            "C: do / Load",
            "C --> [*]: IsError",
            "C --> [*]",
            "state Else {",
            "[*] --> Deep",
            "Deep --> [*]",
            "}",
            "Out --> Else: IsElse",
            "Else --> C",
        )
    )
    _, findings = compile_text(text)
    assert [(one.key, one.line) for one in findings if one.severity == "error"] == [
        (f"E-crosses-border:{subject}", line)
    ]
    found = model(text)
    assert list(found["states"]["A"]["states"]) == ["B"]
    assert {one["to"] for state in found["states"]["A"]["states"].values() for one in state["transitions"]} <= {"[*]"}


def test_a_transition_from_outside_to_an_inner_state_is_refused() -> None:
    found = of("[*] --> A", "A --> B: IsX", "A --> [*]", "state A {", "[*] --> B", "B --> [*]", "}")
    assert (found["errors"], list(found["states"])) == (["E-crosses-border:B"], ["A"])


def test_the_graph_is_judged_only_when_text_and_blocks_are_sound() -> None:
    assert errors("[*] --> A", "A --> B", "A --> A: two words") == ["E-syntax:4"]
    assert errors("[*] --> A", "A --> B", "}") == ["E-unopened-block:4"]


def test_what_silences_no_final() -> None:
    assert errors("A --> B", "B --> A") == ["E-no-initial:[*]"]
    assert errors("[*] --> A", "A --> B") == ["E-dead-end:B"]


def test_levels_are_judged_apart() -> None:
    found = errors("[*] --> A", "A --> B", "B --> A: IsX", "B --> B", "state A {", "[*] --> C", "C --> D", "}")
    assert found == ["E-no-final:[*]", "E-dead-end:D"]


@pytest.mark.parametrize(
    "comment",
    ["' fsm: ignore W-not-exhaustive", "   'fsm:ignore W-not-exhaustive", "' fsm: ignore W-shadowed, W-not-exhaustive"],
)
@pytest.mark.parametrize("at", [2, 3])
def test_a_comment_on_the_line_before_silences_a_warning(comment: str, at: int) -> None:
    lines = ["title T", "[*] --> A", "A --> [*]: IsX", "A --> A: IsY"]
    assert model("\n".join(lines))["warnings"] == ["W-not-exhaustive:A"]
    lines.insert(at, comment)
    assert model("\n".join(lines))["warnings"] == []


def test_a_comment_silences_no_error_and_nothing_else() -> None:
    lines = ["title T", "[*] --> A", "' fsm: ignore W-shadowed E-dead-end", "A --> B: IsX"]
    found = model("\n".join(lines))
    assert (found["errors"], found["warnings"]) == (["E-dead-end:B"], ["W-not-exhaustive:A"])


def test_strict_turns_warnings_into_errors() -> None:
    text = "title T\n[*] --> A\nA --> [*]: IsX\n"
    found = model(text, strict=True)
    assert (found["errors"], found["warnings"]) == (["W-not-exhaustive:A"], [])


def test_everything_keeps_its_position() -> None:
    text = "title T\n  A --> B: IsX(a) and\\n IsY :: Do\nA: do / Load"
    diagram, _ = compile_text(text)
    assert diagram is not None
    state = diagram.machine.states["A"]
    transition = state.transitions[0]
    assert (state.position.line, state.position.column) == (2, 3)
    assert (transition.position.line, transition.position.column) == (2, 3)
    assert transition.text == "A --> B: IsX(a) and\\n IsY :: Do"
    assert transition.action is not None
    source = text.split("\n")[1]
    assert source[transition.action.position.column - 1 :].startswith("Do")
    guard = transition.guard
    places = [one.position for one in getattr(guard, "operands", ())]
    assert [source[place.column - 1 :][:3] for place in places] == ["IsX", "IsY"]
    assert (state.do[0].position.line, state.do[0].position.column) == (3, 9)

"""Every construct of the language, line by line (2.4, 2.8)."""

from __future__ import annotations

import pytest
from tests.unit.fsm.fsm_texts import errors, model, of, only

from flyball.fsm.compile import compile_text


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("title Traffic Light", "TrafficLight"),
        ("   title Traffic Light", "TrafficLight"),
        ("title\tTraffic\tLight", "TrafficLight"),
        ("title Test reconcile loop", "TestReconcileLoop"),
        ("title Größe messen", "GrößeMessen"),
        ("title Job-Runner!", "JobRunner"),
        ("title First\ntitle Second", "Second"),
        ("title\nTwo\nLines\nend title", "TwoLines"),
        ("@startuml Named thing\n@enduml", "NamedThing"),
        ("@startuml Named\ntitle Other", "Other"),
    ],
)
def test_titles(line: str, title: str) -> None:
    assert model(f"{line}\n[*] --> A\nA --> [*]\n" if "@enduml" not in line else line)["title"] == title


@pytest.mark.parametrize("line", ["title Job-Runner", "@startuml Named"])
def test_a_title_that_had_to_be_changed_or_guessed_is_a_warning(line: str) -> None:
    assert model(f"{line}\n[*] --> A\nA --> [*]\n")["warnings"][0].startswith("W-title:")


def test_a_line_without_the_word_title_is_none() -> None:
    assert "E-no-title:title" in model("Traffic Light\n[*] --> A\nA --> [*]\n")["errors"]


def test_states_exist_by_being_mentioned_in_that_order() -> None:
    found = of("[*] --> A", "C: do / X", "A --> B", "state D", "state E {", "[*] --> F", "F --> [*]", "}")
    assert list(found["states"]) == ["A", "C", "B", "D", "E"]


def test_the_target_of_an_initial_transition_is_a_state() -> None:
    assert of("[*] --> A")["states"] == {"A": {"transitions": []}}


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("state A", ""),
        ('state "Some text" as A', "Some text"),
        ('state A as "Some text"', "Some text"),
        ("state A #red", ""),
        ("state A ##[dashed]blue", ""),
        ("state A <<mine>> #red", ""),
        ("state A : some words", "some words"),
        ("state A [[https://example.com]]", ""),
        ('state "Two\\nlines" as A', "Two\nlines"),
        ("A: some words", "some words"),
        ("A : some words, and: more", "some words, and: more"),
    ],
)
def test_declarations_and_descriptions(line: str, description: str) -> None:
    diagram, _ = compile_text(f"title T\n[*] --> A\nA --> [*]\n{line}\n")
    assert diagram is not None
    assert diagram.machine.states["A"].description == description


def test_stereotypes() -> None:
    lines = (
        "[*] --> A",
        "A --> C: IsX",
        "A --> B",
        "state A <<choice>>",
        "state B <<end>>",
        "state C <<poll>>",
        "C --> B: IsY",
    )
    diagram, findings = compile_text("\n".join(("title T", *lines)))
    assert findings == []
    assert diagram is not None
    states = diagram.machine.states
    assert (states["A"].choice, states["B"].end, states["C"].poll) == (True, True, True)


def test_a_choice_has_no_actions() -> None:
    assert errors("[*] --> A", "A --> [*]", "state A <<choice>>", "A: do / X") == ["E-syntax:5"]


def test_initial_transitions_may_have_guards_actions_and_the_pseudo_state_actions() -> None:
    found = of("[*]: do / Boot", "[*] --> A: IsWarm :: Greet(b)", "[*] --> B", "A --> [*]", "B --> [*]")
    assert found["initial"] == [{"to": "A", "guard": "IsWarm", "action": "Greet(b)"}, {"to": "B"}]
    assert found["initial_do"] == ["Boot"]


def test_reserved_names_are_accepted_with_a_warning() -> None:
    found = of("InitialState --> A", "InitialState: do / Boot", "A --> FinalState")
    assert (found["initial"], found["initial_do"]) == ([{"to": "A"}], ["Boot"])
    assert found["states"] == {"A": {"transitions": [{"to": "[*]"}]}}
    assert found["errors"] == []
    assert found["warnings"].count("W-reserved-name:InitialState") == 2


def test_actions_keep_their_order_and_repeat() -> None:
    found = of("A: do / X", "A: Y(1)", "A: do / X", "A: entry / E", "A: exit / F(a, b)", "B: do / X")
    assert found["states"]["A"] == {"entry": ["E"], "do": ["X", "Y(1)", "X"], "exit": ["F(a|b)"], "transitions": []}
    assert found["states"]["B"]["do"] == ["X"]


@pytest.mark.parametrize(
    "line", ["A:do/Load", "A : do / Load", "A: do/Load", "  A\t:\tDO / Load ", "A: Load", "A:Load()"]
)
def test_one_action(line: str) -> None:
    assert of(line)["states"]["A"]["do"] == ["Load"]


def test_one_word_is_an_action_with_a_note() -> None:
    _, findings = compile_text("title T\n[*] --> A\nA --> [*]: IsError\nA --> [*]\nA: Load\n")
    assert [(one.key, one.severity, one.line) for one in findings] == [("I-action:A", "info", 5)]


@pytest.mark.parametrize(
    "line", ["A: on / Load", "A: Load / Save", "A: Load(x", "A: do / ", "A: 42%", "[*]: some words", "[*]: exit / X"]
)
def test_what_is_no_action(line: str) -> None:
    assert errors("[*] --> A", "A --> [*]", line) == ["E-syntax:4"]


@pytest.mark.parametrize(
    ("content", "params"),
    [
        ("()", ""),
        ("( )", "()"),
        ("(a)", "(a)"),
        ("(a b)", "(a b)"),
        ("(a, b)", "(a|b)"),
        ("(  a  ,   b  )", "(a|b)"),
        ("(,)", "(|)"),
        ('("a")', "(a)"),
        ('(" a ")', "( a )"),
        ('("a, b")', "(a|b)"),
        ("(a(b)c)", "(a(b)c)"),
        ("(a)b)", "(a)b)"),
        ("(a::b)", "(a::b)"),
        ("(a/b)", "(a/b)"),
        ('(a"b)', '(a"b)'),
        ("(a\\\\b)", "(a\\\\b)"),
        ("(5m, größer)", "(5m|größer)"),
        (" (a)", "(a)"),
    ],
)
def test_parameters(content: str, params: str) -> None:
    expected = "" if params in ("", "()") else params
    found = of(f"A: do / Do{content}", f"A --> [*]: IsX{content}", f"A --> [*]: IsY{content}::Do{content}")
    assert found["states"]["A"]["do"] == [f"Do{'()' if params == '()' else expected}"]
    first, second = found["states"]["A"]["transitions"]
    assert first["guard"] == f"IsX{'()' if params == '()' else expected}"
    assert (second["guard"], second["action"]) == (first["guard"].replace("IsX", "IsY"), found["states"]["A"]["do"][0])


@pytest.mark.parametrize("label", ["IsX", "[IsX]", "[IsX", "IsX ]", "[ IsX ]", "[   IsX", "IsX()", "IsX   "])
def test_brackets_are_decoration(label: str) -> None:
    assert only(f"A --> B: {label}") == {"to": "B", "guard": "IsX"}


@pytest.mark.parametrize(
    "label",
    [
        "IsX::Do(a)",
        "IsX :: Do(a)",
        "[IsX]::Do(a)",
        "[ IsX ] :: Do (a) ",
        "IsX() :: Do (a)",
        "IsX / Do(a)",
        "[IsX] / Do(a)",
        "IsX/Do(a)",
        "IsX\\n::Do(a)",
    ],
)
def test_transition_actions(label: str) -> None:
    assert only(f"A --> B: {label}") == {"to": "B", "guard": "IsX", "action": "Do(a)"}


@pytest.mark.parametrize("label", ["::Do(a)", ":: Do(a)", "/ Do(a)", "/Do(a)"])
def test_transition_actions_without_a_guard(label: str) -> None:
    assert only(f"A --> B: {label}") == {"to": "B", "action": "Do(a)"}


X, Y, Z = "IsX", "IsY", "HasZ(a|b)"


@pytest.mark.parametrize(
    ("label", "guard"),
    [
        ("!IsX", {"not": X}),
        ("not IsX", {"not": X}),
        ("! ! IsX", {"not": {"not": X}}),
        ("IsX && IsY", {"and": [X, Y]}),
        ("IsX and IsY", {"and": [X, Y]}),
        ("IsX || IsY", {"or": [X, Y]}),
        ("IsX or IsY", {"or": [X, Y]}),
        ("IsX and IsY and HasZ(a, b)", {"and": [X, Y, Z]}),
        ("IsX and (IsY and HasZ(a, b))", {"and": [X, Y, Z]}),
        ("IsX or IsY and HasZ(a, b)", {"or": [X, {"and": [Y, Z]}]}),
        ("(IsX or IsY) && HasZ(a,b)", {"and": [{"or": [X, Y]}, Z]}),
        ("not IsX and IsY", {"and": [{"not": X}, Y]}),
        ("not (IsX and IsY)", {"not": {"and": [X, Y]}}),
        ("!(IsX||IsY)", {"not": {"or": [X, Y]}}),
        ("(IsX)", X),
        ("[IsX and IsY]", {"and": [X, Y]}),
        ("HasZ(a)(b)", "HasZ(a)(b)"),
    ],
)
def test_combined_guards(label: str, guard: object) -> None:
    expected = "HasZ(a)(b)" if label == "HasZ(a)(b)" else guard
    assert only(f"A --> B: {label}") == {"to": "B", "guard": expected}
    assert only(f"A --> B: {label} :: Do") == {"to": "B", "guard": expected, "action": "Do"}


@pytest.mark.parametrize(
    "label",
    [
        "",
        "IsX IsY",
        "IsX and",
        "and IsX",
        "not",
        "IsX)",
        "(IsX",
        "IsX &",
        "IsX::",
        "IsX::Do Do",
        "IsX::Do(",
        "1X",
        "Is-X",
        "IsX, IsY",
        "Ev [IsX]",
        "Ev(a) [IsX]",
        "IsX / ",
        "error IsX",
        "not error IsX",
        "error(",
        "error(a b)",
    ],
)
def test_labels_that_cannot_be_understood(label: str) -> None:
    assert errors("[*] --> A", "A --> [*]", f"A --> B: {label}") == ["E-syntax:4"]


@pytest.mark.parametrize(
    ("label", "names", "guard"),
    [
        ("error", (), None),
        ("Error", (), None),
        ("ERROR :: Note", (), None),
        ("error()", (), None),
        ("error(NotFound, Conflict)", ("NotFound", "Conflict"), None),
        ("error [ IsError(Conflict) ]", (), "IsError(Conflict)"),
        ("error(errors.NotFound) [IsX] / Note", ("errors.NotFound",), "IsX"),
    ],
)
def test_error_transitions(label: str, names: tuple[str, ...], guard: str | None) -> None:
    diagram, _ = compile_text(f"title T\nA --> B: {label}\n")
    assert diagram is not None
    found = diagram.machine.states["A"].transitions[0]
    assert found.error is not None
    assert found.error.names == names
    expected = {"to": "B", **({"guard": guard} if guard else {}), **({"action": "Note"} if "Note" in label else {})}
    assert only(f"A --> B: {label}") == {**expected, "event": "error"}


ARROWS = [
    *("-->", "->", "--->", "-[bold]->", "-[dotted]->", "-left->", "-right->", "-up->", "-down->", "-[bold]down->"),
    *("-u->", "-l->", "-[#red]->", "-[dashed]->", "-[hidden]->", "--[bold]->", "-[bold,#red]->", "-[dotted]left->"),
    *("-le->", "-up[bold]->", "--left-->", "-[#red,dashed]-->"),
]


@pytest.mark.parametrize("arrow", ARROWS)
@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_arrows(arrow: str, blank: str) -> None:
    assert only(f"A{blank}{arrow}{blank}B{blank}:{blank}IsX") == {"to": "B", "guard": "IsX"}
    assert of(f"[*]{blank}{arrow}{blank}A")["initial"] == [{"to": "A"}]
    assert only(f"A{blank}{arrow}{blank}[*]{blank}") == {"to": "[*]"}


@pytest.mark.parametrize("arrow", ["<--", "<-", "<---", "<-[bold]-", "<-left-", "<-up[dotted]-"])
def test_reverse_arrows(arrow: str) -> None:
    assert only(f"B {arrow} A: IsX") == {"to": "B", "guard": "IsX"}
    assert only(f"[*]{arrow}A") == {"to": "[*]"}
    assert of(f"A {arrow} [*]")["initial"] == [{"to": "A"}]


@pytest.mark.parametrize("name", ["A1", "_a", "Zustand_ä", "状态", "Δ"])
def test_names_are_identifiers(name: str) -> None:
    assert list(of(f"{name}: do / {name}", f"{name} --> [*]: {name}")["states"]) == [name]


@pytest.mark.parametrize(
    "line",
    [
        "1A --> B",
        "A-b --> C",
        "a.b --> C",
        "2nd: do / X",
        "A-b: do / X",
        "a.b: some words",
        "A --> b.c",
        "A --> 2",
        '"Some state" --> A',
        "A --> x-y: IsX",
    ],
)
def test_what_is_no_name(line: str) -> None:
    assert errors("[*] --> A", "A --> [*]", line) == ["E-syntax:4"]


def test_one_name_for_state_action_and_guard() -> None:
    found = of("[*] --> class", "class: do / class", "class --> [*]: class", "class --> [*]")
    assert found["errors"] == []
    assert found["states"]["class"]["transitions"][0]["guard"] == "class"


# notes, comments, layout ------------------------------------------------------------------------------------------


def notes_of(*lines: str) -> list[str]:
    diagram, findings = compile_text("\n".join(("title T", "[*] --> A", "A --> [*]", *lines)))
    assert diagram is not None
    assert [one for one in findings if one.severity == "error"] == []
    assert list(diagram.machine.states) == ["A"]
    return [note.text for note in diagram.machine.states["A"].notes]


@pytest.mark.parametrize(
    "lines",
    [
        ("note right of A", "  TODO: fix", "  A --> B", "end note"),
        ("note left of A #red", "TODO: fix", "A --> B", "endnote"),
        ("note top of A", "TODO: fix", "A --> B", "END NOTE"),
        ("note left", "TODO: fix", "A --> B", "end note"),
        ("note as N", "TODO: fix", "A --> B", "end note", "A .. N"),
        ("note as N", "TODO: fix", "A --> B", "end note", "N ..> A"),
        ("note right of A : TODO: fix\\nA --> B",),
        ('note "TODO: fix\\nA --> B" as N', "N --> A"),
    ],
)
def test_notes_are_kept_and_never_parsed(lines: tuple[str, ...]) -> None:
    assert notes_of(*lines) == ["TODO: fix\nA --> B"]


def test_a_brace_in_a_note_ends_nothing() -> None:
    found = of("[*] --> C", "C --> [*]", "state C {", "[*] --> A", "note left of A", "}", "end note", "A --> [*]", "}")
    assert found["errors"] == []


def test_notes_without_a_state_belong_to_the_diagram() -> None:
    diagram, _ = compile_text("title T\n[*] --> A\nA --> [*]\nnote right of Nowhere: lost\nnote on link: here\n")
    assert diagram is not None
    assert [note.text for note in diagram.notes] == ["lost", "here"]


@pytest.mark.parametrize(
    "lines",
    [
        ("' A --> B",),
        ("   ' A --> B",),
        ("/' A --> B '/",),
        ("/'", "A --> B", "'/"),
        ("/' A", "A --> B '/"),
        ("/' one '/ /' two '/",),
        ("A --> A: IsX /' A --> B '/",),
        ("/' A --> B '/ A --> A: IsX",),
        ("/' A", "'/ A --> A: IsX"),
    ],
)
def test_comments_are_skipped(lines: tuple[str, ...]) -> None:
    found = of("[*] --> A", *lines, "A --> [*]")
    assert (list(found["states"]), found["errors"], found["warnings"]) == (["A"], [], [])
    assert len(found["states"]["A"]["transitions"]) == (2 if "IsX" in " ".join(lines) else 1)


@pytest.mark.parametrize(
    "lines",
    [
        ("skin rose",),
        ("skinparam monochrome true",),
        ("skinparam state {", "BackgroundColor Red", "ArrowColor<<x>> Blue", "}"),
        ("skinparam {", "state {", "A: x", "}", "}"),
        ("hide empty description",),
        ("scale 350 width",),
        ("scale 2",),
        ("legend", "A --> B", "endlegend"),
        ("legend right", "A: x", "end legend"),
        ("header some words",),
        ("header", "A --> B", "endheader"),
        ("footer page 1",),
        ("center footer words",),
        ("caption words",),
        ("left to right direction",),
        ("top to bottom direction",),
        ("<style>", "state { A: x }", "</style>"),
        ("!theme plain",),
        ("!pragma layout smetana",),
    ],
)
def test_layout_is_skipped_blocks_included(lines: tuple[str, ...]) -> None:
    text = "\n".join(("title T", "[*] --> C", "C --> [*]", "state C {", "[*] --> A", *lines, "A --> [*]", "}"))
    found = model(text)
    assert (found["errors"], found["warnings"]) == ([], [])
    assert list(found["states"]["C"]["states"]) == ["A"]


@pytest.mark.parametrize("word", ["note", "state", "hide", "scale", "header", "legend", "skin", "left", "end"])
def test_words_of_layout_can_be_states(word: str) -> None:
    found = of(f"[*] --> {word}", f"{word}: do / X", f"{word} --> [*]: IsError", f"A <-- {word}", "A --> [*]")
    assert (found["errors"], found["warnings"]) == ([], [])
    assert list(found["states"]) == [word, "A"]

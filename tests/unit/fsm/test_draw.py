"""Drawings: complete, readable by programs, the same every time."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from tests.unit.fsm.fsm_texts import model

from flyball.cli.fsm_convert import command as convert
from flyball.cli.fsm_draw import command as draw
from flyball.errors import FlyballError
from flyball.fsm.compile import compile_text
from flyball.fsm.draw import Overlay, from_mermaid, hits_of, is_mermaid, to_dot, to_mermaid, to_plain, to_svg
from flyball.fsm.draw.layered import Box, Link, layout
from flyball.fsm.draw.places import spread
from flyball.fsm.draw.scene import LABEL, LINE, Arrow, Scene, scene
from flyball.fsm.model import Diagram

NESTED = """\
@startuml
title Backup & more
[*]: do / Boot
[*] --> Preparing
state Preparing {
  [*] --> Reading: IsCached
  [*] --> Fetching
  Fetching: do / Fetch(primary, 5s)
  Fetching --> Fetching: IsSlow and not (IsTimeout(30s) or IsX)
  Fetching --> Reading
  Reading: entry / Open
  Reading --> [*]
  state Reading {
    [*] --> Deciding
    Deciding --> [*]
  }
}
Preparing --> Handling: error(NotFound, Conflict) :: Note(a<b)
Preparing --> Deciding
state Deciding <<choice>>
Deciding --> Waiting: IsLarge
Deciding --> Done
state Waiting <<poll>>
Waiting --> Handling: IsError
state Done <<end>>
Handling: do / HandleError
Handling --> Preparing: IsRetry
Handling --> [*]
note left of Handling
  Words: about it; #1
end note
@enduml
"""


def diagram(text: str = NESTED) -> Diagram:
    found, findings = compile_text(text)
    assert found is not None
    assert [one for one in findings if one.severity == "error"] == []
    return found


def many(count: int, seed: int = 1) -> Diagram:
    """A machine of many states in which most lead to the next, to the end, or to one that handles errors."""
    rng = random.Random(seed)
    lines = ["title Many", "[*] --> S0"]
    for index in range(count):
        name = f"S{index}"
        lines += [f"{name}: do / Work{index}", f"{name} --> Handling: IsError"]
        for _ in range(rng.randrange(3)):
            lines.append(f"{name} --> S{rng.randrange(count)}: Is{rng.choice(('Large', 'Small', 'Missing', 'Paused'))}")
        lines.append(f"{name} --> {f'S{index + 1}' if index + 1 < count else '[*]'}")
    return diagram("\n".join([*lines, "Handling --> [*]"]))


# ---------------------------------------------------------------------------------------------- SVG


def test_svg_is_xml_and_says_everything() -> None:
    root = ElementTree.fromstring(to_svg(diagram()))
    texts = " ".join("".join(element.itertext()) for element in root.iter() if element.tag.endswith("text"))
    words = ["Backup & more", "do / Boot", "Preparing", "Fetching", "do / Fetch(primary, 5s)", "Deciding", "Waiting"]
    words += ["IsSlow and not", "error(NotFound,", "/ Note(a<b)", "IsRetry", "entry / Open", "Done"]
    assert [word for word in words if word not in texts] == []
    titles = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("title")]
    assert "Words: about it; #1" in titles


def test_svg_is_the_same_every_time() -> None:
    assert to_svg(many(25)) == to_svg(many(25))


def test_svg_needs_no_fonts_scripts_or_network() -> None:
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)|<script|@import|<image", to_svg(diagram())) == []


def test_svg_of_odd_texts_is_still_xml() -> None:
    text = 'title T\n[*] --> A\nA: do / X(<&>"\x00\x1b\ud800)\nA --> [*]: IsX(]]>)\nA --> [*]\n'
    found, _ = compile_text(text)
    assert found is not None
    ElementTree.fromstring(to_svg(found).encode())


def test_svg_of_nothing() -> None:
    found, _ = compile_text("")
    assert found is not None
    ElementTree.fromstring(to_svg(found))
    assert to_plain(found).startswith("Untitled\n")


def _boxes(drawn: Scene) -> list[tuple[float, float, float, float]]:
    return [
        (one.x - one.width / 2, one.y - one.height / 2, one.x + one.width / 2, one.y + one.height / 2)
        for one in drawn.figures
        if one.kind != "composite"
    ]


def _label_box(one: Arrow) -> tuple[float, float, float, float]:
    x, y = one.label
    height = len(one.words) * LABEL * LINE
    return (x, y - height / 2, x + max(len(word.text) for word in one.words) * 4.0, y + height / 2)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] - 0.5 and b[0] < a[2] - 0.5 and a[1] < b[3] - 0.5 and b[1] < a[3] - 0.5


@pytest.mark.parametrize("seed", range(6))
def test_nothing_hides_anything(seed: int) -> None:
    drawn = scene(many(30, seed).machine)
    boxes = _boxes(drawn)
    labels = [_label_box(one) for one in drawn.arrows if one.words]
    assert [pair for pair in itertools.combinations(boxes, 2) if _overlap(*pair)] == []
    assert [pair for pair in itertools.product(labels, boxes) if _overlap(*pair)] == []
    assert [pair for pair in itertools.combinations(labels, 2) if _overlap(*pair)] == []
    assert all(one[0] > -0.1 and one[2] < drawn.width + 0.1 and one[3] < drawn.height + 0.1 for one in boxes)


def test_nothing_hides_anything_in_composites() -> None:
    drawn = scene(diagram().machine)
    assert [pair for pair in itertools.combinations(_boxes(drawn), 2) if _overlap(*pair)] == []


@pytest.mark.parametrize("seed", range(6))
def test_no_line_runs_through_a_state(seed: int) -> None:
    drawn = scene(many(30, seed).machine)
    boxes = _boxes(drawn)
    for arrow in drawn.arrows:
        for (x0, y0), (x1, y1) in itertools.pairwise(arrow.points):
            if abs(x0 - x1) < 0.01 and not arrow.loop:
                line = (x0 - 0.1, min(y0, y1), x0 + 0.1, max(y0, y1))
                assert [box for box in boxes if _overlap(line, (box[0] + 2, box[1] + 2, box[2] - 2, box[3] - 2))] == []


def test_every_arrow_begins_and_ends_at_its_states() -> None:
    drawn = scene(many(20).machine)
    boxes = _boxes(drawn)
    for arrow in drawn.arrows:
        for x, y in (arrow.points[0], arrow.points[-1]):
            assert any(box[0] - 0.1 <= x <= box[2] + 0.1 and box[1] - 0.1 <= y <= box[3] + 0.1 for box in boxes)


def test_hits_and_the_current_state_are_shown() -> None:
    path = ["Preparing", "Preparing/Fetching", "Preparing/Fetching", "Preparing/Reading"]
    path += ["Preparing/Reading/Deciding", "Preparing/Reading/[*]", "Preparing/[*]", "Deciding", "Done", "[*]"]
    hits = hits_of([{"path": path}, {"states": path}, path])
    assert hits["Preparing", "Fetching", "Fetching"] == 3
    assert hits["", "[*]", "Preparing"] == 3
    assert hits["Preparing/Reading", "[*]", "Deciding"] == 3
    overlay = Overlay(hits, "Preparing/Fetching", traced=True)
    svg = to_svg(diagram(), overlay)
    assert svg.count("\u00d73<") == len([key for key in hits if key[2] != "[*]" or key[0]])
    assert (svg.count('"s cur"'), svg.count('"c cur-box"')) == (1, 1)
    assert "\u25b6 Fetching" in to_plain(diagram(), overlay)
    assert "(\u00d73)" in to_plain(diagram(), overlay)
    assert "\u00d73" in to_dot(diagram(), overlay)


def test_transitions_between_the_same_states_share_their_count() -> None:
    found = diagram("title T\n[*] --> A\nA --> B: IsX\nA --> B\nB --> [*]\n")
    svg = to_svg(found, Overlay(hits_of(["A", "B", "[*]"]), traced=True))
    assert svg.count("\u00d71 together") == 2


@pytest.mark.parametrize("trace", [1, {"a": 1}, ["A", 1], None])
def test_what_is_no_trace(trace: object) -> None:
    with pytest.raises(FlyballError, match="trace"):
        hits_of(trace)


def test_a_large_machine_is_drawn_in_time_that_people_wait() -> None:
    assert len(to_svg(many(200))) > 100_000


# ---------------------------------------------------------------------------------------------- layout


def test_rows_follow_the_links() -> None:
    boxes = [Box(key, 20, 20) for key in "abcd"]
    found = layout(boxes, [Link("a", "b"), Link("b", "c"), Link("a", "c"), Link("c", "a"), Link("c", "d")])
    heights = [found.boxes[key][1] for key in "abcd"]
    assert heights == sorted(heights)
    assert found.routes[3].points[0][1] > found.routes[3].points[-1][1]


def test_places_are_apart_and_inside() -> None:
    assert spread([5.0, 5.0, 5.0], 2.0, 0.0, 10.0) == [3.0, 5.0, 7.0]
    assert spread([], 2.0, 0.0, 10.0) == []
    assert spread([0.0, 0.0], 4.0, 0.0, 10.0) == [0.0, 4.0]


# ---------------------------------------------------------------------------------------------- other notations


def test_the_terminal() -> None:
    found = to_plain(
        diagram("title Traffic Light\n[*] --> Red\nRed: do / SwitchIn(5)\nRed --> [*]: IsError\nRed --> Red\n")
    )
    assert found == (
        "Traffic Light\n"
        "\n"
        "●\n"
        "└──> Red\n"
        "\n"
        "┌──────────────────┐\n"
        "│ Red              │\n"
        "│ do / SwitchIn(5) │\n"
        "└─┬────────────────┘\n"
        "  ├─ IsError ─> ◉\n"
        "  └──> Red\n"
    )


def test_mermaid_and_back_means_the_same() -> None:
    text = to_mermaid(diagram())
    assert text.startswith('---\ntitle: "Backup & more"\n---\nstateDiagram-v2\n')
    assert is_mermaid(text)
    again, findings = compile_text(from_mermaid(text))
    assert [one for one in findings if one.severity == "error"] == []
    assert again is not None
    assert again.machine == diagram().machine
    assert again.title == "BackupMore"


def test_mermaid_keeps_inner_names_apart() -> None:
    text = to_mermaid(diagram())
    assert 'state "Deciding" as Preparing_Reading_Deciding_state' in text
    assert "[*] --> Preparing_Reading_Deciding_state" in text


MERMAID = """\
---
title: Order flow
---
stateDiagram-v2
    %% a comment
    direction LR
    classDef hot fill:red
    [*] --> Idle
    Idle: Idle
    Idle: do / Wait(1#58;2)
    Idle:::hot --> Busy: IsReady / Start(a)
    state Busy {
        [*] --> Working
        Working --> [*]
    }
    Busy --> [*]: IsError
    Busy --> Idle
    class Idle hot
    note right of Busy
        words
    end note
"""


def test_mermaid_in() -> None:
    found = model(from_mermaid(MERMAID))
    assert (found["title"], found["errors"]) == ("OrderFlow", [])
    assert found["states"]["Idle"] == {
        "do": ["Wait(1:2)"],
        "transitions": [{"to": "Busy", "guard": "IsReady", "action": "Start(a)"}],
    }
    assert list(found["states"]["Busy"]["states"]) == ["Working"]
    assert "' classDef hot fill:red" in from_mermaid(MERMAID)


def test_dot_has_a_cluster_for_each_composite_and_an_edge_for_each_transition() -> None:
    text = to_dot(diagram())
    assert text.count("subgraph") == 2
    edges = sum(len(level.initial) for _, level in diagram().machine.levels())
    edges += sum(len(state.transitions) for _, state in diagram().machine.walk())
    assert text.count(" -> ") == edges
    assert text.count("{") == text.count("}")


# ---------------------------------------------------------------------------------------------- verbs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "backup.puml"
    path.write_text(NESTED)
    return path


@pytest.mark.parametrize(
    ("name", "begin"),
    [("a.svg", "<svg "), ("a.mmd", "---\n"), ("a.dot", "digraph "), ("a.puml", "@startuml\n"), ("a.txt", "Backup &")],
)
def test_the_name_of_the_output_decides_the_format(file: Path, name: str, begin: str) -> None:
    out = file.parent / name
    result = CliRunner().invoke(draw, [str(file), "-o", str(out)])
    assert (result.exit_code, result.output) == (0, "")
    assert out.read_text().startswith(begin)


@pytest.mark.parametrize("form", ["svg", "mermaid", "dot", "plantuml", "text"])
def test_every_format_goes_to_standard_output(file: Path, form: str) -> None:
    result = CliRunner().invoke(draw, [str(file), "--format", form])
    assert result.exit_code == 0
    assert "Preparing" in result.stdout


def test_draw_with_a_trace(file: Path) -> None:
    trace = file.parent / "trace.json"
    trace.write_text(json.dumps({"path": ["Preparing", "Preparing/Fetching"]}))
    run = CliRunner()
    result = run.invoke(draw, [str(file), "--trace", str(trace), "--current", "Preparing/Fetching"])
    assert "\u25b6 Fetching" in result.stdout
    trace.write_text(json.dumps(["Elsewhere"]))
    assert "no state Elsewhere" in str(run.invoke(draw, [str(file), "--trace", str(trace)]).exception)
    trace.write_text("{")
    assert "not JSON" in str(run.invoke(draw, [str(file), "--trace", str(trace)]).exception)
    assert "no state Fetching" in str(run.invoke(draw, [str(file), "--current", "Fetching"]).exception)


def test_convert_from_mermaid_in_markdown(tmp_path: Path) -> None:
    source = tmp_path / "flow.md"
    source.write_text(f"# Words\n\n```mermaid\n{MERMAID.partition('---')[2].partition('---')[2].lstrip()}```\n")
    result = CliRunner().invoke(convert, [str(source), "--to", "json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["title"] == "Flow"


def test_convert_tells_what_it_does_not_understand(tmp_path: Path) -> None:
    source = tmp_path / "flow.mmd"
    source.write_text("stateDiagram-v2\n[*] --> A\nA --> [*]: when it is done\n")
    result = CliRunner().invoke(convert, [str(source)])
    assert result.exit_code == 1
    assert "E-syntax" in result.stderr
    assert result.stdout.startswith("@startuml\n\ntitle flow\n")


@pytest.mark.parametrize("target", ["mermaid", "dot", "json", "plantuml"])
def test_convert_from_plantuml(file: Path, target: str) -> None:
    result = CliRunner().invoke(convert, [str(file), "--to", target])
    assert result.exit_code == 0
    assert "Preparing" in result.stdout


def test_convert_says_when_there_is_no_mermaid(file: Path) -> None:
    result = CliRunner().invoke(convert, [str(file), "--from", "mermaid"])
    assert "no Mermaid state diagram" in str(result.exception)

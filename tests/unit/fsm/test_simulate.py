"""Simulation: scenarios, conversations, and their command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.machines import diagram

from flyball.cli.fsm_simulate import command
from flyball.fsm.converse import Conversation, converse
from flyball.fsm.parse import DiagramError
from flyball.fsm.simulate import Scenario, ScenarioError, Simulation, simulate

BOX = """
title Boxes
[*] --> A
A: do / Load(x)
A --> H: error
A --> Box: IsReady and not HasFlag(z)
A --> [*]
state Box {
  [*] --> In
  In: do / Work
  In --> [*]: IsDone
  In --> In: IsMore
}
Box --> [*]: All :: Note(a,b)
Box --> A
H --> [*]
"""


def play(text: str, **scenario: Any) -> Simulation:
    return simulate(diagram(text), Scenario.from_json(scenario))


def test_everything_at_once() -> None:
    seen = play(
        BOX,
        guards={"IsReady": True, "IsDone": [False, True], "IsMore": True, "All": [False, True]},
        fail={},
        step_limit=50,
    )
    assert seen.as_dict() == {
        "path": ["A", "Box", "Box/In", "Box/In", "Box/[*]", "A", "Box", "Box/In", "Box/[*]", "[*]"],
        "actions": ["Load(x)", "Work", "Work", "Load(x)", "Work", "Note(a|b)"],
        "checks": [
            *("IsReady=true", "HasFlag(z)=false", "IsDone=false", "IsMore=true", "IsDone=true", "All=false"),
            *("IsReady=true", "HasFlag(z)=false", "IsDone=true", "All=true"),
        ],
        "error": None,
        "stop": None,
    }


def test_an_empty_scenario_makes_every_guard_false() -> None:
    assert play(BOX) == Simulation(["A", "[*]"], ["Load(x)"], ["IsReady=false"], None, None)


def test_each_operand_that_is_evaluated_is_a_check() -> None:
    assert play(BOX, guards={"IsReady": True, "HasFlag": True}).checks == ["IsReady=true", "HasFlag(z)=true"]
    assert play(BOX, guards={"HasFlag": True}).checks == ["IsReady=false"]


def test_the_form_with_parameters_is_looked_up_first() -> None:
    text = "title T\n[*] --> A\nA --> B: Is(x)\nA --> C: Is(y)\nA --> [*]\nB --> [*]\nC --> [*]\n"
    assert play(text, guards={"Is(y)": True, "Is": False}).path == ["A", "C", "[*]"]
    assert play(text, guards={"Is(x)": False, "Is": True}).path == ["A", "C", "[*]"]


def test_a_list_gives_a_value_per_call_and_the_last_repeats() -> None:
    text = "title T\n[*] --> A\nA --> [*]: Is(x)\nA --> A\n"
    seen = play(text, guards={"Is": [False, False, True]})
    assert seen.path == ["A", "A", "A", "[*]"]
    assert play(text, guards={"Is": [True, False]}, step_limit=4).path == ["A", "[*]"]
    assert play(text, guards={"Is(x)": []}, step_limit=2).stop == "step-limit"
    assert play(
        "title T\n[*] --> A\nA --> A: Is(x)\nA --> A: Is(y)\nA --> [*]\n", guards={"Is": [True, False, False]}
    ).checks == [
        *("Is(x)=true", "Is(x)=false", "Is(y)=false"),
    ]


def test_call_numbers_count_over_all_uses_and_parameters() -> None:
    text = "title T\n[*] --> A\nA: do / X(1)\nA: do / X(2)\nA --> B\nB: do / X(1)\nB: do / Y\nB --> [*]\n"
    assert play(text, fail={"X": [3]}) == Simulation(["A", "B", "[*]"], ["X(1)", "X(2)", "X(1)"], [], "X", None)
    assert play(text, fail={"X": [1]}).actions == ["X(1)", "X(1)", "Y"]
    assert play(text, fail={"X": "always", "Y": "always"}).actions == ["X(1)", "X(1)"]


def test_is_error_means_that_an_error_is_stored_whatever_the_scenario_says() -> None:
    text = "title T\n[*] --> A\nA: do / X\nA --> H: IsError(NotFound)\nA --> [*]\nH --> [*]\n"
    assert play(text, guards={"IsError": True, "IsError(NotFound)": True}).path == ["A", "[*]"]
    seen = play(text, guards={"IsError(NotFound)": False}, fail={"X": "always"})
    assert (seen.path, seen.checks, seen.error) == (["A", "H", "[*]"], ["IsError(NotFound)=true"], "X")


def test_the_last_failed_action_is_the_error() -> None:
    text = "title T\n[*] --> A\nA: do / X\nA --> B\nB: do / Y\nB --> [*]\n"
    assert play(text, fail={"X": "always", "Y": "always"}).error == "Y"
    assert play(text, fail={"X": [1], "Y": [2]}).error == "X"


def test_a_failing_transition_action_is_the_error_too() -> None:
    seen = play(BOX, guards={"IsReady": True, "IsDone": True, "All": True}, fail={"Note": "always"})
    assert (seen.path[-2:], seen.error) == (["Box/[*]", "[*]"], "Note")


def test_error_transitions_and_reasons() -> None:
    assert play(BOX, fail={"Load": "always"}) == Simulation(["A", "H", "[*]"], ["Load(x)"], [], "Load", None)
    text = "title T\n[*] --> A\nA: do / X\nA --> H: error(NotFound)\nA --> [*]\nH --> [*]\n"
    assert play(text, fail={"X": "always"}).path == ["A", "[*]"]
    assert play(text, fail={"X": "always"}, errors={"X": "NotFound"}).path == ["A", "H", "[*]"]


def test_stuck_names_the_full_path_and_has_no_end() -> None:
    seen = play(BOX, guards={"IsReady": True}, fail={})
    assert (seen.path, seen.stop, seen.error) == (["A", "Box", "Box/In"], "stuck:Box/In", None)


def test_stuck_keeps_the_error() -> None:
    text = "title T\n[*] --> A\nA: do / X\nA --> [*]: Never\n"
    assert play(text, fail={"X": "always"}) == Simulation(["A"], ["X"], ["Never=false"], "X", "stuck:A")


def test_staying_adds_nothing_to_the_path() -> None:
    text = "title T\n[*] --> A\nA: do / X\nA --> [*]: Is\n"
    seen = play(text, guards={"Is": [False, False, True]}, policy="stay")
    assert seen == Simulation(["A", "[*]"], ["X", "X", "X"], ["Is=false", "Is=false", "Is=true"], None, None)
    limited = play(text, policy="stay", step_limit=3)
    assert limited == Simulation(["A"], ["X"] * 3, ["Is=false"] * 3, None, "step-limit")


def test_poll_stays_under_every_policy() -> None:
    text = "title T\nstate A <<poll>>\n[*] --> A\nA: do / X\nA --> [*]: Is\n"
    assert play(text, guards={"Is": [False, True]}).actions == ["X", "X"]


def test_the_step_limit() -> None:
    text = "title T\n[*] --> A\nA --> B: Is\nA --> [*]: No\nA --> A\nB --> A\n"
    seen = play(text, guards={"Is": True}, step_limit=5)
    assert (seen.path, seen.stop) == (["A", "B", "A", "B", "A"], "step-limit")
    assert len(play(text, guards={"Is": True}).path) == 1000


def test_every_action_counts_with_entry_exit_and_initial_ones() -> None:
    text = """
title T
[*]: do / Boot
[*] --> A: IsWarm :: Warm
[*] --> A
A: entry / In
A: do / X
A: exit / Out
A --> [*]: ::Bye
"""
    seen = play(text, guards={"IsWarm": True})
    assert seen.actions == ["Boot", "Warm", "In", "X", "Out", "Bye"]
    assert play(text, fail={"In": [1]}) == Simulation(
        ["A", "[*]"], ["Boot", "In", "Out", "Bye"], ["IsWarm=false"], "In", None
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "a scenario is an object"),
        ({"guard": {}}, "guard is not known; there are guards, fail, policy, step_limit"),
        ({"guards": {"A": 1}}, "guards must be an object"),
        ({"guards": {"A": [True, None]}}, "guards must be"),
        ({"fail": {"A": "sometimes"}}, "fail must be"),
        ({"fail": {"A": [1.5]}}, "fail must be"),
        ({"policy": "maybe"}, 'policy must be "error" or "stay"'),
        ({"step_limit": True}, "step_limit must be a number"),
    ],
)
def test_scenarios_that_make_no_sense(data: object, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        Scenario.from_json(data)


# -- conversations ----------


def talk(*answers: str, failing: bool = False) -> tuple[Simulation, list[str], list[str]]:
    questions: list[str] = []
    told: list[str] = []
    rest: Iterator[str] = iter(answers)

    def ask(question: str) -> str | None:
        questions.append(question)
        return next(rest, None)

    return converse(diagram(BOX), Conversation(ask, told.append, failing)), questions, told


def test_a_person_decides_the_guards() -> None:
    seen, questions, told = talk("y", "n", "YES", "true")
    assert seen.path == ["A", "Box", "Box/In", "Box/[*]", "[*]"]
    assert questions[:2] == ["A: IsReady? [y/N] ", "A: HasFlag(z)? [y/N] "]
    assert "A -> Box  [IsReady and not HasFlag(z)]" in told
    assert "  do Load(x)" in told


def test_a_person_may_go_back_look_around_and_stop() -> None:
    seen, questions, told = talk("y", "y", "q")
    assert (seen.stop, seen.path) == (None, ["A", "[*]"])
    seen, questions, told = talk("b", "y", "b", "y", "", "p", "what", "q")
    assert questions.count("A: IsReady? [y/N] ") == 3
    assert "path: A, Box, Box/In" in told
    assert any("take the last answer back" in line for line in told)
    assert (seen.stop, seen.path) == ("quit", ["A", "Box", "Box/In"])


def test_the_end_of_the_input_stops() -> None:
    seen, _, _ = talk()
    assert (seen.stop, seen.path) == ("quit", ["A"])


def test_a_person_may_let_actions_fail() -> None:
    seen, questions, _ = talk("y", failing=True)
    assert questions == ["A: does Load(x) fail? [y/N] "]
    assert (seen.path, seen.error) == (["A", "H", "[*]"], "Load")


def test_taking_an_answer_back_replays_the_others_silently() -> None:
    _, _, told = talk("y", "n", "b", "n", "y", "y")
    assert told.count("[*] -> A") == 1


# -- the command ----------


@pytest.fixture
def box(tmp_path: Path) -> Path:
    file = tmp_path / "box.puml"
    file.write_text(f"@startuml{BOX}@enduml\n")
    return file


def run(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args], input=stdin)


def test_scripted_json(box: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "s.json"
    scenario.write_text('{"guards": {"IsReady": true, "IsDone": true, "All": true}}')
    result = run(box, "--scenario", scenario, "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "path": ["A", "Box", "Box/In", "Box/[*]", "[*]"],
        "actions": ["Load(x)", "Work", "Note(a|b)"],
        "checks": ["IsReady=true", "HasFlag(z)=false", "IsDone=true", "All=true"],
        "error": None,
        "stop": None,
    }
    assert result.stderr == ""
    assert "path:    A, Box, Box/In" in run(box, "--scenario", scenario).stdout


def test_a_scenario_from_standard_input(box: Path) -> None:
    result = run(box, "--scenario", "-", "--format", "json", stdin='{"fail": {"Load": "always"}}')
    assert json.loads(result.stdout)["error"] == "Load"


def test_a_name_that_the_diagram_lacks_is_told(box: Path, tmp_path: Path) -> None:
    result = run(
        box, "--scenario", "-", stdin='{"guards": {"IsRedy": true, "HasFlag(z)": true}, "fail": {"Lode": [1]}}'
    )
    assert result.exit_code == 0
    assert "no guard IsRedy" in result.stderr
    assert "no action Lode" in result.stderr
    assert "HasFlag" not in result.stderr


def test_piped_answers(box: Path) -> None:
    result = run(box, "--format", "json", stdin="y\nn\ny\ny\n")
    assert json.loads(result.stdout)["path"] == ["A", "Box", "Box/In", "Box/[*]", "[*]"]
    assert "IsReady? [y/N] y" in result.stderr
    assert "stop:    quit" in run(box, stdin="y\n").stdout


def test_broken_scenarios_and_diagrams_are_failures(box: Path, tmp_path: Path) -> None:
    result = run(box, "--scenario", "-", stdin="{")
    assert isinstance(result.exception, ScenarioError)
    assert "-:1:2: not JSON" in str(result.exception)
    broken = tmp_path / "broken.puml"
    broken.write_text("title T\n[*] --> A\nA --> B\n")
    result = run(broken, "--scenario", "-", stdin="{}")
    assert isinstance(result.exception, DiagramError)
    assert "E-dead-end" in str(result.exception)
    assert result.exception.findings

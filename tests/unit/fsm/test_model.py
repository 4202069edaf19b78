"""The model: immutable, ordered, equal when it means the same; its document and the verb that prints it."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.fsm.fsm_texts import model

from flyball.cli.fsm_model import command
from flyball.fsm.compile import compile_text
from flyball.fsm.model import And, Call, Diagram, Machine, Not, Or, Position, State, Transition, guard_calls, guard_text

SEED = Path(__file__).parent / "examples" / "simplejob.puml"

TRAFFIC_LIGHT = """\
@startuml

title Traffic Light

[*] --> Red

Red: SwitchIn(5)
Red -[dotted]left-> [*]: [IsError
Red -down-> Yellow

\tYellow: do / SwitchIn(1)
Yellow -[dotted]-> [*]: IsError               ]
Yellow -[bold]-> Green

Green: SwitchIn(5)
Green -[dotted]right-> [*]: [ IsError ]
Green -[bold]-> FlashingYellow

FlashingYellow:do/SwitchIn(3)
FlashingYellow --> [*]: IsError
FlashingYellow-->Red

@enduml
"""


def _diagram(text: str) -> Diagram:
    found, _ = compile_text(text)
    assert found is not None
    return found


def _switching(seconds: int, after: str) -> dict[str, Any]:
    return {"do": [f"SwitchIn({seconds})"], "transitions": [{"to": "[*]", "guard": "IsError"}, {"to": after}]}


def test_the_traffic_light() -> None:
    assert model(TRAFFIC_LIGHT) == {
        "title": "TrafficLight",
        "initial": [{"to": "Red"}],
        "states": {
            "Red": _switching(5, "Yellow"),
            "Yellow": _switching(1, "Green"),
            "Green": _switching(5, "FlashingYellow"),
            "FlashingYellow": _switching(3, "Red"),
        },
        "errors": [],
        "warnings": [],
    }
    found = _diagram(TRAFFIC_LIGHT)
    assert found.states == ("FinalState", "FlashingYellow", "Green", "InitialState", "Red", "Yellow")
    assert (found.actions, found.guards) == (("SwitchIn",), ("IsError",))


def test_variants_of_the_traffic_light() -> None:
    more = TRAFFIC_LIGHT.replace(
        "Red -down->", "Red --> Green: NotGonnaHappen::AlwaysGreen(force1, force2)\nRed -down->"
    )
    assert model(more)["states"]["Red"]["transitions"][1] == {
        "to": "Green",
        "guard": "NotGonnaHappen",
        "action": "AlwaysGreen(force1|force2)",
    }
    boxed = TRAFFIC_LIGHT.replace(
        "Red: SwitchIn(5)", "state Red {\n\t[*] --> InRed\n\tInRed: SwitchIn(5)\n\tInRed --> [*]\n}"
    )
    found = model(boxed)
    assert found["states"]["Red"]["states"] == {"InRed": {"do": ["SwitchIn(5)"], "transitions": [{"to": "[*]"}]}}
    assert (found["errors"], found["warnings"]) == ([], ["W-unhandled-error:InRed"])
    assert "InRed" in _diagram(boxed).states


def _step(action: str, *transitions: tuple[str, ...]) -> dict[str, Any]:
    return {
        "do": [action],
        "transitions": [{"to": one[0], **({"guard": one[1]} if len(one) > 1 else {})} for one in transitions],
    }


@pytest.mark.capability("S4")
def test_the_seeds_diagram_compiles_unchanged() -> None:
    found = model(SEED.read_text())
    error = ("HandlingError", "IsError")
    assert found["title"] == "SimpleJobReconciler"
    assert found["initial"] == [{"to": "Initializing"}]
    assert found["states"] == {
        "Initializing": _step("Initialize", ("LoadingResource",)),
        "LoadingResource": _step("LoadResource", error, ("[*]", "IsNotFound"), ("CheckingJobStatus",)),
        "HandlingError": _step("HandleError", ("[*]",)),
        "CheckingJobStatus": _step(
            "CheckJobStatus",
            error,
            ("CreatingJob", "IsJobMissing"),
            ("SettingPhase", "IsMaxRetriesExceeded"),
            ("RetryingJob", "IsJobFailed"),
            ("SettingPhase",),
        ),
        "CreatingJob": _step("CreateJob", error, ("UpdatingStatus",)),
        "SettingPhase": _step("SetPhase", ("UpdatingStatus",)),
        "RetryingJob": _step("RetryJob", error, ("UpdatingStatus",)),
        "UpdatingStatus": _step("UpdateStatus", error, ("[*]",)),
    }
    unhandled = [f"W-unhandled-error:{name}" for name in ("Initializing", "SettingPhase", "HandlingError")]
    assert (found["errors"], found["warnings"]) == ([], unhandled)


def test_actions_that_never_fail_need_no_handler() -> None:
    _, findings = compile_text(SEED.read_text(), infallible={"Initialize", "HandleError"})
    assert [one.subject for one in findings] == ["SettingPhase"]


# ---------------------------------------------------------------------------------------------- objects


def test_nothing_can_be_changed() -> None:
    found = _diagram(TRAFFIC_LIGHT)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.title = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.machine.states["Red"] = found.machine.states["Green"]  # type: ignore[index]


def test_equal_means_the_same() -> None:
    first = _diagram(TRAFFIC_LIGHT)
    second = _diagram(TRAFFIC_LIGHT.replace("[*] --> Red", "' words\n\n[*]-->Red"))
    assert first == second
    assert hash(first.machine) == hash(second.machine)
    assert first.sha256 != second.sha256
    assert first != _diagram(TRAFFIC_LIGHT.replace("SwitchIn(3)", "SwitchIn(4)"))


def test_copies_and_pickles() -> None:
    found = _diagram(TRAFFIC_LIGHT)
    assert pickle.loads(pickle.dumps(found)) == found
    assert copy.deepcopy(found.machine) == found.machine


def test_walking() -> None:
    inner = Machine({"C": State("C")})
    machine = Machine({"A": State("A", inner=Machine({"B": State("B", inner=inner)})), "D": State("D")})
    assert [path for path, _ in machine.walk()] == [("A",), ("A", "B"), ("A", "B", "C"), ("D",)]
    assert [path for path, _ in machine.levels()] == [(), ("A",), ("A", "B")]


def test_guards_as_text() -> None:
    one, other, third = Call("A"), Call("B", ("x", "y")), Call("C")
    guard = Or((And((one, Not(other))), Not(Or((one, third)))))
    assert guard_text(guard) == "A and not B(x|y) or not (A or C)"
    assert [call.key for call in guard_calls(guard)] == ["A", "B(x|y)", "A", "C"]
    assert guard_text(And((Or((one, third)), other))) == "(A or C) and B(x|y)"
    assert list(guard_calls(None)) == []


def test_the_default_is_the_first_wherever_it_stands() -> None:
    ways = (Transition("A", "B", Call("IsX")), Transition("A", "C"), Transition("A", "D"))
    state = State("A", transitions=ways, position=Position(1))
    assert state.default is ways[1]
    assert State("A").default is None


# ---------------------------------------------------------------------------------------------- the verb


def test_the_verb_prints_the_document(tmp_path: Path) -> None:
    file = tmp_path / "a.puml"
    file.write_text(TRAFFIC_LIGHT)
    result = CliRunner().invoke(command, [str(file)])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == model(TRAFFIC_LIGHT)


def test_the_verb_prints_diagrams_with_errors_and_exits_1(tmp_path: Path) -> None:
    file = tmp_path / "a.puml"
    file.write_text("title T\n[*] --> A: IsX or (IsY and not IsZ(1, 2)) :: Do(a)\nA --> B: error\nB --> A: two words\n")
    result = CliRunner().invoke(command, [str(file)])
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "title": "T",
        "initial": [{"to": "A", "guard": {"or": ["IsX", {"and": ["IsY", {"not": "IsZ(1|2)"}]}]}, "action": "Do(a)"}],
        "states": {"A": {"transitions": [{"to": "B", "event": "error"}]}, "B": {"transitions": []}},
        "errors": ["E-syntax:4"],
        "warnings": ["W-not-exhaustive:[*]", "W-not-exhaustive:A"],
    }


def test_the_verb_chooses_a_diagram(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text(f"```plantuml\n{TRAFFIC_LIGHT}```\n\n```puml\ntitle Other\n[*] --> A\nA --> [*]\n```\n")
    run = CliRunner()
    first = json.loads(run.invoke(command, [str(file)]).stdout)
    assert (first["title"], first["warnings"]) == ("TrafficLight", ["W-more-diagrams:Other"])
    assert json.loads(run.invoke(command, [str(file), "--diagram", "Other"]).stdout)["title"] == "Other"
    both = json.loads(run.invoke(command, [str(file), "--diagram", "all"]).stdout)
    assert [(one["title"], one["warnings"]) for one in both] == [("TrafficLight", []), ("Other", [])]
    assert "no diagram 'x'" in str(run.invoke(command, [str(file), "--diagram", "x"]).exception)

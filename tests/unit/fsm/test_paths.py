"""Simple paths and the guard values that lead along them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.support.machines import diagram, make

from flyball.cli.fsm_paths import command
from flyball.fsm import model, paths
from flyball.fsm.paths import Condition, Paths, find_paths
from flyball.fsm.run import FINAL, call, state, to
from flyball.fsm.simulate import SimulatedFailure, result_of, stage


def listed(found: Paths) -> list[tuple[str, str]]:
    """Each path as text, with its conditions."""
    return [(" ".join(path.states), " ".join(f"{one.state}:{one}" for one in path.conditions)) for path in found.paths]


def test_guards_before_are_false_and_the_taken_one_is_true() -> None:
    found = find_paths(
        diagram("title T\n[*] --> A\nA --> B: P\nA --> [*]: Q\nA --> C\nB --> [*]\nC --> A: R\nC --> [*]\n")
    )
    assert listed(found) == [
        ("A B [*]", "A:P=true"),
        ("A [*]", "A:P=false A:Q=true"),
        ("A C [*]", "A:P=false A:Q=false C:R=false"),
    ]
    assert (found.left_out, found.complete) == (0, True)


def test_composites_of_any_depth() -> None:
    text = """
title T
[*] --> Box
state Box {
  [*] --> In: P
  [*] --> Deep
  In --> [*]
  state Deep {
    [*] --> X
    X --> [*]
  }
  Deep --> [*]
}
Box --> [*]
"""
    assert listed(find_paths(diagram(text))) == [
        ("Box Box/In Box/[*] [*]", "Box/[*]:P=true"),
        ("Box Box/Deep Box/Deep/X Box/Deep/[*] Box/[*] [*]", "Box/[*]:P=false"),
    ]


def test_combined_guards_are_told_by_their_parts() -> None:
    text = "title T\n[*] --> A\nA --> B: (P and Q) or not R\nA --> C: P\nA --> [*]\nB --> [*]\nC --> [*]\n"
    assert listed(find_paths(diagram(text))) == [
        ("A B [*]", "A:P=true A:Q=true"),
        ("A C [*]", "A:P=true A:Q=false A:R=true"),
        ("A [*]", "A:P=false A:R=true"),
    ]


def test_what_no_values_lead_along_is_not_listed() -> None:
    text = "title T\n[*] --> A\nA --> B: P\nA --> C: P and Q\nA --> [*]\nB --> [*]\nC --> [*]\n"
    assert [path for path, _ in listed(find_paths(diagram(text)))] == ["A B [*]", "A [*]"]


def test_error_transitions_are_ways_out_of_states_that_can_fail() -> None:
    text = """
title T
[*] --> Box
state Box {
  [*] --> A
  A: do / X
  A --> B: error(NotFound)
  A --> C: error [ P ]
  A --> [*]
  B --> [*]
  C --> [*]
}
Box --> H: error
Box --> [*]
H --> [*]
"""
    assert listed(find_paths(diagram(text))) == [
        ("Box Box/A Box/B Box/[*] [*]", "Box/A:error(NotFound)=true"),
        ("Box Box/A Box/C Box/[*] [*]", "Box/A:error(NotFound)=false Box/A:error=true Box/A:P=true"),
        ("Box Box/A H [*]", "Box/A:error(NotFound)=false Box/A:error=true Box/A:P=false"),
        ("Box Box/A Box/[*] [*]", ""),
    ]


def test_the_limit_and_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [f"S{n} --> S{n + 1}: P{n}\nS{n} --> T{n}\nT{n} --> S{n + 1}" for n in range(5)]
    text = "\n".join(["title T", "[*] --> S0", *steps, "S5 --> [*]"])
    found = find_paths(diagram(text), 10)
    assert (len(found.paths), found.left_out, found.complete) == (10, 22, True)
    monkeypatch.setattr(paths, "COUNTED", 5)
    found = find_paths(diagram(text), 10)
    assert (len(found.paths), found.left_out, found.complete) == (10, 5, False)
    monkeypatch.setattr(paths, "LOOKED_AT", 20)
    assert not find_paths(diagram(text), 1000).complete


def test_long_diagrams_need_no_deep_stack() -> None:
    steps = [state(f"S{n}", transitions=[to(f"S{n + 1}" if n < 2999 else FINAL)]) for n in range(3000)]
    found = find_paths(make(*steps).table)
    assert len(found.paths[0].states) == 3001


@st.composite
def machines(draw: st.DrawFn, depth: int = 1) -> list[model.State]:
    names = [f"S{n}" for n in range(draw(st.integers(1, 4)))]
    guard = st.one_of(
        st.sampled_from("PQR").map(call),
        st.tuples(st.sampled_from("PQR"), st.sampled_from("PQR")).map(
            lambda two: model.And((call(two[0]), model.Not(call(two[1]))))
        ),
        st.tuples(st.sampled_from("PQR"), st.sampled_from("PQR")).map(
            lambda two: model.Or((call(two[0]), call(two[1])))
        ),
    )
    move = st.builds(
        lambda target, guard, error: to(target, guard, error=error),
        st.sampled_from([*names, FINAL]),
        st.one_of(st.none(), guard),
        st.sampled_from([False, False, False, True, ["One"], ["Two"]]),
    )
    states: list[model.State] = []
    for name in names:
        inner = draw(machines(depth - 1)) if depth and draw(st.integers(0, 3)) == 0 else []
        states.append(
            state(
                name,
                do=[call("Act")] if not inner else [],
                transitions=draw(st.lists(move, min_size=1, max_size=4)),
                initial=[to("S0")] if inner else [],
                states=inner,
            )
        )
    return states


class Guided:
    """Answers by the conditions of one path, which enters each state once."""

    def __init__(self, conditions: tuple[Condition, ...]) -> None:
        self.values = {(one.state, one.guard): one.value for one in conditions}
        self.fails = {one.state: one.guard for one in conditions if one.value and one.guard.startswith("error")}

    def guard(self, name: str, params: tuple[str, ...], state: str) -> bool:
        return self.values.get((state, name), False)

    def action(self, name: str, params: tuple[str, ...], state: str) -> Exception | None:
        label = self.fails.get(state)
        return None if label is None else SimulatedFailure(name, label.removeprefix("error").strip("()"))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(machines())
def test_the_engine_walks_every_path_by_its_values(states: list[model.State]) -> None:
    table = make(*states).table
    found = find_paths(table, 20)
    assume(found.paths)
    for path in found.paths:
        player = stage(table, Guided(path.conditions))
        player.settle_sync()
        assert result_of(player).path == list(path.states)


# -- the command ----------


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "t.puml"
    file.write_text("title T\n[*] --> A\nA --> B: P\nA --> [*]\nB --> C: Q\nB --> [*]\nC --> [*]\n")
    text = CliRunner().invoke(command, [str(file), "--limit", "2"])
    assert text.exit_code == 0
    assert text.stdout.splitlines() == [
        "1. A, B, C, [*]",
        "   A: P=true",
        "   B: Q=true",
        "2. A, B, [*]",
        "   A: P=true",
        "   B: Q=false",
        "T: 2 paths, 1 left out (--limit)",
    ]
    answer = json.loads(CliRunner().invoke(command, [str(file), "--limit", "1", "--format", "json"]).stdout)
    assert answer == {
        "title": "T",
        "paths": [
            {
                "path": ["A", "B", "C", "[*]"],
                "guards": [{"state": "A", "guard": "P", "value": True}, {"state": "B", "guard": "Q", "value": True}],
            }
        ],
        "left_out": 2,
        "complete": True,
    }
    assert "T: 3 paths" in CliRunner().invoke(command, [str(file)]).stdout

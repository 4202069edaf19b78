"""The checks beyond their table: what silences what, what counts as handled, what is no cycle."""

from __future__ import annotations

import pytest
from tests.unit.fsm.fsm_texts import of

from flyball.fsm.check import check
from flyball.fsm.compile import compile_text


def told(*lines: str) -> list[str]:
    """Errors and warnings of some lines below a title."""
    found = of(*lines)
    return [*found["errors"], *found["warnings"]]


# ---------------------------------------------------------------------------------------------- the graph


def test_a_guarded_way_to_the_end_is_a_way() -> None:
    assert told("[*] --> A", "A --> [*]: IsX", "A --> A") == []


def test_an_error_transition_to_the_end_is_a_way() -> None:
    assert told("[*] --> A", "A --> [*]: error", "A --> A: IsX", "A --> A") == []


def test_a_named_end_is_an_end() -> None:
    assert told("[*] --> A", "A --> Done", "state Done <<end>>") == []
    assert told("[*] --> Done", "state Done <<end>>") == []


def test_an_end_that_cannot_be_reached_is_none() -> None:
    assert told("[*] --> A", "A --> A: IsX", "A --> A", "B --> [*]") == ["E-no-final:[*]", "W-unreachable:B"]


def test_the_end_of_an_inner_level_is_not_that_of_the_outer() -> None:
    inner = ("state A {", "[*] --> B", "B --> [*]", "}")
    assert told("[*] --> A", "A --> A: IsX", "A --> A", *inner) == ["E-no-final:[*]"]


def test_an_unreachable_state_is_no_dead_end() -> None:
    assert told("[*] --> A", "A --> [*]", "state B") == ["W-unreachable:B"]


def test_states_that_only_lead_to_each_other_are_unreachable() -> None:
    found = told("[*] --> A", "A --> [*]", "B --> C: IsX", "B --> [*]", "C --> B")
    assert found == ["W-unreachable:B", "W-unreachable:C"]


def test_without_a_beginning_nothing_is_said_of_reaching() -> None:
    assert told("A --> B", "B --> [*]") == ["E-no-initial:[*]"]


def test_a_source_of_a_refused_transition_is_no_dead_end() -> None:
    inner = ("state C {", "[*] --> B", "B --> [*]", "}")
    assert told("[*] --> A", "A --> B", *inner, "C --> [*]") == ["E-crosses-border:B"]


def test_every_level_is_judged() -> None:
    lines = (
        "[*] --> A",
        "A --> [*]",
        "state A {",
        "[*] --> B",
        "B --> [*]",
        "state B {",
        "[*] --> C",
        "C --> D",
        "}",
        "}",
    )
    assert told(*lines) == ["E-dead-end:D"]


@pytest.mark.parametrize("line", ["A --> [*]: IsX", "B --> [*]: IsX", "B --> [*]: error"])
def test_a_cycle_with_a_way_out_is_fine(line: str) -> None:
    assert told("[*] --> A", line, "A --> B", "B --> A") == []


def test_a_cycle_is_told_once_and_by_its_first_state() -> None:
    found = told("[*] --> X", "X --> [*]: IsX", "X --> C", "C --> A", "A --> B", "B --> C")
    assert found == ["W-cycle-without-exit:C"]


def test_a_state_that_leads_to_itself_is_a_cycle() -> None:
    assert "W-cycle-without-exit:A" in told("[*] --> A", "A --> A")


def test_two_cycles() -> None:
    found = told("[*] --> A: IsX", "[*] --> C: IsY", "[*] --> [*]: IsZ", "[*] --> A", "A --> B", "B --> A", "C --> C")
    assert [one for one in found if "cycle" in one] == ["W-cycle-without-exit:A", "W-cycle-without-exit:C"]


# ---------------------------------------------------------------------------------------------- order


def test_the_initial_pseudo_state_is_judged_too() -> None:
    assert told("[*] --> A: IsX", "A --> [*]") == ["W-not-exhaustive:[*]"]
    assert told("[*] --> A", "[*] --> B: IsX", "A --> [*]", "B --> [*]") == ["W-default-not-last:[*]"]


def test_a_polling_state_needs_no_default() -> None:
    assert told("[*] --> A", "A --> [*]: IsX", "state A <<poll>>") == []


def test_an_error_transition_alone_leaves_success_open() -> None:
    assert told("[*] --> A", "A --> [*]: error") == ["W-not-exhaustive:A"]


def test_an_error_transition_may_stand_behind_the_default() -> None:
    assert told("[*] --> A", "A --> [*]", "A --> [*]: error") == []


def test_shadows() -> None:
    lines = ("A --> [*]: IsX(a)", "A --> [*]: IsX(b)", "A --> A: not IsX(a)", "A --> A: error [IsX(a)]", "A --> [*]")
    assert told("[*] --> A", *lines) == []
    assert told("[*] --> A", "A --> [*]: IsX && IsY", "A --> A: (IsX and IsY)", "A --> [*]") == ["W-shadowed:A"]
    assert told("[*] --> A", "A --> [*]: error", "A --> A: Error", "A --> [*]") == ["W-shadowed:A"]


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "label", ["IsError", "IsError(NotFound)", "not IsError", "IsX or IsError", "error", "error(Conflict)"]
)
def test_what_handles_an_error(label: str) -> None:
    assert told("[*] --> A", "A: do / Load", f"A --> [*]: {label}", "A --> [*]") == []


@pytest.mark.parametrize("kind", ["entry", "do", "exit"])
def test_all_kinds_of_actions_can_fail(kind: str) -> None:
    assert told("[*] --> A", f"A: {kind} / Load", "A --> [*]") == ["W-unhandled-error:A"]


def test_an_error_transition_of_the_composite_is_in_reach_and_its_guard_is_not() -> None:
    inner = ("state C {", "[*] --> A", "A: do / Load", "A --> [*]", "}")
    assert told("[*] --> C", "C --> [*]: error", "C --> [*]", *inner) == []
    assert told("[*] --> C", "C --> [*]: IsError", "C --> [*]", *inner) == ["W-unhandled-error:A"]


def test_do_actions_of_a_composite_are_not_run_and_cannot_fail() -> None:
    inner = ("state C {", "[*] --> A", "A --> [*]", "}")
    assert told("[*] --> C", "C: do / Load", "C --> [*]", *inner) == ["W-composite-do:C"]
    assert told("[*] --> C", "C: entry / Load", "C --> [*]", *inner) == ["W-unhandled-error:C"]


def test_actions_of_the_initial_pseudo_state_can_fail() -> None:
    assert told("[*]: do / Boot", "[*] --> A", "A --> [*]") == ["W-unhandled-error:[*]"]
    assert told("[*]: do / Boot", "[*] --> B: error", "[*] --> A", "A --> [*]", "B --> [*]") == []


def test_a_declared_action_silences_its_state() -> None:
    diagram, _ = compile_text("title T\n[*] --> A\nA: do / Load\nA --> [*]\n")
    assert diagram is not None
    assert [one.code for one in check(diagram)] == ["W-unhandled-error"]
    assert check(diagram, infallible={"Load"}) == []

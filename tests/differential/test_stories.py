"""The embedded cluster's controllers tell the recorded stories: each case has the state that `states.yaml` gives it."""

from __future__ import annotations

import pytest
from tools.differential import golden, report
from tools.differential.cases import Case, CaseError, load
from tools.differential.stories import play_story
from tools.differential.worlds import embedded_world

CASES = [case for case in load() if case.is_story]
STATES = report.read_states()


@pytest.mark.capability("N2")
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_the_story_is_what_the_state_says(case: Case) -> None:
    state = report.state_of(case, STATES)
    if state.name == report.PENDING:
        pytest.skip("it differs, and nobody has judged it yet")
    told = play_story(case, embedded_world)
    lines = (
        [str(told)] if isinstance(told, CaseError) else golden.differences(golden.read(case.family)[case.name], told)
    )
    if state.name == report.EQUAL:
        assert lines == []
    else:
        assert lines != [], f"{case.id} is equal now: take it out of states.yaml"

"""The embedded API server against the recorded answers: each case has the state that `states.yaml` gives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools.differential import golden, report
from tools.differential.cases import Case, CaseError, load
from tools.differential.play import play_all
from tools.differential.target import Target

from flyball.testing.cluster import Cluster

CASES = [case for case in load() if not case.is_story]
STATES = report.read_states()


@pytest.fixture(scope="session")
def embedded_target() -> Iterator[Target]:
    """The embedded API server over TLS, with its controllers switched off."""
    with Cluster(controllers=False) as cluster:
        target = Target.from_kubeconfig(cluster.kubeconfig_for("flyball-admin", ("system:masters",)))
        yield target
        target.close()


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_the_answer_is_what_the_state_says(case: Case, embedded_target: Target) -> None:
    state = report.state_of(case, STATES)
    if state.name == report.PENDING:
        pytest.skip("it differs, and nobody has judged it yet")
    (played,) = play_all([case], embedded_target)
    unplayed = isinstance(played, CaseError)
    lines = [str(played)] if unplayed else golden.differences(golden.read(case.family)[case.name], played)
    if state.name == report.EQUAL:
        assert lines == []
    else:
        assert lines != [], f"{case.id} is equal now: take it out of states.yaml"

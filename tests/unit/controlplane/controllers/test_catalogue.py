"""Which controllers run is said in the words of kube-controller-manager's `--controllers`."""

from __future__ import annotations

import pytest

from flyball.controlplane.controllers import NAMES
from flyball.controlplane.controllers.catalogue import CATALOGUE, LOOPS, UnknownController, chosen, loops


def test_everything_unless_somebody_chooses() -> None:
    assert chosen() == list(CATALOGUE)
    assert set(loops()) == set(NAMES)


def test_the_loops_have_the_names_of_the_running_ones() -> None:
    assert set(LOOPS.values()) == set(NAMES)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["job-controller"], ["job-controller"]),
        (["job"], ["job-controller"]),
        ([" job-controller", "deployment "], ["deployment-controller", "job-controller"]),
        (["*", "-job-controller"], [name for name in CATALOGUE if name != "job-controller"]),
        (["-job-controller", "*"], [name for name in CATALOGUE if name != "job-controller"]),
        (["-job-controller"], []),
        (["job-controller", "-job-controller"], ["job-controller"]),
        (["-job-controller", "job-controller"], []),
        (["namespace-controller"], []),
        ([], []),
        ([""], []),
    ],
)
def test_a_choice(wanted: list[str], expected: list[str]) -> None:
    assert chosen(wanted) == expected


def test_a_choice_covers_the_loops_in_both_spellings() -> None:
    assert set(loops(["*", "-garbage-collector-controller"])) == set(NAMES) - {"garbage-collector"}
    assert set(loops(["*", "-garbagecollector", "-namespace"])) == set(NAMES) - {"garbage-collector", "namespace"}
    assert loops(["serviceaccount"]) == ["serviceaccount", "event-ttl"]
    assert loops(["-event-ttl"]) == []
    assert loops(["job-controller"]) == ["event-ttl"], "storage forgets Events, whichever controllers run"


def test_an_unknown_name_is_told_with_those_that_are_known() -> None:
    with pytest.raises(UnknownController, match=r"there is no controller jobs, node; there are .*job-controller"):
        chosen(["*", "-node", "jobs"])
    with pytest.raises(UnknownController):
        loops(["nobody"])

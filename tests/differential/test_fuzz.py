"""Random sequences that nobody has recorded, played on the embedded and on a real API server: both answer alike.

FLYBALL_FUZZ_SEED and FLYBALL_FUZZ_COUNT choose other and more sequences.
"""

from __future__ import annotations

import dataclasses
import os

import pytest
from tools.differential import golden, report
from tools.differential.cases import CASES, Case, CaseError, load_file
from tools.differential.play import play_all
from tools.differential.target import Target

from flyball.testing.cluster import Cluster

FAMILY = CASES / "sequences.yaml"
FIRST = int(os.environ.get("FLYBALL_FUZZ_SEED", "1000"))
COUNT = int(os.environ.get("FLYBALL_FUZZ_COUNT", "20"))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """The family of the recorded sequences with other seeds."""
    head = FAMILY.read_text().partition("cases:\n")[0]
    lines = [
        f"  - {{id: {base}-{seed}, base: {base}, seed: {seed}, length: 12}}"
        for base in ("configmap", "deployment", "thing")
        for seed in range(FIRST, FIRST + COUNT)
    ]
    file = tmp_path_factory.mktemp("cases") / "fuzz.yaml"
    file.write_text(head + "\n".join(["cases:", *lines]))
    return load_file(file)


@pytest.mark.real
def test_both_servers_answer_alike(cases: list[Case], real_target: Target) -> None:
    if report.read_states()["pending"].get("sequences"):
        pytest.skip("recorded sequences differ already: see states.yaml")
    with Cluster(controllers=False) as cluster:
        ours = play_all(cases, Target.from_kubeconfig(cluster.kubeconfig))
    lines: list[str] = []
    for case, one, two in zip(cases, ours, play_all(cases, real_target), strict=True):
        if isinstance(one, CaseError) or isinstance(two, CaseError):
            lines.append(f"{case.id}: {one if isinstance(one, CaseError) else two}")
        else:
            lines += [f"{case.id}: {line}" for line in golden.differences(two, one)]
    assert lines == []


@pytest.mark.real
def test_a_real_server_answers_twice_alike(cases: list[Case], real_target: Target) -> None:
    """What differs between two runs of one server must be masked, or it would be blamed on ours."""
    some = cases[:: max(len(cases) // 12, 1)]
    once, again = ([dataclasses.replace(case, family=family) for case in some] for family in ("once", "again"))
    assert play_all(once, real_target) == play_all(again, real_target)

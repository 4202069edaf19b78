"""The command line of the differential runner.

python -m tools.differential record [FAMILY ...]     keep the answers of a real kube-apiserver, and the stories of a
                                                     real kube-controller-manager
python -m tools.differential replay [FAMILY ...]     compare the embedded cluster with them, or with
                                                     --kubeconfig FILE any other one
python -m tools.differential judge [FAMILY ...]      the same, and note in states.yaml what differs
python -m tools.differential report [--check]        write docs/compatibility.md

FAMILY may also be FAMILY/CASE.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from flyball.errors import FlyballError
from flyball.testing.cluster import Cluster
from flyball.testing.realcluster import RealCluster
from tools.differential import golden, report, stories
from tools.differential.cases import Case, CaseError, load
from tools.differential.play import play_all
from tools.differential.target import Target
from tools.differential.worlds import embedded_world, real_control_plane, real_world


def main(arguments: list[str] | None = None) -> int:
    """Do what the first argument says."""
    logging.getLogger("flyball").setLevel(logging.CRITICAL)  # stories make controllers complain
    options = _parser().parse_args(arguments)
    try:
        if options.verb == "report":
            return report.main(check=options.check)
        if options.verb == "judge":
            return _judge(load(only=options.families))
        cases = load(only=options.families)
        if options.verb == "replay":
            return _replay(cases, options.kubeconfig, options.lines)
        return _record(cases)
    except (CaseError, FlyballError) as error:
        print(f"differential: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.differential", description="The differential runner.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("record").add_argument("families", nargs="*")
    replay = verbs.add_parser("replay")
    replay.add_argument("--kubeconfig", type=Path, help="play against this server instead of the embedded one")
    replay.add_argument("--lines", type=int, default=3, help="how many differences of a case to show")
    replay.add_argument("families", nargs="*")
    verbs.add_parser("judge").add_argument("families", nargs="*")
    verbs.add_parser("report").add_argument("--check", action="store_true")
    return parser


def _record(cases: list[Case]) -> int:
    """Keep what is answered. A case that was not asked for, or failed, keeps what it has."""
    answered: dict[Case, golden.Answers] = {}
    for case, answers in _play_on_real_servers(cases):
        if isinstance(answers, CaseError):
            print(f"not recorded: {answers}", file=sys.stderr)
        else:
            answered[case] = answers
    for family in sorted({case.family for case in answered}):
        mine = {case.name: answers for case, answers in answered.items() if case.family == family}
        known = golden.read(family) | mine
        golden.write(family, {case.name: known[case.name] for case in load(only=[family]) if case.name in known})
        print(f"{family}: {len(mine)} cases")
    return 1 if len(answered) < len(cases) else 0


def _play_on_real_servers(cases: list[Case]) -> Iterator[tuple[Case, golden.Answers | CaseError]]:
    """Requests go to etcd and kube-apiserver alone: controllers would interfere. Stories are about controllers."""
    plain, told = ([case for case in cases if case.is_story is wanted] for wanted in (False, True))
    if plain:
        with RealCluster(controllers=False) as cluster:
            target = Target.from_kubeconfig(cluster.kubeconfig, cluster.kubeconfig_for)
            yield from zip(plain, play_all(plain, target), strict=True)
    if told:
        with real_control_plane() as cluster:
            target = Target.from_kubeconfig(cluster.kubeconfig)
            yield from zip(told, stories.twice(told, lambda: real_world(target)), strict=True)


def _replay(cases: list[Case], kubeconfig: Path | None, shown: int) -> int:
    found = _compare(cases, kubeconfig)
    for case, lines in found.items():
        print(f"{'differs' if lines else 'equal'}  {case.id}", *(f"    {line}" for line in lines[:shown]), sep="\n")
    for family in sorted({case.family for case in cases}):
        mine = [not lines for case, lines in found.items() if case.family == family]
        print(f"{family}: {sum(mine)} of {len(mine)} are equal")
    return 1 if any(found.values()) else 0


def _judge(cases: list[Case]) -> int:
    """What differs and has no reason becomes pending; what has a reason and is equal is told."""
    states = report.read_states()
    found = _compare(cases, None)
    reasoned = {case for case in cases if report.state_of(case, states).name in report.WITH_A_REASON}
    for case in cases:
        if case in reasoned and not found[case]:
            print(f"{case.id} is equal now: take it out of {report.STATES.name}")
    pending = [case for case in cases if found[case] and case not in reasoned]
    others = [case for case in load() if case.id not in {judged.id for judged in cases}]
    report.write_pending([*pending, *(case for case in others if report.state_of(case, states).name == report.PENDING)])
    equal = sum(not lines for lines in found.values())
    print(f"{equal} of {len(cases)} are equal, {len(pending)} are not judged")
    return report.main(check=False)


def _compare(cases: list[Case], kubeconfig: Path | None) -> dict[Case, list[str]]:
    """Where a server's answers differ from the recorded ones, by case."""
    plain, told = ([case for case in cases if case.is_story is wanted] for wanted in (False, True))
    played: list[golden.Answers | CaseError] = []
    if kubeconfig is not None:
        target = Target.from_kubeconfig(kubeconfig)
        played = [*play_all(plain, target), *stories.play_stories(told, lambda: real_world(target))]
    else:
        with Cluster(controllers=False) as cluster:
            admin = cluster.kubeconfig_for("flyball-admin", ("system:masters",))
            played = [*play_all(plain, Target.from_kubeconfig(admin))]
        played += stories.play_stories(told, embedded_world, players=1)
    found: dict[Case, list[str]] = {}
    for case, answers in zip([*plain, *told], played, strict=True):
        recorded = golden.read(case.family).get(case.name)
        unplayed = isinstance(answers, CaseError)
        found[case] = [str(answers)] if unplayed else golden.differences(recorded, answers)
    return found


if __name__ == "__main__":
    sys.exit(main())

"""The command line of the differential runner.

python -m tools.differential record [FAMILY ...]     keep the answers of a real kube-apiserver
python -m tools.differential replay [FAMILY ...]     compare the embedded API server with them, or with
                                                     --kubeconfig FILE any other one
python -m tools.differential judge                   the same, and note in states.yaml what differs
python -m tools.differential report [--check]        write docs/compatibility.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from flyball.errors import FlyballError
from flyball.testing.cluster import Cluster
from flyball.testing.realcluster import RealCluster
from tools.differential import golden, report
from tools.differential.cases import Case, CaseError, load
from tools.differential.play import play_all
from tools.differential.target import Target


def main(arguments: list[str] | None = None) -> int:
    """Do what the first argument says."""
    options = _parser().parse_args(arguments)
    try:
        if options.verb == "report":
            return report.main(check=options.check)
        if options.verb == "judge":
            return _judge(load())
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
    verbs.add_parser("judge")
    verbs.add_parser("report").add_argument("--check", action="store_true")
    return parser


def _record(cases: list[Case]) -> int:
    """Controllers would interfere: only etcd and kube-apiserver run."""
    families: dict[str, dict[str, golden.Answers]] = {}
    with RealCluster(controllers=False) as cluster:
        played = play_all(cases, Target.from_kubeconfig(cluster.kubeconfig, cluster.kubeconfig_for))
    failed = 0
    for case, answers in zip(cases, played, strict=True):
        if isinstance(answers, CaseError):
            failed += 1
            print(f"not recorded: {answers}", file=sys.stderr)
        else:
            families.setdefault(case.family, {})[case.name] = answers
    for family, recorded in families.items():
        golden.write(family, recorded)
        print(f"{family}: {len(recorded)} cases")
    return 1 if failed else 0


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
    report.write_pending(pending)
    equal = sum(not lines for lines in found.values())
    print(f"{equal} of {len(cases)} are equal, {len(pending)} are not judged")
    return report.main(check=False)


def _compare(cases: list[Case], kubeconfig: Path | None) -> dict[Case, list[str]]:
    """Where a server's answers differ from the recorded ones, by case."""
    if kubeconfig is not None:
        played = play_all(cases, Target.from_kubeconfig(kubeconfig))
    else:
        with Cluster(controllers=False) as cluster:
            played = play_all(
                cases, Target.from_kubeconfig(cluster.kubeconfig_for("flyball-admin", ("system:masters",)))
            )
    found: dict[Case, list[str]] = {}
    for case, answers in zip(cases, played, strict=True):
        recorded = golden.read(case.family).get(case.name)
        unplayed = isinstance(answers, CaseError)
        found[case] = [str(answers)] if unplayed else golden.differences(recorded, answers)
    return found


if __name__ == "__main__":
    sys.exit(main())

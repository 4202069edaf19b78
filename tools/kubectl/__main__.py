"""The command line of the recorder.

python -m tools.kubectl record [SCRIPT ...]     keep what kubectl prints against a real kube-apiserver
python -m tools.kubectl play [SCRIPT ...]       print what it prints against the embedded one
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from flyball.testing.binaries import Binaries, find_binaries
from flyball.testing.nodes import BESIDE_PLAYED_NODES, PlayedNodes
from flyball.testing.realcluster import RealCluster
from tools.kubectl.play import FOLDER, Script, embedded, load, path_kubectl, play, version_of

HEAD = (
    "# Recorded from kube-apiserver 1.36.4 by `python -m tools.kubectl record` with kubectl {version}; do not edit.\n\n"
)


def main(arguments: list[str] | None = None) -> int:
    """Do what the first argument says."""
    parser = argparse.ArgumentParser(prog="python -m tools.kubectl", description=__doc__)
    parser.add_argument("verb", choices=("record", "play"))
    parser.add_argument("scripts", nargs="*")
    options = parser.parse_args(arguments)
    scripts = [script for script in load() if not options.scripts or script.name in options.scripts]
    return _record(scripts) if options.verb == "record" else _play(scripts)


def _record(scripts: list[Script]) -> int:
    """Keep the transcripts of both kubectls."""
    binaries = find_binaries()
    for label, kubectl in (("1.36.4", binaries.path("kubectl")), ("path", path_kubectl())):
        if kubectl is None:
            continue
        head = HEAD.format(version=version_of(kubectl))
        for nodes in sorted({script.nodes for script in scripts}):
            with _real(nodes, binaries) as cluster:
                for script in (one for one in scripts if one.nodes == nodes):
                    target = FOLDER / "golden" / label / f"{script.name}.txt"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(head + _transcript(script, kubectl, cluster.kubeconfig))
                    print(f"{label}: {script.name}")
    return 0


@contextmanager
def _real(nodes: int, binaries: Binaries) -> Generator[RealCluster]:
    """Only etcd and kube-apiserver: controllers would interfere; with nodes, everything, and their Pods are played."""
    if not nodes:
        with RealCluster(controllers=False, binaries=binaries) as cluster:
            yield cluster
        return
    with (
        RealCluster(binaries=binaries, controllers=BESIDE_PLAYED_NODES) as cluster,
        PlayedNodes(cluster.config, nodes=nodes),
    ):
        yield cluster


def _play(scripts: list[Script]) -> int:
    kubectl = find_binaries().path("kubectl")
    for script in scripts:
        with embedded(script) as cluster:
            print(_transcript(script, kubectl, cluster.kubeconfig))
    return 0


def _transcript(script: Script, kubectl: Path, kubeconfig: Path) -> str:
    with tempfile.TemporaryDirectory(prefix="flyball-kubectl-") as folder:
        return play(script, kubectl, kubeconfig, Path(folder))


if __name__ == "__main__":
    sys.exit(main())

"""Milliseconds that imports take, each in a fresh process: `python -m bench.imports`.

The best of several runs with warm files; what a module needs itself is part of its time. `again` is the time of a
module once `flyball.k8s.core.v1` is there, which most programs have imported anyway.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from bench.common import ROOT, peers_python, table, version_of

TARGETS = {"flyball": "< 150"}
PEERS = ("kubernetes", "kubernetes_asyncio", "lightkube", "kr8s")
SCRIPT = "{first}\nimport time\nstarted = time.perf_counter()\nimport {module}\nprint(time.perf_counter() - started)"


def milliseconds(module: str, *, first: str = "", runs: int = 5, python: str = sys.executable) -> float:
    """The quickest import of some."""
    command = [python, "-c", SCRIPT.format(first=first, module=module)]
    times = [subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT) for _ in range(runs)]
    return min(float(ran.stdout) for ran in times) * 1000


def built_in_modules() -> list[str]:
    """Every generated module."""
    folder = ROOT / "src/flyball/k8s"
    files = sorted(path for path in folder.glob("*/v*.py") if path.parent.name != "_facts")
    return [".".join(("flyball.k8s", path.parent.name, path.stem)) for path in files]


def front() -> str:
    """The ways into Flyball beside the ways into its peers."""
    rows = [[name, f"{milliseconds(name):.0f}", TARGETS.get(name, "")] for name in ("flyball", "flyball.api")]
    rows += [[name, f"{milliseconds(name):.0f}", ""] for name in ("flyball.client", "flyball.k8s.core.v1")]
    python = str(peers_python())
    rows += [[name + version_of(name), f"{milliseconds(name, python=python):.0f}", ""] for name in PEERS]
    return table(["import", "ms", "target"], rows)


def kinds() -> str:
    """Each module of built-in kinds, with the models' base already there."""
    base = "import flyball.api"
    core = f"{base}, flyball.k8s.core.v1"
    rows = [
        [f"`{name}`", f"{milliseconds(name, first=base, runs=3):.1f}", f"{milliseconds(name, first=core, runs=3):.1f}"]
        for name in built_in_modules()
    ]
    return table(["built-in kinds", "ms", "again"], rows)


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(prog="python -m bench.imports", description=__doc__)
    parser.add_argument("--kinds", action="store_true", help="each module of built-in kinds too")
    options = parser.parse_args()
    print(front(), end="\n\n")
    if options.kinds:
        print(kinds(), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

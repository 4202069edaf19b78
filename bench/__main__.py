"""`python -m bench`: every comparison of this folder, one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOT_PROGRAMS = ("__main__", "__init__", "common", "contenders", "load")


def main() -> int:
    """Run them all; the result is 1 if one failed."""
    failed = [name for name in programs() if not run(name)]
    for name in failed:
        print(f"bench: {name} failed", file=sys.stderr)
    return 1 if failed else 0


def programs() -> list[str]:
    """The modules of this folder that are programs."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_PROGRAMS)


def run(name: str) -> bool:
    """Run one comparison."""
    print(f"## {name}\n", flush=True)
    return subprocess.run([sys.executable, "-m", f"bench.{name}"], cwd=HERE.parent, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())

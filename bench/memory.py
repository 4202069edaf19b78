"""Memory that a list of 5,000 Pods takes once it is read: `python -m bench.memory`.

Each contender has a process of its own. What is measured is the growth of its resident memory for each Pod, with the
bytes of the answer gone and free memory given back to the system.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from bench.common import Json, Row, compare_contenders, pod_list, resident, settle
from bench.contenders import CONTENDERS

TARGETS: Final = {"typed": "< 26", "origin": "< 26", "raw": "< 9"}


def measure(name: str, file: Path, pods: int) -> Json:
    """Weigh one contender, here."""
    decode = CONTENDERS[name].prepare()
    decode(pod_list(2))
    settle()
    before = resident()
    kept = decode(file.read_bytes())
    settle()
    after = resident()
    del kept
    return {"bytes": (after - before) / pods}


def cells(name: str, found: Json) -> list[str]:
    """The columns of one contender."""
    return [f"{found['bytes'] / 1000:.1f}", TARGETS.get(name, "") if found["size"] < 9000 else ""]


if __name__ == "__main__":
    sys.exit(compare_contenders(__doc__, "bench.memory", measure, Row(("kB per Pod", "target"), cells)))

"""Seconds to read a list of 5,000 Pods: `python -m bench.decode`.

Each contender has a process of its own, which also times `orjson.loads` on the same bytes, in turns; the ratio is of
the best of each.
The collector is off meanwhile, for all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from bench.common import Json, Row, compare_contenders, seconds
from bench.contenders import CONTENDERS

TARGETS: Final = {"typed": "< 0.7", "origin": "< 0.7", "raw": "< 0.3"}


def measure(name: str, file: Path, pods: int) -> Json:
    """Time one contender, here."""
    contender = CONTENDERS[name]
    body = file.read_bytes()
    yardstick, decode = CONTENDERS["orjson"].prepare(), contender.prepare()
    base = taken = float("inf")
    for _ in range(7 if contender.share == 1 else 2):
        base = min(base, seconds(lambda: yardstick(body)))
        taken = min(taken, seconds(lambda: decode(body)))
    return {"microseconds": taken / pods * 1e6, "ratio": taken / base}


def cells(name: str, found: Json) -> list[str]:
    """The columns of one contender."""
    ratio = found["ratio"]
    return [f"{found['microseconds']:.1f}", f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}", TARGETS.get(name, "")]


if __name__ == "__main__":
    row = Row(("µs per Pod", "of orjson", "target"), cells)
    sys.exit(compare_contenders(__doc__, "bench.decode", measure, row))

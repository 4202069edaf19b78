"""Golden answers: how they are kept, and how two answers are compared."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "Answers", "differences", "read", "write"]

VERSION = "1.36.4"
FOLDER = Path(__file__).parents[2] / "tests/differential/golden" / VERSION

Answers = list[dict[str, Any]]


@cache
def read(family: str, folder: Path = FOLDER) -> dict[str, Answers]:
    """The recorded answers of a family, by the name of the case; empty when nothing was recorded."""
    path = folder / f"{family}.json"
    if not path.is_file():
        return {}
    found: dict[str, Answers] = json.loads(path.read_text())["cases"]
    return found


def write(family: str, cases: dict[str, Answers], folder: Path = FOLDER) -> None:
    """Keep the answers of a family: one line each, so that a change can be read."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [
        f" {json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(answer)}" for answer in answers) + "\n ]"
        for name, answers in cases.items()
    ]
    note = f"Recorded from kube-apiserver {VERSION} by `make record`; do not edit."
    text = f'{{"note": {json.dumps(note)},\n"cases": {{\n' + ",\n".join(blocks) + "\n}}\n"
    (folder / f"{family}.json").write_text(text)


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Where two values differ, one line per place; the order of keys does not matter."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        lines: list[str] = []
        for key in [*expected, *(key for key in actual if key not in expected)]:
            where = f"{path}.{key}" if path else key
            if key not in actual:
                lines.append(f"{where}: missing, expected {_short(expected[key])}")
            elif key not in expected:
                lines.append(f"{where}: {_short(actual[key])} was not expected")
            else:
                lines += differences(expected[key], actual[key], where)
        return lines
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{path}: {len(actual)} items instead of {len(expected)}: {_short(actual)} / {_short(expected)}"]
        pairs = enumerate(zip(expected, actual, strict=True))
        return [line for number, (one, two) in pairs for line in differences(one, two, f"{path}[{number}]")]
    if type(expected) is not type(actual) or expected != actual:
        return [f"{path}: {_short(actual)} instead of {_short(expected)}"]
    return []


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 400 else f"{text[:390]} ..."

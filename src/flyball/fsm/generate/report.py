"""What a plan has to say: its files, its findings, its differences."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from flyball.fsm.generate.generator import FilePlan, Plan
from flyball.fsm.report import as_json, as_sarif, as_text

__all__ = ["differences", "file_lines", "findings_text", "plan_json", "plan_sarif"]

_WORDS = {"new": "create", "update": "update"}


def file_lines(plan: Plan, here: Path) -> list[str]:
    """One line for each file that changes, with what happened to the functions in it."""
    return [f"{_WORDS[one.change]} {_shown(one.path, here)}{_details(one)}" for one in plan.changed]


def _details(one: FilePlan) -> str:
    merged = one.merged
    if merged is None or one.before is None:
        return ""
    parts = [
        *(f"+{name}" for name in merged.added),
        *(f"-{name}" for name in merged.removed),
        *(f"~{name}" for name in merged.updated),
    ]
    return f" ({', '.join(parts)})" if parts else ""


def differences(files: Iterable[FilePlan], here: Path) -> str:
    """A unified diff of the files."""
    return "".join(line for one in files for line in _diff(one, here))


def _diff(one: FilePlan, here: Path) -> Iterator[str]:
    name = _shown(one.path, here)
    before = _text(one.before or b"").splitlines(keepends=True)
    after = _text(one.after).splitlines(keepends=True)
    source = f"a/{name}" if one.before is not None else "/dev/null"
    for line in difflib.unified_diff(before, after, source, f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\r", "\n")


def findings_text(plan: Plan) -> str:
    """The findings for people."""
    return as_text([one for one in plan.findings if one.severity != "info"])


def plan_json(plan: Plan, here: Path) -> str:
    """Findings, hints and files as one object."""
    document = {
        "ok": plan.ok,
        "findings": json.loads(as_json(plan.findings)),
        "hints": plan.hints,
        "files": [{"path": _shown(one.path, here), "change": one.change, "role": one.role} for one in plan.files],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def plan_sarif(plan: Plan) -> str:
    """The findings as SARIF."""
    return as_sarif(plan.findings)


def _shown(path: Path, here: Path) -> str:
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()

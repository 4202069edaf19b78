"""Findings for people and for programs: text, JSON, SARIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from flyball.fsm.model import Finding
from flyball.fsm.parse import CODES

__all__ = ["as_json", "as_sarif", "as_text"]

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(findings: Sequence[Finding]) -> str:
    """`file:line:col: code: message`, the source line with a mark under the column, and the remedy."""
    return "\n".join(_text(one) for one in findings)


def as_json(findings: Sequence[Finding]) -> str:
    """A list of objects, one per finding."""
    return json.dumps([_plain(one) for one in findings], indent=2, ensure_ascii=False)


def as_sarif(findings: Sequence[Finding]) -> str:
    """SARIF 2.1.0, as code hosts read it."""
    used = sorted({one.code for one in findings})
    rules = [{"id": code, "shortDescription": {"text": CODES.get(code, code)}} for code in used]
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "flyball fsm lint", "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(one, used.index(one.code)) for one in findings],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _text(one: Finding) -> str:
    lines = [str(one)]
    if one.source_line.strip():
        source = one.source_line.rstrip()[:200]
        mark = "".join(char if char == "\t" else " " for char in source[: one.column - 1]) + "^"
        lines += [f"    {source}", f"    {mark}"]
    if one.remedy:
        lines.append(f"    -> {one.remedy}")
    return "\n".join(lines)


def _plain(one: Finding) -> dict[str, Any]:
    return {
        "code": one.code,
        "severity": one.severity,
        "message": one.message,
        "file": one.file,
        "line": one.line,
        "column": one.column,
        "source": one.source_line,
        "subject": one.subject,
        "remedy": one.remedy,
    }


def _result(one: Finding, rule: int) -> dict[str, Any]:
    region = {"startLine": max(one.line, 1), "startColumn": max(one.column, 1), "snippet": {"text": one.source_line}}
    text = f"{one.message}. To mend it: {one.remedy}" if one.remedy else one.message
    place = {"artifactLocation": {"uri": one.file.replace("\\", "/")}, "region": region}
    return {
        "ruleId": one.code,
        "ruleIndex": rule,
        "level": _LEVELS[one.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"subject/v1": one.key},
    }

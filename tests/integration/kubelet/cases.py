"""Pods as data: what is created, and what becomes of it.

A case is an entry of a YAML file in `pods/`. `pod` is a manifest (its name is that of the case), `others` are created
before it. `first` is what is expected before the clock is touched; from then on it is turned by `turn` seconds again
and again, until what `expect` says is so. `delete` deletes the Pod then, with these options; `left` is what is expected
after that: of the last status that was seen, of events. `isolated`: it needs namespaces, and would else do something to
the machine.

In these, maps hold what must be there, lists of things with a name or type hold some of them, a text that begins with
`~` is a regular expression for the whole value, and null means that nothing is there. `"@N"` is a text of N letters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Case", "cases", "differences"]

FOLDER = Path(__file__).parent / "pods"


@dataclass(frozen=True)
class Case:
    name: str
    pod: dict[str, Any]
    expect: dict[str, Any]
    others: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    first: dict[str, Any] | None = None
    turn: float = 0
    isolated: bool = False
    delete: dict[str, Any] | None = None
    left: dict[str, Any] | None = None

    @property
    def manifest(self) -> dict[str, Any]:
        metadata = {"name": self.name, **self.pod.get("metadata", {})}
        return {"apiVersion": "v1", "kind": "Pod", **self.pod, "metadata": metadata}


def cases() -> list[Case]:
    return [Case(**one) for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load(_with_long_texts(path))]


def _with_long_texts(path: Path) -> str:
    return re.sub(r'"@(\d+)"', lambda found: json.dumps("x" * int(found[1])), path.read_text())


def differences(wanted: Any, found: Any, where: str = "") -> list[str]:
    """Say where something is not as wanted."""
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return [f"{where}: {found!r} instead of {wanted!r}"]
        parts: Mapping[str, Any] = wanted
        return [line for key, value in parts.items() for line in differences(value, found.get(key), f"{where}.{key}")]
    if isinstance(wanted, list) and all(isinstance(one, Mapping) for one in wanted):
        entries: list[Mapping[str, Any]] = wanted
        return [line for one in entries for line in differences(one, _named(one, found), f"{where}[{_name(one)}]")]
    if isinstance(wanted, str) and wanted.startswith("~"):
        matches = re.fullmatch(wanted[1:], found or "") is not None
        return [] if matches else [f"{where}: {found!r} does not match {wanted[1:]!r}"]
    return [] if wanted == found else [f"{where}: {found!r} instead of {wanted!r}"]


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("name") or entry.get("type"))


def _named(entry: Mapping[str, Any], found: Any) -> Mapping[str, Any] | None:
    rows: Sequence[Mapping[str, Any]] = found or ()
    return next((one for one in rows if _name(one) == _name(entry)), None)

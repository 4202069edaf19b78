"""Whether the server lives, whether it is ready, and which version it says it is."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any, Final

from flyball.clock import Clock
from flyball.controlplane.apiserver.render import encode
from flyball.controlplane.apiserver.request import Answer, Request

__all__ = ["VERSION", "Health"]

VERSION: Final = "v1.36.4+flyball"
_TEXT: Final = "text/plain; charset=utf-8"
_ROOTS: Final = ("healthz", "livez", "readyz")

Check = Callable[[], bool]


class Health:
    """Named checks, and the answers made of them."""

    def __init__(self, clock: Clock) -> None:
        """Start with the check that holds as long as the server answers at all."""
        self._clock = clock
        self.live: dict[str, Check] = {"ping": lambda: True}
        self.ready: dict[str, Check] = {}

    def answer(self, request: Request) -> Answer | None:
        """Answer the paths of this room; None for all others."""
        if request.path.rstrip("/") == "/version":
            return Answer(200, encode(self.version()))
        root, _, check = request.path.strip("/").partition("/")
        if root not in _ROOTS:
            return None
        checks = {**self.live, **(self.ready if root != "livez" else {})}
        if check:
            return _single(checks, check)
        excluded = set(request.every("exclude"))
        results = {name: holds() for name, holds in checks.items() if name not in excluded}
        good = all(results.values())
        if good and not request.every("verbose"):
            return Answer(200, b"ok", _TEXT)
        lines = [f"[+]{name} ok" if holds else f"[-]{name} failed: reason withheld" for name, holds in results.items()]
        lines.extend(f"[+]{name} excluded: ok" for name in excluded if name in checks)
        lines.append(f"{root} check {'passed' if good else 'failed'}")
        return Answer(200 if good else 500, ("\n".join(lines) + "\n").encode(), _TEXT)

    @staticmethod
    def version() -> dict[str, Any]:
        """Tell the version, with every field that clients insist on."""
        return {
            "major": "1",
            "minor": "36",
            "emulationMajor": "1",
            "emulationMinor": "36",
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": "35",
            "gitVersion": VERSION,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z",
            "goVersion": "none",
            "compiler": platform.python_implementation().lower(),
            "platform": f"{platform.system().lower()}/{_architecture()}",
        }


def _architecture() -> str:
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _single(checks: dict[str, Check], name: str) -> Answer:
    if name not in checks:
        return Answer(404, b"404 page not found\n", _TEXT)
    if checks[name]():
        return Answer(200, b"ok", _TEXT)
    return Answer(500, f"internal server error: {name}: reason withheld\n".encode(), _TEXT)

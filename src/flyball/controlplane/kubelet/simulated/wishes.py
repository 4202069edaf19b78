"""How a Pod wants to live: what its annotations say.

| annotation | meaning |
|---|---|
| `simulate.flyball.dev/run-for` | seconds after which its containers end, also those that would never; `forever` |
| `simulate.flyball.dev/exit-code` | what they end with (0); `1,1,0`: one after the other, run by run |
| `simulate.flyball.dev/ready-after` | seconds until they are ready (0); `never` |
| `simulate.flyball.dev/waiting` | a reason for which they do not start, such as `ImagePullBackOff` |
| `simulate.flyball.dev/waiting-for` | seconds after which they start all the same; default: never |
| `simulate.flyball.dev/terminate-after` | seconds that they take to end when they are told to (0) |
| `simulate.flyball.dev/termination-message` | what they leave behind when they end |
| `simulate.flyball.dev/log` | what they write to their log when they start |

With the name of a container behind it (`simulate.flyball.dev/exit-code.sidecar`) an annotation is about that one only,
and counts before the one for all. Init containers end at once and well unless an annotation names them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["NEVER", "PREFIX", "Wishes"]

PREFIX: Final = "simulate.flyball.dev/"
NEVER: Final = math.inf
_RUN_TIME: Final = 1.0
"""Seconds for which a container runs that is meant to end."""


class Wishes:
    """The annotations of one Pod, read when they are asked for. What makes no sense counts as not said."""

    def __init__(self, pod: Mapping[str, Any], speed: float) -> None:
        """`speed` divides all times."""
        annotations: Mapping[str, str] = pod["metadata"].get("annotations") or {}
        self._given = {name.removeprefix(PREFIX): text for name, text in annotations.items() if name.startswith(PREFIX)}
        self._speed = speed
        self._ends = pod["spec"].get("restartPolicy") in ("Never", "OnFailure")

    def run_for(self, container: str, *, init: bool = False, sidecar: bool = False) -> float:
        """Seconds for which a container runs."""
        usual = 0.0 if init and not sidecar else NEVER if sidecar else _RUN_TIME if self._ends else NEVER
        text = self._text("run-for", container, alone=init)
        return NEVER if text == "forever" else self._seconds(text, usual)

    def exit_code(self, container: str, run: int, *, init: bool = False) -> int:
        """What a container ends with in its `run`-th run, counted from 0."""
        codes = [part.strip() for part in self._text("exit-code", container, alone=init).split(",")]
        chosen = codes[min(run, len(codes) - 1)]
        return min(int(chosen), 255) if chosen.isascii() and chosen.isdecimal() and len(chosen) < 10 else 0

    def ready_after(self, container: str) -> float:
        """Seconds until a container that runs is ready."""
        text = self._text("ready-after", container)
        return NEVER if text == "never" else self._seconds(text, 0.0)

    def waiting(self, container: str) -> str:
        """Why a container does not start; empty when it does."""
        return self._text("waiting", container)

    def waiting_for(self, container: str) -> float:
        """Seconds for which it does not."""
        return self._seconds(self._text("waiting-for", container), NEVER)

    def terminate_after(self, container: str) -> float:
        """Seconds that a container takes to end when it is told to."""
        return self._seconds(self._text("terminate-after", container), 0.0)

    def termination_message(self, container: str) -> str:
        """What a container leaves behind when it ends."""
        return self._text("termination-message", container)[:4096]

    def log(self, container: str) -> str:
        """What a container writes when it starts."""
        return self._text("log", container)

    def _text(self, name: str, container: str, *, alone: bool = False) -> str:
        if not self._given:
            return ""
        own = self._given.get(f"{name}.{container}")
        return own if own is not None else "" if alone else self._given.get(name, "")

    def _seconds(self, text: str, otherwise: float) -> float:
        try:
            found = float(text) if text else otherwise
        except ValueError:
            found = otherwise
        return otherwise / self._speed if math.isnan(found) else max(found, 0.0) / self._speed

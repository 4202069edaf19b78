"""Programs that tests start: their output is kept, and none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

__all__ = ["Program"]


class Program:
    """A running program; `log` is what it has written so far."""

    def __init__(self, args: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._file = folder / f"program-{len(list(folder.glob('program-*')))}.log"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "PYTEST_"))}
        with self._file.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *args], cwd=folder, env={**clean, **env}, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def log(self) -> str:
        return self._file.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, seconds: float = 20.0) -> int:
        """Wait for its exit code."""
        return self.process.wait(seconds)

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        if error is not None:
            print(self.log)

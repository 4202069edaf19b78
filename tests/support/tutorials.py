"""Pages that are performed word by word: their files are written, their commands run, their outputs compared.

- A block with `title="FILE"` is a file; `title="FILE, at its end"` is put behind what is there.
- In a `console` block, lines with `$` are commands, the lines behind one are what it prints; a line `...` stands for
  any lines, `...` in a line for any text. A command that is to fail prints a line that begins with `Error`, `error` or
  `The ... is invalid`.
- `title="Terminal: NAME"` is a terminal of its own, whose program goes on: the page waits for what is printed. `^C`
  ends it. A block without a command waits for lines that come later.
- Blocks of the console marked `no-run` are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from flyball.testing import eventually
from flyball.testing.binaries import BinariesMissing, find_binaries

__all__ = ["Tutorial"]

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\S+)(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
LATER = ", at its end"
TERMINAL = "Terminal: "
FAILS = re.compile(r"[Ee]rror|The .* is invalid: ")
PATIENCE = 60.0


@dataclass
class Command:
    """A line with `$`, and what it is to print."""

    text: str
    expected: list[str] = field(default_factory=list[str])


def commands(block: str) -> list[Command]:
    """The commands of a block; what stands before the first one belongs to an empty command."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif found and found[-1].text.endswith("\\"):
            found[-1].text = found[-1].text[:-1] + line
        elif line == "^C":
            found.append(Command(line))
        else:
            if not found:
                found.append(Command(""))
            found[-1].expected.append(line)
    return found


def pattern(lines: list[str]) -> str:
    """What is expected as a regular expression; columns may be of other widths than on the page."""
    return "".join(r"(?:.*\n)*?" if line == "..." else f"{_line(line)}[ ]*\n" for line in lines)


def _line(line: str) -> str:
    words = re.split(r"( {2,}|\.\.\.)", line.rstrip())
    return "".join(".*" if word == "..." else " +" if word.startswith("  ") else re.escape(word) for word in words)


class Tutorial:
    """Performs a page in a folder; leaving it ends every program that still runs, and expects an orderly end."""

    def __init__(self, page: Path, folder: Path) -> None:
        """Nothing runs yet."""
        self.page, self.folder, self.home = page, folder, folder
        path = [str(Path(sys.executable).parent), os.environ["PATH"]]
        with contextlib.suppress(BinariesMissing):  # kubectl may be on the PATH
            path.insert(1, str(find_binaries().folder))
        self.environment = {
            "PATH": os.pathsep.join(path),
            "HOME": str(folder),
            "COLUMNS": "100",
        }
        self.terminals: dict[str, Terminal] = {}

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what still runs, the last one first."""
        for terminal in reversed(list(self.terminals.values())):
            terminal.end(orderly=error is None)

    def perform(self) -> None:
        """The page from its first line to its last."""
        for language, info, body in FENCE.findall(self.page.read_text()):
            title = re.search(r'title="([^"]+)"', info)
            name = title[1] if title is not None else ""
            if language == "console":
                if "no-run" not in info:
                    self._console(name.removeprefix(TERMINAL) if name.startswith(TERMINAL) else None, body)
            elif name.endswith(LATER):
                with (self.folder / name.removesuffix(LATER)).open("a") as file:
                    file.write(f"\n\n{body}")
            elif name:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(body)

    def _console(self, terminal: str | None, body: str) -> None:
        for command in commands(body):
            if terminal is None:
                self._run(command)
            elif command.text == "^C":
                self.terminals.pop(terminal).end(orderly=True)
            elif command.text:
                assert terminal not in self.terminals, f"{terminal}: something runs there; end it by ^C first"
                self.terminals[terminal] = Terminal(command.text, self.folder, self._surroundings(), self.home)
                self.terminals[terminal].wait_for(command.expected)
            else:
                self.terminals[terminal].wait_for(command.expected)

    def _run(self, command: Command) -> None:
        words = [*command.text.split(), ""]
        if words[0] == "cd":
            self.folder /= words[1]
        elif words[0] == "export":
            name, _, value = command.text.removeprefix("export ").partition("=")
            self.environment[name] = value.replace("$PWD", str(self.folder))
        elif words[0] != "pip":
            self._compare(command)

    def _compare(self, command: Command) -> None:
        done = subprocess.run(
            command.text,
            shell=True,
            cwd=self.folder,
            env=self._surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        fails = any(FAILS.match(line) for line in command.expected)
        told = f"$ {command.text}\n{done.stdout}\n(exit code {done.returncode}){self._others()}"
        assert (done.returncode != 0) == fails, told
        assert re.fullmatch(pattern(command.expected), done.stdout), f"{told}\nexpected:\n" + "\n".join(
            command.expected
        )

    def _surroundings(self) -> dict[str, str]:
        return {**self.environment, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{self.folder / 'src'}"}

    def _others(self) -> str:
        return "".join(f"\n--- {name}:\n{one.text}" for name, one in self.terminals.items())


class Terminal:
    """A program that goes on, and what it has printed."""

    def __init__(self, command: str, folder: Path, environment: dict[str, str], home: Path) -> None:
        """Start it."""
        self.command = command
        self._file = home / f"terminal-{abs(hash(command))}-{os.urandom(4).hex()}.txt"
        self._seen = 0
        with self._file.open("w") as out:
            self._process = subprocess.Popen(
                shlex.split(command), cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT
            )

    @property
    def text(self) -> str:
        """Everything that it has printed."""
        return self._file.read_text()

    def wait_for(self, lines: list[str]) -> None:
        """Wait until it has printed these lines, after those that were seen before."""
        wanted = re.compile(f"^{pattern(lines)}", re.MULTILINE)

        def seen() -> bool:
            found = wanted.search(self.text, self._seen)
            if found is not None:
                self._seen = found.end()
                return True
            assert self._process.poll() is None, f"$ {self.command}\n{self.text}\n(ended)"
            return False

        asyncio.run(eventually(seen, timeout=PATIENCE))

    def end(self, *, orderly: bool) -> None:
        """End it as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        fine = (0, 1, -signal.SIGINT) if self.command.startswith("kubectl ") else (0,)  # for kubectl it is a failure
        assert not orderly or code in fine, f"$ {self.command}\n{self.text}\n(exit code {code})"

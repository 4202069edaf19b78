"""The tutorial "Your first machine", executed: files and commands are taken from the page.

A block with `title="..."` is a file. In a ```console block, lines with `$` are commands and the lines behind one are
what it prints; a line `...` stands for any lines, `...` in a line for any text. Blocks of the console marked `no-run`
are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "fsm" / "first-machine.md"
FENCE = re.compile(r"^```(\S+)(.*)\n((?:.*\n)*?)```$", re.MULTILINE)


@dataclass
class Command:
    """A line with `$`, and what it is to print."""

    text: str
    expected: list[str] = field(default_factory=list[str])


def commands(block: str) -> list[Command]:
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        else:
            found[-1].expected.append(line)
    return found


def pattern(lines: list[str]) -> str:
    """What is expected as a regular expression."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n" for line in lines
    ]
    return "".join(parts)


@pytest.mark.capability("S1")
def test_the_page_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    folder = tmp_path
    for language, info, body in FENCE.findall(PAGE.read_text()):
        title = re.search(r'title="([^"]+)"', info)
        if title is not None:
            (folder / title[1]).write_text(body)
        elif language == "console" and "no-run" not in info:
            for command in commands(body):
                folder = perform(command, folder)
    picture = PAGE.parent / "img" / "first-machine.svg"
    assert (folder / "traffic.svg").read_bytes() == picture.read_bytes(), "the picture of the page is out of date"


def perform(command: Command, folder: Path) -> Path:
    """Run one command; the folder afterwards."""
    words = command.text.split()
    if words[0] == "cd":
        return folder / words[1]
    if words[0] == "pip":
        return folder
    bin_folder = Path(sys.executable).parent
    environment = {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{folder / 'src'}",
        "HOME": str(folder),
        "COLUMNS": "100",
    }
    done = subprocess.run(
        command.text,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"$ {command.text}\n{done.stdout}"
    assert re.fullmatch(pattern(command.expected), done.stdout), f"$ {command.text}\n{done.stdout}"
    return folder

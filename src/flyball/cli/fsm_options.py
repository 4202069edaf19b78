"""What the verbs that read a diagram share."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from flyball.fsm.parse import DiagramError

__all__ = ["DIAGRAM", "INPUT", "STRICT", "read_text", "write_output"]

INPUT = click.argument("file", metavar="FILE", type=click.Path(path_type=str))
DIAGRAM = click.option(
    "--diagram",
    metavar="X",
    envvar="FLYBALL_FSM_DIAGRAM",
    help="Which diagram of the file: its name, title or index (from 1), or all. Default: the first.",
)
STRICT = click.option("--strict", is_flag=True, envvar="FLYBALL_FSM_STRICT", help="Count warnings as errors.")


def read_text(file: str) -> str:
    """The text of a file, with its line ends as they are."""
    try:
        return Path(file).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DiagramError(f"{file}: not a text in UTF-8 (byte {error.start}): save it in that encoding") from error


def write_output(text: str, output: str | None) -> None:
    """Write to a file, or to standard output; the text ends with one line feed."""
    text = text if text.endswith("\n") else f"{text}\n"
    if output is None or output == "-":
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    else:
        Path(output).write_bytes(text.encode())

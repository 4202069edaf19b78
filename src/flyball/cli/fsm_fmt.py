"""`flyball fsm fmt`: write a diagram in its canonical form."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from flyball.cli.fsm_options import read_text
from flyball.fsm.draw.canonical import format_text


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=str))
@click.option("--check", is_flag=True, help="Write nothing; exit 3 when a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@click.option("-q", "--quiet", is_flag=True, help="Do not name the files that change.")
@click.pass_context
def command(ctx: click.Context, files: Sequence[str], check: bool, diff: bool, quiet: bool) -> None:
    """Write the diagrams of files in their canonical form.

    Comments, notes, the order of the lines and everything outside of the diagrams stay. A file with errors is left
    alone. Nothing is written unless all files can be formatted.
    """
    changed: list[tuple[str, str, str]] = []
    for file in files:
        old = read_text(file)
        new = format_text(old, file)
        if new != old:
            changed.append((file, old, new))
    for file, old, new in changed:
        if diff:
            _print_diff(file, old, new)
        if not check and not diff:
            _replace(Path(file), new)
        if not quiet and not diff:
            click.echo(f"{'would change' if check else 'formatted'} {file}")
    if check and changed:
        ctx.exit(3)


def _print_diff(file: str, old: str, new: str) -> None:
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{file} (as it is)", f"{file} (canonical)", lineterm=""
    )
    for line in lines:
        click.echo(line)


def _replace(path: Path, text: str) -> None:
    """Write a file so that it is the old or the new one at any moment, with the mode it had."""
    path = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        temporary.chmod(path.stat().st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

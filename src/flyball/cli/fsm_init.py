"""`flyball fsm init`: start a project around a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flyball.cli.fsm_writing import OPERATOR, OUTPUT, SOURCE, Configured, Mode, carry_out, check_operator, options_of
from flyball.fsm.generate import PlaceError, journal_of, project_files


@click.command(cls=Configured)
@SOURCE
@click.option("-m", "--module", metavar="NAME", help="Name of the application. Default: that of the current folder.")
@OPERATOR
@OUTPUT
@click.pass_context
def command(ctx: click.Context, /, module: str | None, **values: Any) -> None:
    """Start a project in the current folder: pyproject.toml, a program, the package of a machine and its tests."""
    check_operator(values)
    mode = Mode.take(values)
    name = (module or Path.cwd().name).replace("-", "_").replace(".", "_")
    if not name.isidentifier():
        raise click.UsageError(f"{name!r} cannot be the name of a module; choose one with --module")
    options = options_of(values, module=name, output=Path("src") / name)
    if not journal_of(options).pending():
        for file in project_files(options):
            if file.exists():
                raise PlaceError(
                    f"there is a project already: {file.relative_to(options.here)}; use `flyball fsm generate`"
                )
    ctx.exit(carry_out(options, mode))

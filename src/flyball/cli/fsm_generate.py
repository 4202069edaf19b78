"""`flyball fsm generate`: write or update the package of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flyball.cli.fsm_writing import OPERATOR, OUTPUT, SOURCE, Configured, Mode, carry_out, check_operator, options_of


@click.command(cls=Configured)
@SOURCE
@click.option(
    "-o", "--output", metavar="DIR", default=Path(), type=click.Path(path_type=Path), help="Where the package goes."
)
@OPERATOR
@click.option(
    "--rename", "renames", metavar="OLD=NEW", multiple=True, help="Rename an action or guard everywhere first."
)
@click.option("--no-rename", is_flag=True, help="Take what looks like a rename for a new name.")
@click.option("--prune", is_flag=True, help="Remove implemented functions that the diagram no longer mentions.")
@OUTPUT
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Write or update the package of a machine from its diagram.

    Your code is kept: only untouched stubs are changed or removed. Exit 1 when there are errors; then nothing is
    written.
    """
    check_operator(values)
    mode = Mode.take(values)
    options = options_of(values, propose_renames=not values.pop("no_rename"))
    ctx.exit(carry_out(options, mode))

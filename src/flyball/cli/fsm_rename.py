"""`flyball fsm rename`: rename an action or guard in diagram and code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flyball.cli.fsm_writing import OUTPUT, SOURCE, Configured, Mode, carry_out, options_of


@click.command(cls=Configured)
@click.argument("renames", metavar="[action:|guard:]OLD=NEW...", nargs=-1, required=True)
@SOURCE
@click.option(
    "-o", "--output", metavar="DIR", default=Path(), type=click.Path(path_type=Path), help="Where the package is."
)
@OUTPUT
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Rename an action or guard in the diagram, its marker and tests, and its function if that has the default name."""
    mode = Mode.take(values)
    ctx.exit(carry_out(options_of(values), mode))

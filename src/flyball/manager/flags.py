"""The options of `flyball.manager.options` as flags of a command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import click

from flyball.manager.options import Options

__all__ = ["flags_of", "read_flags", "with_flags"]

F = TypeVar("F", bound=Callable[..., Any])


def with_flags(function: F) -> F:
    """Give a click command a flag for every option; those not used come as None."""
    for one in reversed(fields(Options)):
        choices: tuple[str, ...] = one.metadata["choices"]
        function = click.option(
            f"--{one.name.replace('_', '-')}",
            one.name,
            default=None,
            metavar=None if choices else _placeholder(str(one.type)),
            type=click.Choice(choices) if choices else str,
            help=f"{one.metadata['help']} [{f'FLYBALL_{one.name.upper()}'}]",
        )(function)
    return function


def _placeholder(kind: str) -> str:
    if kind.startswith("tuple"):
        return "NAMES"
    return {"flo": "NUMBER", "int": "NUMBER"}.get(kind[:3], "TEXT")


def flags_of(given: dict[str, Any]) -> dict[str, Any]:
    """Only the flags that were used."""
    return {name: value for name, value in given.items() if value is not None}


def read_flags(args: Sequence[str], program: str, description: str | None) -> dict[str, Any] | int:
    """Read the command line of a program that calls `run(...)`: flags, or the exit code of `--help` or a mistake."""

    @click.command(help=description, context_settings={"help_option_names": ["-h", "--help"]})
    @with_flags
    def command(**given: Any) -> dict[str, Any]:
        return flags_of(given)

    try:
        found = command.main(list(args), prog_name=program, standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"{program}: {error.format_message()}", err=True)
        return error.exit_code
    return found if isinstance(found, dict) else 0

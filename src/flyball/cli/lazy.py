"""A click group that imports a verb only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Verb(NamedTuple):
    """Where a verb lives and what it does, known without importing it."""

    module: str
    summary: str
    extra: str | None = "dev"
    """The extra of the package that brings what the verb needs; None when the bare install is enough."""


class LazyGroup(click.Group):
    """A group of verbs: listing them imports none of them."""

    def __init__(self, *args: Any, verbs: Mapping[str, Verb], **kwargs: Any) -> None:
        """Take the verbs beside what a click group takes."""
        super().__init__(*args, **kwargs)
        self.verbs = dict(verbs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs in alphabetical order."""
        return sorted({*super().list_commands(ctx), *self.verbs})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb; say which extra is missing when a library of it is not installed."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return super().get_command(ctx, cmd_name)
        try:
            command = importlib.import_module(verb.module).command
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.partition(".")[0] == "flyball" or verb.extra is None:
                raise
            raise click.ClickException(
                f"{cmd_name} needs {missing.name}, which is not installed: pip install 'flyball[{verb.extra}]'"
            ) from missing
        if not isinstance(command, click.Command):
            raise TypeError(f"{verb.module}.command is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs from their summaries."""
        rows = [(name, verb.summary) for name, verb in sorted(self.verbs.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

"""`flyball fsm paths`: list the ways through a machine."""

from __future__ import annotations

import json

import click

from flyball.cli.fsm_options import DIAGRAM, INPUT
from flyball.fsm.paths import Path, Paths, find_paths
from flyball.fsm.run.loading import read_diagram


@click.command()
@INPUT
@DIAGRAM
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=0), default=100, show_default=True, help="List at most N."
)
@click.option(
    "--format", "form", type=click.Choice(["json", "text"]), default="text", show_default=True, help="How to tell."
)
def command(file: str, diagram: str | None, limit: int, form: str) -> None:
    """List every way through a machine that enters no state twice, with the guard values that lead along it."""
    found = find_paths(read_diagram(file, diagram), limit)
    if form == "json":
        click.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
        return
    for number, path in enumerate(found.paths, 1):
        click.echo("\n".join(_lines(number, path)))
    click.echo(_summary(found))


def _lines(number: int, path: Path) -> list[str]:
    by_state: dict[str, list[str]] = {}
    for condition in path.conditions:
        by_state.setdefault(condition.state, []).append(str(condition))
    return [
        f"{number}. {', '.join(path.states)}",
        *(f"   {state}: {', '.join(values)}" for state, values in by_state.items()),
    ]


def _summary(found: Paths) -> str:
    total = len(found.paths)
    words = f"{found.title}: {total} path{'' if total == 1 else 's'}"
    if found.complete and not found.left_out:
        return words
    more = f"{found.left_out} left out" if found.complete else f"at least {found.left_out} left out"
    return f"{words}, {more} (--limit)"

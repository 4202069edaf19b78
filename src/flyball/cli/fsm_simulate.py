"""`flyball fsm simulate`: step through a machine before any code exists."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from flyball.cli.fsm_options import DIAGRAM, INPUT
from flyball.fsm.converse import Conversation, converse
from flyball.fsm.model import Diagram
from flyball.fsm.run.loading import read_diagram
from flyball.fsm.simulate import Scenario, ScenarioError, Simulation, simulate, table_of


@click.command()
@INPUT
@DIAGRAM
@click.option("--scenario", metavar="S.json", help="Guard values and failures; - reads them from standard input.")
@click.option(
    "--format", "form", type=click.Choice(["json", "text"]), default="text", show_default=True, help="How to tell."
)
@click.option(
    "--policy", type=click.Choice(["error", "stay"]), default="error", show_default=True, help="Without a scenario."
)
@click.option("--step-limit", type=click.IntRange(min=0), default=1000, show_default=True, help="Without a scenario.")
@click.option("--fail", is_flag=True, help="Without a scenario: ask for each action whether it fails.")
def command(
    file: str, diagram: str | None, scenario: str | None, form: str, policy: str, step_limit: int, fail: bool
) -> None:
    """Run a diagram on the real engine with made-up guard values.

    With --scenario the values come from a file; without one you are asked for each guard (y, n, b for back, q to stop),
    at a terminal or line by line from standard input. IsError always means that an error is stored.

    A scenario is {"guards": {"Name" or "Name(p1|p2)": true or [true, false, ...]}, "fail": {"Action": "always" or
    [call numbers]}, "policy": "error" or "stay", "step_limit": N}.
    """
    read = read_diagram(file, diagram)
    if scenario is not None:
        simulation = simulate(read, _scenario(scenario, read))
        _tell(simulation.as_dict(), simulation, form)
        return
    talk = Conversation(
        ask=_ask,
        tell=lambda line: click.echo(line, err=form == "json"),
        failing=fail,
    )
    ended = converse(read, talk, policy="stay" if policy == "stay" else "error", step_limit=step_limit)
    _tell(ended.as_dict(), ended, form)


def _scenario(path: str, diagram: Diagram) -> Scenario:
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    try:
        scenario = Scenario.from_json(json.loads(text))
    except json.JSONDecodeError as problem:
        raise ScenarioError(f"{path}:{problem.lineno}:{problem.colno}: not JSON: {problem.msg}") from problem
    for stranger in scenario.strangers(table_of(diagram)):
        click.echo(f"{path}: the diagram has no {stranger}", err=True)
    return scenario


def _ask(question: str) -> str | None:
    click.echo(question, nl=False, err=True)
    line = sys.stdin.readline()
    if not sys.stdin.isatty():
        click.echo(line.strip(), err=True)
    return line.strip() if line else None


def _tell(document: dict[str, Any], simulation: Simulation, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    click.echo(f"path:    {', '.join(simulation.path) or '-'}")
    click.echo(f"actions: {', '.join(simulation.actions) or '-'}")
    click.echo(f"checks:  {', '.join(simulation.checks) or '-'}")
    click.echo(f"error:   {simulation.error or '-'}")
    click.echo(f"stop:    {simulation.stop or '-'}")

"""The verbs of state machines."""

from __future__ import annotations

import click

from flyball.cli.lazy import LazyGroup, Verb

VERBS = {
    "convert": Verb("flyball.cli.fsm_convert", "Turn a diagram into another notation."),
    "draw": Verb("flyball.cli.fsm_draw", "Draw a diagram: SVG, Mermaid, DOT, PlantUML or text."),
    "fmt": Verb("flyball.cli.fsm_fmt", "Write a diagram in its canonical form."),
    "generate": Verb("flyball.cli.fsm_generate", "Write or update the package of a machine."),
    "init": Verb("flyball.cli.fsm_init", "Start a project around a machine."),
    "lint": Verb("flyball.cli.fsm_lint", "Report the findings of diagrams."),
    "model": Verb("flyball.cli.fsm_model", "Print what a diagram means, as JSON."),
    "paths": Verb("flyball.cli.fsm_paths", "List the ways through a machine."),
    "rename": Verb("flyball.cli.fsm_rename", "Rename an action or guard in diagram and code."),
    "simulate": Verb("flyball.cli.fsm_simulate", "Step through a machine before any code exists."),
}


@click.group(cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """State machines from diagrams."""

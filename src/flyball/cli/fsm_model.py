"""`flyball fsm model`: print what a diagram means, as JSON."""

from __future__ import annotations

import json

import click

from flyball.cli.fsm_options import DIAGRAM, INPUT, STRICT
from flyball.fsm.compile import judged
from flyball.fsm.document import model_document
from flyball.fsm.parse import load


@click.command()
@INPUT
@DIAGRAM
@STRICT
@click.pass_context
def command(ctx: click.Context, file: str, diagram: str | None, strict: bool) -> None:
    """Print the model of a diagram as JSON; exit 1 when it has errors.

    With --diagram all it is a list with one document per diagram.
    """
    parts = load(file, diagram).split()
    documents = [model_document(one.diagrams[0] if one.diagrams else None, judged(one, strict)) for one in parts]
    click.echo(json.dumps(documents if diagram == "all" else documents[0], indent=2, ensure_ascii=False))
    if any(document["errors"] for document in documents):
        ctx.exit(1)

"""`flyball fsm draw`: draw a diagram."""

from __future__ import annotations

import json
from pathlib import Path

import click

from flyball.cli.fsm_options import INPUT, read_text, write_output
from flyball.fsm.draw import Overlay, OverlayError, document_text, hits_of, to_dot, to_mermaid, to_plain, to_svg
from flyball.fsm.model import Diagram
from flyball.fsm.parse import DiagramError, Document, load

_BY_SUFFIX = {".svg": "svg", ".mmd": "mermaid", ".dot": "dot", ".gv": "dot", ".puml": "plantuml", ".txt": "text"}


@click.command()
@INPUT
@click.option("--diagram", metavar="X", help="Which diagram of the file: its name, title or index (from 1).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["dot", "mermaid", "plantuml", "svg", "text"]),
    help="What to write. Default: by the name of the output, else text.",
)
@click.option("-o", "--output", metavar="OUT", help="The file to write. Default: standard output.")
@click.option("--trace", metavar="FILE.json", help="Count the transitions of a trace (the output of simulate).")
@click.option("--current", metavar="STATE", default="", help="Highlight a state; an inner one is Box/Inner.")
def command(
    file: str, diagram: str | None, form: str | None, output: str | None, trace: str | None, current: str
) -> None:
    """Draw a diagram as SVG, Mermaid, DOT, PlantUML or text; nothing else has to be installed.

    A diagram with errors is drawn as far as it was understood.
    """
    if diagram == "all":
        raise click.UsageError("draw one diagram at a time: --diagram NAME, TITLE or INDEX")
    result = load(file, diagram)
    if not result.documents:
        raise DiagramError(str(result.findings[0]))
    document = result.documents[0]
    overlay = _overlay(document.diagram, trace, current)
    chosen = form or _BY_SUFFIX.get(Path(output).suffix.lower() if output else "", "text")
    write_output(_drawn(document, overlay, chosen), output)


def _drawn(document: Document, overlay: Overlay, form: str) -> str:
    match form:
        case "dot":
            return to_dot(document.diagram, overlay)
        case "mermaid":
            return to_mermaid(document.diagram)
        case "plantuml":
            return document_text(document)
        case "svg":
            return to_svg(document.diagram, overlay)
        case _:
            return to_plain(document.diagram, overlay)


def _overlay(diagram: Diagram, trace: str | None, current: str) -> Overlay:
    known = {"/".join(path) for path, _ in diagram.machine.walk()}
    if current and current not in known:
        raise OverlayError(f"{diagram.title} has no state {current}; an inner state is written Box/Inner")
    if trace is None:
        return Overlay(current=current)
    try:
        data: object = json.loads(read_text(trace))
    except ValueError as error:
        raise OverlayError(f"{trace}: not JSON ({error}): take the output of flyball fsm simulate") from error
    hits = hits_of(data)
    for level, source, target in hits:
        for name in (source, target):
            path = f"{level}/{name}" if level else name
            if name != "[*]" and path not in known:
                raise OverlayError(f"{trace}: {diagram.title} has no state {path}: the trace is of another machine")
    return Overlay(hits, current, traced=True)

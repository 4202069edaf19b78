"""`flyball fsm convert`: turn a diagram into another notation."""

from __future__ import annotations

import json
from pathlib import Path

import click

from flyball.cli.fsm_options import INPUT, read_text, write_output
from flyball.fsm.compile import judged
from flyball.fsm.document import model_document
from flyball.fsm.draw import document_text, from_mermaid, is_mermaid, to_dot, to_mermaid
from flyball.fsm.draw.mermaid import mermaid_sources
from flyball.fsm.parse import DiagramError, ParseResult, parse_text
from flyball.fsm.report import as_text

_BY_SUFFIX = {".mmd": "mermaid", ".dot": "dot", ".gv": "dot", ".json": "json"}


@click.command()
@INPUT
@click.option("--diagram", metavar="X", help="Which diagram of the file: its name, title or index (from 1).")
@click.option("--from", "source", type=click.Choice(["mermaid", "plantuml"]), help="Default: by what the text says.")
@click.option(
    "--to",
    "target",
    type=click.Choice(["dot", "json", "mermaid", "plantuml"]),
    help="Default: by the name of the output, else plantuml.",
)
@click.option("-o", "--output", metavar="OUT", help="The file to write. Default: standard output.")
@click.option("--title", default="", help="The title of a Mermaid diagram that has none. Default: the file's name.")
@click.pass_context
def command(
    ctx: click.Context,
    file: str,
    diagram: str | None,
    source: str | None,
    target: str | None,
    output: str | None,
    title: str,
) -> None:
    """Convert a diagram: PlantUML or Mermaid in; PlantUML, Mermaid, DOT or the JSON model out.

    Findings of the result go to standard error; errors among them make the exit status 1. SVG and text are drawn by
    `flyball fsm draw`.
    """
    if diagram == "all":
        raise click.UsageError("convert one diagram at a time: --diagram NAME, TITLE or INDEX")
    result = _read(file, source, title or Path(file).stem).select(diagram)
    if not result.documents:
        raise DiagramError(str(result.findings[0]))
    chosen = target or _BY_SUFFIX.get(Path(output).suffix.lower() if output else "", "plantuml")
    findings = judged(result)
    told = [one for one in findings if one.severity != "info"]
    if told:
        click.echo(as_text(told), err=True)
    write_output(_written(result, chosen), output)
    if any(one.severity == "error" for one in findings):
        ctx.exit(1)


def _read(file: str, source: str | None, title: str) -> ParseResult:
    """The diagrams of a file; Mermaid is turned into our language first."""
    text = read_text(file).removeprefix("\ufeff")
    found = [text] if is_mermaid(text) else mermaid_sources(text)
    if source == "mermaid" and not found:
        raise DiagramError(f"{file}: there is no Mermaid state diagram (it begins with `stateDiagram-v2`)")
    own = parse_text(text, file)
    if source == "plantuml" or not found or (source is None and not is_mermaid(text) and own.documents):
        return own
    names = [title] if len(found) == 1 else [f"{title} {index}" for index in range(1, len(found) + 1)]
    converted = [from_mermaid(one, name) for one, name in zip(found, names, strict=True)]
    return parse_text("\n".join(converted), f"{file} (as PlantUML)")


def _written(result: ParseResult, target: str) -> str:
    document = result.documents[0]
    match target:
        case "dot":
            return to_dot(document.diagram)
        case "json":
            return json.dumps(model_document(document.diagram, judged(result)), indent=2, ensure_ascii=False)
        case "mermaid":
            return to_mermaid(document.diagram)
        case _:
            return document_text(document)

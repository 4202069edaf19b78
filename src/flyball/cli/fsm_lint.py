"""`flyball fsm lint`: report the findings of diagrams."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from flyball.cli.fsm_options import DIAGRAM, STRICT
from flyball.fsm.compile import judged
from flyball.fsm.model import Finding
from flyball.fsm.parse import load
from flyball.fsm.report import as_json, as_sarif, as_text

_WRITERS = {"json": as_json, "sarif": as_sarif, "text": as_text}


@click.command()
@click.argument("files", metavar="FILES...", nargs=-1, required=True, type=click.Path(path_type=str))
@DIAGRAM
@STRICT
@click.option(
    "--format", "form", type=click.Choice(sorted(_WRITERS)), default="text", show_default=True, help="How to report."
)
@click.option("--package", metavar="DIR", help="Look also at the functions of this generated package.")
@click.option("-q", "--quiet", is_flag=True, help="Leave out notes and the summary.")
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
    diagram: str | None,
    strict: bool,
    form: str,
    package: str | None,
    quiet: bool,
) -> None:
    """Report the findings of diagrams, with line, column and remedy.

    Exit 1 when there is an error (with --strict, also when there is a warning), else 0. With --package it tells
    also which functions are still stubs, which are missing, and which cannot take what the diagram passes.
    """
    findings = [finding for file in files for finding in _findings(file, diagram, strict, package)]
    if quiet:
        findings = [one for one in findings if one.severity != "info"]
    text = _WRITERS[form](findings)
    if text:
        click.echo(text)
    if form == "text" and not quiet:
        print(_summary(files, findings), file=sys.stderr)
    if any(one.severity == "error" for one in findings):
        ctx.exit(1)


def _findings(file: str, diagram: str | None, strict: bool, package: str | None) -> list[Finding]:
    result = load(file, diagram)
    if package is None:
        return judged(result, strict)
    from flyball.fsm.implemented import read_package  # the generator's reader is needed here only

    functions = read_package(Path(package))
    findings = judged(result, strict, infallible=functions.infallible)
    return findings + [finding for one in result.diagrams for finding in functions.check(one)]


def _summary(files: Sequence[str], findings: Sequence[Finding]) -> str:
    counts = [
        f"{number} {word}{'s' if number != 1 else ''}"
        for word, severity in (("error", "error"), ("warning", "warning"), ("note", "info"))
        if (number := sum(one.severity == severity for one in findings))
    ]
    what = files[0] if len(files) == 1 else f"{len(files)} files"
    return f"{what}: {', '.join(counts) or 'nothing to report'}"

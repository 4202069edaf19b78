"""What `fsm generate`, `fsm init` and `fsm rename` share: their options, and the way from options to an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from flyball.fsm.generate import Options, Plan, journal_of, prepare, recover
from flyball.fsm.generate.places import project_file, settings
from flyball.fsm.generate.report import differences, file_lines, findings_text, plan_json, plan_sarif

__all__ = ["OPERATOR", "OUTPUT", "SOURCE", "Configured", "Mode", "carry_out", "check_operator", "options_of"]

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

CHANGED = 3
"""The exit code of `--check` when something would change."""


class Configured(click.Command):
    """A command whose options may also stand in `[tool.flyball.fsm]` of the nearest pyproject.toml."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the table before the options; flags and environment win."""
        extra.setdefault("default_map", _configured())
        return super().make_context(info_name, args, parent, **extra)


def _configured() -> dict[str, Any]:
    file = project_file(Path.cwd())
    found = {name.replace("-", "_"): value for name, value in settings(file, "tool", "flyball", "fsm").items()}
    for name in ("input", "output", "tests"):
        if file is not None and name in found:
            found[name] = os.path.relpath(file.parent / str(found[name]))
    return {{"input": "input_"}.get(name, name): value for name, value in found.items()}


def _all(*decorators: Decorator) -> Decorator:
    return lambda function: reduce(lambda done, one: one(done), reversed(decorators), function)


def _option(*names: str, **settings: Any) -> Decorator:
    word = names[-1].lstrip("-").replace("-", "_").upper()
    return click.option(*names, envvar=f"FLYBALL_FSM_{word}", **settings)


SOURCE = _all(
    click.option(
        "-i", "--input", "input_", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The diagram."
    ),
    _option("-p", "--package", metavar="NAME", default="statemachine", show_default=True, help="Name of the package."),
    _option("--diagram", metavar="X", help="Which diagram of the file: its name, title or index (from 1)."),
    click.option("--tests", metavar="DIR", type=click.Path(path_type=Path), help="Where tests go. Default: tests."),
    click.option("--no-tests", is_flag=True, help="Write no tests."),
    _option("--strict", is_flag=True, help="Count warnings as errors."),
)
OPERATOR = _all(
    click.option("-O", "--operator", is_flag=True, help="For an operator: a resource class, results, cluster tests."),
    _option("-g", "--group", metavar="G", default="", help="API group. Default: the kind."),
    _option("-v", "--api-version", metavar="V", default="", help="API version, for example v1alpha1."),
    _option("-k", "--api-kind", metavar="KIND", default="", help="The kind; case matters."),
    _option(
        "--resource", metavar="MODULE:CLASS", default="", help="The resource class. Default: <application>.api:<KIND>."
    ),
)
OUTPUT = _all(
    click.option("--check", is_flag=True, help=f"Write nothing; exit {CHANGED} if something would change."),
    click.option("--diff", is_flag=True, help="Write nothing; print what would change."),
    click.option("--dry-run", is_flag=True, help="Write nothing; list the files that would change."),
    click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
)


@dataclass(frozen=True, slots=True)
class Mode:
    """What to do with a plan, and how to speak of it."""

    check: bool = False
    diff: bool = False
    dry_run: bool = False
    form: str = "text"
    quiet: bool = False

    @property
    def writes(self) -> bool:
        """Whether the plan is to be carried out."""
        return not (self.check or self.diff or self.dry_run)

    @classmethod
    def take(cls, values: dict[str, Any]) -> Mode:
        """Take the options of `OUTPUT` out of a command's values."""
        return cls(*(values.pop(name) for name in ("check", "diff", "dry_run", "form", "quiet")))


def options_of(values: dict[str, Any], **more: Any) -> Options:
    """The generator's options from a command's values."""
    names = {"input_": "input", "api_version": "api_version"}
    given = {names.get(name, name): value for name, value in values.items() if name != "no_tests"}
    return Options(with_tests=not values["no_tests"], **given, **more)


def check_operator(values: dict[str, Any]) -> None:
    """Operator mode needs kind and version; without it they mean nothing."""
    if values["operator"]:
        missing = [
            flag for name, flag in (("api_kind", "api-kind"), ("api_version", "api-version")) if not values[name]
        ]
        if missing:
            raise click.UsageError("--operator needs " + " and ".join(f"--{flag}" for flag in missing))
        if not values["api_kind"].isidentifier():
            raise click.UsageError(f"--api-kind {values['api_kind']!r} cannot be the name of a class")


def carry_out(options: Options, mode: Mode) -> int:
    """Prepare, speak, write; the exit code."""
    _settle_earlier_run(options, mode)
    plan = prepare(options)
    if mode.form == "json":
        click.echo(plan_json(plan, options.here))
    elif mode.form == "sarif":
        click.echo(plan_sarif(plan))
    else:
        _say(plan, options, mode)
    if not plan.ok:
        return 1
    if mode.writes:
        plan.write()
        return 0
    return CHANGED if mode.check and plan.changed else 0


def _settle_earlier_run(options: Options, mode: Mode) -> None:
    if not mode.writes:
        if journal_of(options).pending():
            click.echo(
                "flyball: an earlier run was interrupted; run without --check, --diff or --dry-run first", err=True
            )
        return
    found = recover(options)
    if mode.quiet:
        return
    for path in found.finished:
        click.echo(f"finished what an interrupted run began: {path}", err=True)
    for path in found.skipped:
        click.echo(f"left alone, because it changed since an interrupted run: {path}", err=True)


def _say(plan: Plan, options: Options, mode: Mode) -> None:
    text = findings_text(plan) if not mode.quiet or not plan.ok else ""
    if text:
        click.echo(text, err=True)
    if not plan.ok:
        click.echo("flyball: nothing is written", err=True)
        return
    for hint in plan.hints:
        if not mode.quiet:
            click.echo(f"hint: {hint}", err=True)
    pruned = [one for one in plan.changed if options.prune and one.merged is not None and one.merged.removed]
    if mode.diff:
        click.echo(differences(plan.changed, options.here), nl=False)
    elif mode.writes and pruned and not mode.quiet:
        click.echo(differences(pruned, options.here), nl=False)
    if not mode.quiet and not mode.diff:
        for line in file_lines(plan, options.here):
            click.echo(line if mode.writes else f"would {line}")

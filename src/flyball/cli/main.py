"""The entry point: which verbs there are, and what happens to errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from flyball import __version__
from flyball.cli.lazy import LazyGroup, Verb

VERBS = {
    "clock": Verb("flyball.cli.clock", "Turn the clock of a cluster that `flyball up` runs.", None),
    "crd": Verb("flyball.cli.crd", "Print the CustomResourceDefinition of resource classes."),
    "fsm": Verb("flyball.cli.fsm", "State machines from diagrams: generate, lint, draw, simulate."),
    "run": Verb("flyball.cli.run", "Run controllers against a cluster.", None),
    "up": Verb("flyball.cli.up", "Start a cluster in the box: a Kubernetes API for kubectl and everything else."),
}


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Documentation: docs/ in the source tree.",
)
@click.version_option(__version__, prog_name="flyball")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
def flyball(debug: bool) -> None:
    """Write, run and test Kubernetes operators in Python."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and end the process: 0 done, 1 failure, 2 wrong usage."""
    given = list(sys.argv[1:] if args is None else args)
    sys.exit(_exit_code(given))


def _exit_code(args: list[str]) -> int:
    if "--debug" in args[: _first_verb(args)]:
        return _run(args)
    try:
        return _run(args)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (ImportError, OSError, ValueError) as error:
        return _fail(error)
    except Exception as error:
        if _is_expected(error):
            return _fail(error)
        click.echo(f"flyball: internal error: {type(error).__name__}: {_line(error)} (--debug shows where)", err=True)
        return 1


def _run(args: list[str]) -> int:
    try:
        result = flyball.main(args, prog_name="flyball", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        click.echo("flyball: stopped", err=True)
        return 130
    except click.ClickException as error:
        click.echo(f"flyball: {error.format_message()}", err=True)
        return error.exit_code
    return result if isinstance(result, int) else 0


def _first_verb(args: list[str]) -> int:
    return next((place for place, word in enumerate(args) if not word.startswith("-")), len(args))


def _is_expected(error: Exception) -> bool:
    errors = sys.modules.get("flyball.errors")
    return errors is not None and isinstance(error, errors.FlyballError)


def _fail(error: Exception) -> int:
    click.echo(f"flyball: {_line(error)}", err=True)
    return 1


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__

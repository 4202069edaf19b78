"""`flyball clock`: look at the clock of a cluster in the box, and turn it forward."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from flyball.errors import ConfigError

if TYPE_CHECKING:
    from flyball.controlplane.admin import AdminAnswer

__all__ = ["command"]

_PATH = click.Path(path_type=Path)
_DAY = 86_400


@click.group("clock")
@click.option("--kubeconfig", type=_PATH, metavar="PATH", help="The kubeconfig of the cluster.  [default: as kubectl]")
@click.option("--context", metavar="NAME", help="A context of it.  [default: the current one]")
@click.pass_context
def command(ctx: click.Context, kubeconfig: Path | None, context: str | None) -> None:
    """Look at the clock of a cluster that `flyball up` runs on this machine, and turn it forward.

    Everything in the cluster goes by it: timestamps, back-offs, deadlines, schedules, simulated Pods. Processes outside
    keep their own time.
    """
    ctx.obj = (kubeconfig, context)


@command.command("now")
@click.pass_obj
def now(place: tuple[Path | None, str | None]) -> None:
    """Print what time it is in the cluster."""
    _tell(_ask(place, {"do": "now"}))


@command.command("advance")
@click.argument("duration", metavar="DURATION")
@click.pass_obj
def advance(place: tuple[Path | None, str | None], duration: str) -> None:
    """Turn the clock forward: 90s, 10m, 1h30m, 7d. What becomes due on the way happens, in order."""
    _tell(_ask(place, {"do": "advance", "seconds": _seconds(duration)}))


def _seconds(text: str) -> float:
    from flyball.api import Duration

    days, mark, rest = text.partition("d")
    if not mark:
        days, rest = "0", text
    try:
        seconds = float(int(days) * _DAY) + (Duration(rest).seconds if rest else 0.0)
    except ValueError:
        raise click.UsageError(f"{text!r} is no length of time; write it like 90s, 10m, 1h30m or 7d") from None
    if seconds < 0:
        raise click.UsageError(f"turn the clock by {text}: it goes forward only")
    return seconds


def _ask(place: tuple[Path | None, str | None], request: dict[str, Any]) -> AdminAnswer:
    if os.name != "posix":
        raise ConfigError("flyball clock: the clock of a cluster is reached by a socket file, which needs POSIX")
    from flyball.client.config import load_config
    from flyball.controlplane.admin import ask, socket_of

    server = load_config(*place).server
    port = urlsplit(server).port
    if port is None:
        raise ConfigError(f"flyball clock: {server} names no port, so it is no cluster of `flyball up`")
    return ask(socket_of(port), request)


def _tell(answer: AdminAnswer) -> None:
    moment = answer.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    turned = f"turned forward by {_length(answer.turned)}" if answer.turned else "not turned"
    click.echo(f"{moment} ({turned})")


def _length(seconds: float) -> str:
    from flyball.api import Duration

    days, rest = divmod(seconds, _DAY)
    written = Duration(round(rest, 3)).canonical() if rest or not days else ""
    return f"{int(days)}d{written}" if days else written

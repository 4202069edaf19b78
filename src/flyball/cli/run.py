"""`flyball run`: controllers of a module, a file or a package, against a cluster."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import click

from flyball.cli.modules import NotFoundHere, module_of
from flyball.manager.flags import flags_of, with_flags

__all__ = ["command"]


class NoController(NotFoundHere):
    """What was named on the command line holds no controller."""


@click.command("run")
@click.argument("targets", nargs=-1, required=True, metavar="MODULE[:NAME] | FILE.py[:NAME] | PACKAGE ...")
@with_flags
def command(targets: tuple[str, ...], **given: Any) -> None:
    """Run controllers until Ctrl-C or SIGTERM.

    A module or file: all its controllers, or the one called NAME. A bare name is a package, here or in ./src: all the
    controllers in it. Every option may also be given as a FLYBALL_* variable or in [tool.flyball] of pyproject.toml.
    """
    from flyball.manager import resolve, run_controllers

    found: dict[int, Any] = {}
    for target in targets:
        for one in _controllers(target):
            found.setdefault(id(one), one)
    run_controllers(list(found.values()), resolve(flags_of(given)))


def _controllers(target: str) -> list[Any]:
    from flyball.controller.definition import Controller

    place, _, name = target.partition(":")
    module = module_of(place)
    if not name:
        found = [one for each in _modules(module) for one in vars(each).values() if isinstance(one, Controller)]
        if not found:
            raise NoController(f"{place}: it defines no controller; decorate a function with @controller(Kind)")
        return found
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise NoController(f"{target}: {place} has no {name}{_guess(module)}")
        value = getattr(value, part)
    if isinstance(value, Controller):
        return [value]
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, Controller) for one in value):
        return list(value)
    raise NoController(f"{target}: it is no controller, nor a list of some{_guess(module)}")


def _modules(module: ModuleType) -> Iterator[ModuleType]:
    """The module and, of a package, everything in it but tests and programs."""
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
        last = found.name.rpartition(".")[2]
        if last not in {"__main__", "conftest", "tests"} and not last.startswith("test_"):
            yield from _modules(importlib.import_module(found.name))


def _guess(module: ModuleType) -> str:
    from flyball.controller.definition import Controller

    names = [name for name, value in vars(module).items() if isinstance(value, Controller)]
    return f"; it has {', '.join(names)}" if names else ""

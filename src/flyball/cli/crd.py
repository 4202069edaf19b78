"""`flyball crd`: print the CustomResourceDefinitions of resource classes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import click
import yaml

from flyball.api import Resource, crd_of
from flyball.cli.modules import NotFoundHere, module_of

__all__ = ["command"]


class NoSuchClass(NotFoundHere):
    """What was named on the command line cannot be found or is no kind."""


@click.command("crd")
@click.argument("classes", nargs=-1, required=True, metavar="MODULE[:CLASS] | FILE.py[:CLASS] ...")
def command(classes: tuple[str, ...]) -> None:
    """Print the CustomResourceDefinitions of resource classes as YAML.

    Several classes of one kind are its versions. Without :CLASS, every kind of the module is taken.
    """
    kinds: dict[tuple[str, str], list[type[Resource]]] = {}
    for named in classes:
        for found in _find(named):
            same = kinds.setdefault((found.kind_options.group, found.kind_options.kind), [])
            if found not in same:
                same.append(found)
    documents = [
        yaml.dump(crd_of(*versions), Dumper=_Dumper, sort_keys=False, width=120) for versions in kinds.values()
    ]
    click.echo("---\n".join(documents), nl=False)


class _Dumper(yaml.SafeDumper):
    """Without anchors, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _find(named: str) -> list[type[Resource]]:
    place, _, name = named.partition(":")
    module = module_of(place)
    if not name:
        found = [value for value in vars(module).values() if _is_kind(value) and value.__module__ == module.__name__]
        if not found:
            raise NoSuchClass(f"{place}: it defines no kind; derive a class from Resource with a group and a version")
        return found
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise NoSuchClass(f"{named}: {place} has no class {name}{_guess(module)}")
        value = getattr(value, part)
    if not _is_kind(value):
        raise NoSuchClass(
            f"{named}: it is no kind; name a class derived from Resource with a group and a version{_guess(module)}"
        )
    return [value]


def _guess(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if _is_kind(value) and value.__module__ == module.__name__]
    return f"; it has {', '.join(names)}" if names else ""


def _is_kind(value: Any) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, Resource)
        and getattr(value, "kind_options", None) is not None
        and not value.kind_options.builtin
    )

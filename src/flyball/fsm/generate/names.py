"""How names of a diagram become names of Python."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias

__all__ = ["Kind", "clashes", "class_name", "default_name", "free_name", "package_problem", "snake_case", "test_name"]

Kind: TypeAlias = Literal["action", "guard"]

RESERVED: Mapping[Kind, frozenset[str]] = {
    "action": frozenset({"action", "annotations", *dir(builtins)}),
    "guard": frozenset({"guard", "annotations", *dir(builtins)}),
}
"""Names that mean something else in the user's file: its imports, and what Python itself brings."""

_CLASSES = frozenset({"Context", "ExtendedState", "State", "StrEnum", "None", "True", "False"})


def snake_case(name: str) -> str:
    """`IsHTTPError` becomes `is_http_error`."""
    text = unicodedata.normalize("NFKC", name)
    humps = "".join(f"_{char}" if _starts_word(text, place) else char for place, char in enumerate(text))
    snake = unicodedata.normalize("NFKC", "_".join(part for part in humps.split("_") if part).lower())
    return f"_{snake}" if not snake or snake[0].isdigit() else snake


def _starts_word(text: str, place: int) -> bool:
    if not place or not text[place].isupper():
        return False
    before, after = text[place - 1], text[place + 1 : place + 2]
    return before.islower() or before.isdigit() or (before.isupper() and after.islower())


def default_name(kind: Kind, name: str) -> str:
    """The function that a new stub of this action or guard gets."""
    snake = snake_case(name)
    return f"{snake}_" if keyword.iskeyword(snake) or snake in RESERVED[kind] else snake


def test_name(name: str) -> str:
    """The test function that a new stub of this action's or guard's test gets."""
    return f"test_{snake_case(name).lstrip('_')}"


test_name.__test__ = False  # type: ignore[attr-defined]  # pytest is not to collect it where it is imported


def class_name(title: str) -> str:
    """The machine's class; a trailing underscore where the title is a name of the generated module or a keyword."""
    return f"{title}_" if title in _CLASSES or keyword.iskeyword(title) else title


def clashes(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Pairs of names with one snake form: first, second, the form."""
    seen: dict[str, str] = {}
    found: list[tuple[str, str, str]] = []
    for name in names:
        snake = snake_case(name)
        if snake in seen:
            found.append((seen[snake], name, snake))
        else:
            seen[snake] = name
    return found


def free_name(wanted: str, taken: Collection[str]) -> str:
    """The name itself, or with the first number behind it that makes it free."""
    if wanted not in taken:
        return wanted
    number = 2
    while f"{wanted.rstrip('_')}_{number}" in taken:
        number += 1
    return f"{wanted.rstrip('_')}_{number}"


def package_problem(name: str) -> str | None:
    """Why a name cannot be the name of a package, or None."""
    if not name.isidentifier():
        return "it is no Python identifier"
    if keyword.iskeyword(name):
        return "it is a word of Python"
    return None

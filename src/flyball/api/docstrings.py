"""The docstrings under fields, which Python itself does not keep: read from the source file of the class.

A class without a source file (made in an interpreter or by `exec`) has no such texts; nothing else is lost.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from functools import cache
from itertools import pairwise
from typing import Any

from flyball.api.model import Model

__all__ = ["class_text", "field_texts"]


def class_text(cls: type[Any]) -> str | None:
    """The docstring of the class itself, not that of a base."""
    text = cls.__dict__.get("__doc__")
    return inspect.cleandoc(text) if isinstance(text, str) and text.strip() else None


def field_texts(cls: type[Any]) -> dict[str, str]:
    """Attribute -> the text under it, of the class and its bases."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if issubclass(owner, Model) and owner is not Model:
            found.update(_file_texts(_file_of(owner)).get(owner.__qualname__, {}))
    return found


def _file_of(cls: type[Any]) -> str | None:
    module = sys.modules.get(cls.__module__)
    return getattr(module, "__file__", None)


@cache
def _file_texts(file: str | None) -> dict[str, dict[str, str]]:
    """Qualified class name -> attribute -> text."""
    if file is None or not file.endswith(".py"):
        return {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # changed since it was imported
        return {}
    found: dict[str, dict[str, str]] = {}
    _collect(tree.body, "", found)
    return found


def _collect(body: list[ast.stmt], prefix: str, found: dict[str, dict[str, str]]) -> None:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            name = f"{prefix}{statement.name}"
            found[name] = _texts(statement.body)
            _collect(statement.body, f"{name}.", found)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _collect(statement.body, f"{prefix}{statement.name}.<locals>.", found)
        else:
            for part in ("body", "orelse", "finalbody"):
                _collect(getattr(statement, part, []), prefix, found)


def _texts(body: list[ast.stmt]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = _text(following)
            if text is not None:
                texts[statement.target.id] = text
    return texts


def _text(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return inspect.cleandoc(value) if isinstance(value, str) else None
    return None

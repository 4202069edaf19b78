"""Docstrings under fields, read from the source."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from flyball.api import Model, Spec, schema_of
from flyball.api.docstrings import class_text, field_texts

SOURCE = '''
from flyball.api import Model

class Base(Model):
    """Base."""
    a: int = 1
    """From the base."""
    b: int = 1
    """Replaced."""

if True:
    class Derived(Base):
        b: int = 2
        """
        Of the derived class.

            Indented.
        """
        c: int = 3
        # a comment is no docstring
        d: int = 4
        "d" + "e"
'''


def load(folder: Path, source: str) -> ModuleType:
    file = folder / "documented_here.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location("documented_here", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["documented_here"] = module
    spec.loader.exec_module(module)
    return module


def test_own_and_inherited_texts(tmp_path: Path) -> None:
    module = load(tmp_path, SOURCE)
    assert field_texts(module.Derived) == {"a": "From the base.", "b": "Of the derived class.\n\n    Indented."}
    assert class_text(module.Base) == "Base."
    assert class_text(module.Derived) is None


class Outer:
    class Inner(Model):
        """Nested."""

        a: int = 1
        """Inside."""


def test_nested_classes_and_classes_of_functions() -> None:
    class Local(Spec):
        a: int = 1
        """Local."""

    assert field_texts(Local) == {"a": "Local."}
    assert field_texts(Outer.Inner) == {"a": "Inside."}


def test_a_class_without_source_has_none() -> None:
    space: dict[str, Any] = {"__name__": "nowhere"}
    exec('from flyball.api import Model\nclass A(Model):\n    a: int = 1\n    """Lost."""\n', space)
    assert schema_of(space["A"])["properties"]["a"] == {"type": "integer", "format": "int64", "default": 1}

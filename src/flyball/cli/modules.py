"""Modules that people name on the command line: by name, or by file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from flyball.errors import FlyballError

__all__ = ["NotFoundHere", "module_of"]


class NotFoundHere(FlyballError):
    """What was named on the command line cannot be found, or is something else."""


def module_of(place: str) -> ModuleType:
    """Import a module by its name or its file; the current folder and its `src` are looked at first."""
    for folder in (Path.cwd() / "src", Path.cwd()):
        if folder.is_dir() and str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        return _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise NotFoundHere(f"{place}: no such module, here or installed; name a module or a .py file") from None
        raise NotFoundHere(f"{place}: it cannot be imported: {error}; install what it needs") from error
    except FlyballError:
        raise
    except Exception as error:
        raise NotFoundHere(f"{place}: it cannot be imported: {type(error).__name__}: {error}") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFoundHere(f"{path}: no such file; name a Python file or an importable module")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem if path.stem not in sys.modules else f"flyball_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NotFoundHere(f"{path}: Python cannot load it; name a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

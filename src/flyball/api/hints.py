"""The resolved type hints of models: with `Annotated` kept, looked up once per class."""

from __future__ import annotations

import inspect
import sys
import types
import typing
import weakref
from typing import Annotated, Any

import msgspec

from flyball.api.model import Model

__all__ = ["hints_of", "plain_type"]

_known: weakref.WeakKeyDictionary[type[Any], dict[str, Any]] = weakref.WeakKeyDictionary()


def hints_of(cls: type[Any]) -> dict[str, Any]:
    """Attribute -> type, of all fields of a model; raises NameError for a name that does not exist (yet)."""
    known = _known.get(cls)
    if known is None:
        known = {}
        for owner in reversed(cls.__mro__):
            if issubclass(owner, Model) and owner is not Model:
                known.update(_own_hints(owner))
        known = {name: known[name] for name in cls.__struct_fields__ if name in known}
        _known[cls] = known
    return known


def _own_hints(cls: type[Any]) -> dict[str, Any]:
    module = sys.modules.get(cls.__module__)
    own = {
        name: annotation for name, annotation in inspect.get_annotations(cls).items() if name in cls.__struct_fields__
    }
    holder = type(cls.__name__, (), {"__annotations__": own, "__module__": cls.__module__})
    return typing.get_type_hints(holder, vars(module) if module else {}, {cls.__name__: cls}, include_extras=True)


def plain_type(hint: Any) -> Any:
    """Without `Annotated` and `| None`; a union of several types stays."""
    if typing.get_origin(hint) is Annotated:
        return plain_type(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member not in (type(None), msgspec.UnsetType)]
        if len(members) == 1:
            return plain_type(members[0])
    return hint

"""Flyball: write Kubernetes operators in Python.

This is the front door: what the author of an operator imports, and nothing else. The rooms behind it are `flyball.api`
(what objects are), `flyball.k8s` (the built-in kinds), `flyball.client` and `flyball.sync` (how they are reached),
`flyball.errors`, `flyball.cache` (how they are watched), `flyball.controller` (how they are reconciled),
`flyball.manager` (how one process runs it all), `flyball.fsm` (machines from diagrams) and `flyball.testing`.

What an operator needs to run is imported when it is first used, so that a program which only describes kinds is quick.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flyball.api import (
    REQUIRED,
    UNSET,
    AtLeastOneOf,
    AtMostOneOf,
    Condition,
    Default,
    Description,
    DescriptionLimit,
    Discriminator,
    Duration,
    DynamicObject,
    EmbeddedResource,
    Enum,
    ExactlyOneOf,
    Example,
    Format,
    Ge,
    Gt,
    Immutable,
    Int32,
    Int64,
    IntOrString,
    Le,
    ListMapKeys,
    ListType,
    Lt,
    MapType,
    MaxItems,
    MaxLength,
    MaxProperties,
    MicroTime,
    MinItems,
    MinLength,
    MinProperties,
    Model,
    MultipleOf,
    NotRequired,
    Nullable,
    ObjectMeta,
    OwnerReference,
    PartialObjectMetadata,
    Pattern,
    PreserveUnknown,
    PrintColumn,
    Quantity,
    Resource,
    ResourceType,
    Rule,
    Scale,
    Schema,
    SchemaError,
    SelectableField,
    SetOnce,
    Spec,
    Status,
    StructType,
    Title,
    UniqueItems,
    UnsetType,
    crd_of,
    field,
    find_condition,
    is_false,
    is_true,
    schema_of,
    set_condition,
)
from flyball.strict import StrictWarning

if TYPE_CHECKING:
    from flyball.controller import predicates
    from flyball.controller.context import Context
    from flyball.controller.definition import Controller, controller
    from flyball.controller.naming import child_name
    from flyball.controller.reconciler import Reconciler
    from flyball.controller.request import Done, Request, Result
    from flyball.controller.sources import Channel, Owns, Watches
    from flyball.errors import RetryAfter, TerminalError
    from flyball.manager.election import Election
    from flyball.manager.manager import Manager
    from flyball.manager.permissions import rbac
    from flyball.manager.process import run

__version__ = "0.1.0.dev0"

__all__ = [
    "REQUIRED",
    "UNSET",
    "AtLeastOneOf",
    "AtMostOneOf",
    "Channel",
    "Condition",
    "Context",
    "Controller",
    "Default",
    "Description",
    "DescriptionLimit",
    "Discriminator",
    "Done",
    "Duration",
    "DynamicObject",
    "Election",
    "EmbeddedResource",
    "Enum",
    "ExactlyOneOf",
    "Example",
    "Format",
    "Ge",
    "Gt",
    "Immutable",
    "Int32",
    "Int64",
    "IntOrString",
    "Le",
    "ListMapKeys",
    "ListType",
    "Lt",
    "Manager",
    "MapType",
    "MaxItems",
    "MaxLength",
    "MaxProperties",
    "MicroTime",
    "MinItems",
    "MinLength",
    "MinProperties",
    "Model",
    "MultipleOf",
    "NotRequired",
    "Nullable",
    "ObjectMeta",
    "OwnerReference",
    "Owns",
    "PartialObjectMetadata",
    "Pattern",
    "PreserveUnknown",
    "PrintColumn",
    "Quantity",
    "Reconciler",
    "Request",
    "Resource",
    "ResourceType",
    "Result",
    "RetryAfter",
    "Rule",
    "Scale",
    "Schema",
    "SchemaError",
    "SelectableField",
    "SetOnce",
    "Spec",
    "Status",
    "StrictWarning",
    "StructType",
    "TerminalError",
    "Title",
    "UniqueItems",
    "UnsetType",
    "Watches",
    "__version__",
    "child_name",
    "controller",
    "crd_of",
    "field",
    "find_condition",
    "is_false",
    "is_true",
    "predicates",
    "rbac",
    "run",
    "schema_of",
    "set_condition",
]

_LATER = {
    "Channel": "flyball.controller.sources",
    "Context": "flyball.controller.context",
    "Controller": "flyball.controller.definition",
    "Done": "flyball.controller.request",
    "Election": "flyball.manager.election",
    "Manager": "flyball.manager.manager",
    "Owns": "flyball.controller.sources",
    "Reconciler": "flyball.controller.reconciler",
    "Request": "flyball.controller.request",
    "Result": "flyball.controller.request",
    "RetryAfter": "flyball.errors",
    "TerminalError": "flyball.errors",
    "Watches": "flyball.controller.sources",
    "child_name": "flyball.controller.naming",
    "controller": "flyball.controller.definition",
    "predicates": "flyball.controller",
    "rbac": "flyball.manager.permissions",
    "run": "flyball.manager.process",
}


def __getattr__(name: str) -> Any:
    """Import what an operator needs to run when it is first asked for."""
    import importlib

    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(place), name)
    if name != "controller":
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


class _FrontDoor(ModuleType):
    """`flyball.controller` is the room of that name, and called it is the decorator: in whichever order both come."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "controller" and isinstance(value, ModuleType):
            value.__class__ = _ControllerRoom
        super().__setattr__(name, value)


class _ControllerRoom(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        """Make a controller; see `flyball.controller.definition.controller`."""
        from flyball.controller.definition import controller as decorator

        return decorator(*args, **options)


sys.modules[__name__].__class__ = _FrontDoor

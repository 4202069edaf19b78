"""The base of everything that has fields: what a class says becomes what is read, sent and promised.

A `Model` is a msgspec Struct with the rules of this house:

- Attributes are snake_case, JSON is camelCase (`flyball.api.naming`).
- **What is None is not sent, what has a value is**, also where the value equals the default: `size: int = 1` is sent as
  `1`. Only an empty list or map whose default is empty is left out.
- A field without a default is required in the schema and for the type checker, yet an object without it can be made and
  read: the attribute is then `UNSET` and is not sent. Partial objects are what apply and patches consist of.
- A default that can be changed (a list, a map, another model) is copied for each object.
- Models hold no reference cycles, so the collector does not track them (`gc=False`).
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import msgspec
from msgspec import UNSET, UnsetType, field

from flyball.api.naming import json_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flyball.api.markers import ModelMarker

__all__ = ["REQUIRED", "UNSET", "Model", "ModelMeta", "UnsetType", "field", "json_names"]

REQUIRED: Any = UNSET
"""The default of a field that a complete object must have: `name: str = REQUIRED`. Not sent until it is set."""

_STRUCT_OPTIONS = frozenset(
    [
        "tag",
        "tag_field",
        "rename",
        "omit_defaults",
        "forbid_unknown_fields",
        "frozen",
        "eq",
        "order",
        "kw_only",
        "repr_omit_defaults",
        "array_like",
        "gc",
        "weakref",
        "dict",
        "cache_hash",
    ]
)
_IMMUTABLE = (str, int, float, bytes, bool)


def _own_annotations(namespace: dict[str, Any]) -> dict[str, Any]:
    """The annotations of a class body, as a dict that stays in the namespace; local names are looked up right away."""
    if "__annotations__" not in namespace and sys.version_info >= (3, 14):
        import annotationlib  # pyright: ignore[reportMissingImports] # new in 3.14

        annotate: Any = annotationlib.get_annotate_from_class_namespace(namespace)  # pyright: ignore
        found: dict[str, Any] = (
            annotationlib.call_annotate_function(annotate, annotationlib.Format.FORWARDREF)  # pyright: ignore
            if annotate
            else {}
        )
        namespace["__annotations__"] = dict(found)  # pyright: ignore
    annotations: dict[str, Any] = namespace.setdefault("__annotations__", {})
    if "<locals>" in namespace.get("__qualname__", ""):
        _resolve_locals(annotations, namespace)
    return annotations


def _resolve_locals(annotations: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Look up a function's local classes now; nobody can do so once the function has returned."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") != namespace.get("__module__"):
        frame = frame.f_back
    if frame is None:
        return
    for name, annotation in annotations.items():
        if isinstance(annotation, str):
            try:
                annotations[name] = eval(annotation, frame.f_globals, dict(frame.f_locals))  # noqa: S307 - own source
            except NameError:
                continue  # a later or recursive name: reported with its path when the schema is made


def _is_class_var(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar", "t.ClassVar"))
    return annotation is ClassVar or getattr(annotation, "__origin__", None) is ClassVar


def _set_default(namespace: dict[str, Any], attribute: str, plain: bool) -> None:
    """Put msgspec's form of the default into the namespace."""
    value = namespace.get(attribute, msgspec.NODEFAULT)
    name: str | None = None
    if type(value) is _FIELD:
        if value.default_factory is not msgspec.NODEFAULT:
            return
        name, value = value.name, value.default
    if value is msgspec.NODEFAULT:
        value = UNSET
    if value is None or value is UNSET or (plain and isinstance(value, _IMMUTABLE)):
        namespace[attribute] = field(default=value, name=name)
    else:
        namespace[attribute] = field(default_factory=_factory(value), name=name)


_FIELD = type(field())


def _factory(value: Any) -> Callable[[], Any]:
    if value in ([], {}) and isinstance(value, (list, dict)):
        return type(value)  # pyright: ignore[reportUnknownVariableType] # msgspec leaves these out while they are empty
    if isinstance(value, (list, dict, set, msgspec.Struct)):
        return partial(copy.deepcopy, value)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    return repeat(value).__next__


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class ModelMeta(msgspec.StructMeta):
    """Makes the fields of a class body follow the rules above, then lets the class read its own options."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        struct = {key: options.pop(key) for key in list(options) if key in _STRUCT_OPTIONS}
        struct.setdefault("kw_only", True)
        plain = options.pop("plain_defaults", False)
        annotations = _own_annotations(namespace)
        for base in bases:
            prepare = getattr(base, "_prepare", None)
            if prepare is not None:
                prepare(name, annotations, namespace, options)
                break
        for attribute, annotation in annotations.items():
            if not _is_class_var(annotation):
                _set_default(namespace, attribute, plain)
        cls = super().__new__(mcls, name, bases, namespace, **struct)
        configure = getattr(cls, "_configure", None)
        if configure is not None:
            configure(options)
        return cls

    def __init__(cls, *args: Any, **options: Any) -> None:
        super().__init__(*args)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Model(msgspec.Struct, metaclass=ModelMeta, omit_defaults=True, gc=False, rename=json_name):
    """A group of fields inside an object. Derive from it for nested parts; see the module for the rules.

    Class options: `rules` (what must hold for the whole group: `Rule`, `ExactlyOneOf`, `Immutable`, ...),
    `preserve_unknown=True` (a server keeps fields of the group that the class does not name), and
    `plain_defaults=True` (a value equal to the default is not sent, as Go's omitempty).
    """

    model_rules: ClassVar[tuple[Any, ...]] = ()
    model_keeps_unknown: ClassVar[bool] = False

    if TYPE_CHECKING:

        def __init_subclass__(
            cls,
            *,
            rules: Iterable[ModelMarker | type[ModelMarker]] = (),
            preserve_unknown: bool = False,
            plain_defaults: bool = False,
            **options: Any,
        ) -> None: ...

    @classmethod
    def _configure(cls, options: dict[str, Any]) -> None:
        if "rules" in options:
            inherited = tuple(rule for base in cls.__mro__[1:] for rule in base.__dict__.get("model_rules", ()))
            cls.model_rules = (*inherited, *options.pop("rules"))
        cls.model_keeps_unknown = bool(options.pop("preserve_unknown", cls.model_keeps_unknown))
        if options:
            known = "rules, preserve_unknown, plain_defaults"
            raise TypeError(f"class {cls.__name__}: unknown option {', '.join(map(repr, options))}; known are: {known}")

    def __repr__(self) -> str:
        """Only what is set, as one would write it."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in _set_fields(self))})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for rich."""
        return _set_fields(self)


def _set_fields(model: Model) -> list[tuple[str, Any]]:
    pairs = ((name, getattr(model, name)) for name in model.__struct_fields__)
    return [
        (name, value) for name, value in pairs if value is not None and value is not UNSET and value not in ([], {}, "")
    ]


def json_names(cls: type[Model]) -> dict[str, str]:
    """Attribute -> JSON key, in order of the fields."""
    return dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))


def defaults_of(cls: type[Model]) -> Mapping[str, Any]:
    """Attribute -> a fresh default value (`UNSET` where there is none)."""
    return {
        name: default.factory() if hasattr(default, "factory") else default
        for name, default in zip(cls.__struct_fields__, cls.__struct_defaults__, strict=True)
    }

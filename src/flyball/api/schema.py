"""The structural schema of a class: what the API server is told about the fields.

A field is *required* if its class gives no default. A default other than None is filled in by the server, too, except
in a `Status`, which nobody but the controller writes. `spec` needs not be written if all that is in it has defaults.
Fields of the built-in kinds never have defaults. Metadata inside an object (a pod template's) names its fields,
because a server prunes what is not named.
"""

from __future__ import annotations

import inspect
import types
import typing
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from flyball.api.codec import to_dict
from flyball.api.conditions import Status
from flyball.api.docstrings import class_text, field_texts
from flyball.api.hints import hints_of
from flyball.api.markers import (
    Default,
    Description,
    DescriptionLimit,
    EmbeddedResource,
    Immutable,
    Marker,
    NotRequired,
    PreserveUnknown,
    PrintColumn,
    Rule,
    Schema,
    SelectableField,
    SetOnce,
    cel_name,
)
from flyball.api.metadata import ObjectMeta
from flyball.api.model import UNSET, Model, defaults_of, json_names
from flyball.api.refusal import SchemaError
from flyball.api.resource import Resource
from flyball.api.schema_checks import check_default, check_fits, check_list
from flyball.api.shapes import Shape, scalar_schema, shape_of

__all__ = ["Builder", "schema_of"]

Json = dict[str, Any]


def schema_of(cls: type[Model]) -> Json:
    """The structural OpenAPI v3 schema of a model or a kind; raises `SchemaError` for what cannot be one."""
    return Builder().root(cls)


@dataclass(frozen=True)
class _Place:
    """Where in the object the builder is."""

    path: str
    """For messages: `Shell.spec.boxes[].size`."""
    json: str | None
    """For columns: `.spec.size`; None below a list or map, where no column can look."""
    classes: tuple[type[Model], ...] = ()
    defaults: bool = True
    limit: int | None = None
    optional: frozenset[str] = frozenset()
    """Attribute paths below this place that are not required though their class says so."""

    def field(self, attribute: str, key: str) -> _Place:
        below = (path.partition(".")[2] for path in self.optional if path.partition(".")[0] == attribute)
        return replace(
            self,
            path=f"{self.path}.{attribute}",
            json=None if self.json is None else f"{self.json}.{key}",
            optional=frozenset(path for path in below if path),
        )

    def inside(self, brackets: str) -> _Place:
        return replace(self, path=f"{self.path}{brackets}", json=None)


class Builder:
    """Makes one schema, and notes the columns and selectable fields that it passes on the way.

    `whole=False` does not look into built-in kinds: enough to check a class when it is made.
    """

    def __init__(self, *, whole: bool = True, limit: int | None = None) -> None:
        """`limit` is that of descriptions."""
        self.whole = whole
        self.limit = limit
        self.columns: list[PrintColumn] = []
        self.selectable: list[str] = []

    def root(self, cls: type[Model]) -> Json:
        """The schema of the class."""
        place = _Place(cls.__name__, "", limit=self.limit)
        if issubclass(cls, Resource):
            return self._kind(cls, place)
        return _described(class_text(cls), place, self._model(cls, place))

    def _kind(self, cls: type[Resource], place: _Place) -> Json:
        schema = _described(class_text(cls), place, self._model(cls, place))
        properties = schema["properties"]
        for key in ("apiVersion", "kind"):
            properties[key] = {"type": "string"}
        spec = properties.get("spec")
        if spec is not None and "default" not in spec and getattr(defaults_of(cls).get("spec"), "__class__", None):
            if spec.get("required") or spec.get("minProperties") or spec.get("x-kubernetes-validations"):
                schema["required"] = ["spec", *schema.get("required", [])]
            elif spec.get("type") == "object":
                spec["default"] = {}
        return schema

    def _model(self, cls: type[Model], place: _Place) -> Json:
        if cls in place.classes:
            raise SchemaError(
                place.path,
                f"{cls.__name__} contains itself, and a schema cannot",
                "use Annotated[dict[str, Any], PreserveUnknown] where it comes round, or a list of names",
            )
        if not self.whole and _is_builtin(cls):
            return {"type": "object"}
        inner = replace(
            place,
            classes=(*place.classes, cls),
            defaults=place.defaults and not _is_builtin(cls) and not issubclass(cls, Status),
        )
        return self._fields(cls, inner)

    def _fields(self, cls: type[Model], place: _Place) -> Json:
        texts, defaults, hints = field_texts(cls), defaults_of(cls), hints_of(cls)
        schema: Json = {"type": "object", "properties": {}}
        required: list[str] = []
        rules: list[Rule] = [rule for marker in cls.model_rules for rule in _rules_of(marker)]
        for attribute, key in json_names(cls).items():
            at = place.field(attribute, key)
            shape = shape_of(hints[attribute], at.path)
            default = defaults[attribute]
            needed = default is UNSET and not shape.unset
            if needed and attribute not in place.optional:
                required.append(key)
            text = texts.get(attribute)
            made = self._field(shape, at, text, root_metadata=issubclass(cls, Resource) and len(place.classes) == 1)
            if needed and shape.null:
                made["nullable"] = True
            _add_default(made, shape, default, at)
            rules += _parent_rules(shape, key, always_there=needed or "default" in made)
            schema["properties"][key] = made
        if required:
            schema["required"] = required
        if cls.model_keeps_unknown:
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if rules:
            schema["x-kubernetes-validations"] = [rule.as_json() for rule in rules]
        return schema

    def _field(self, shape: Shape, place: _Place, text: str | None = None, *, root_metadata: bool = False) -> Json:
        """The schema of one value: its type, then what the markers say."""
        for marker in shape.markers:
            if isinstance(marker, DescriptionLimit):
                place = replace(place, limit=marker.limit)
            elif isinstance(marker, NotRequired):
                self._check_paths(shape, marker, place)
                place = replace(place, optional=place.optional | set(marker.paths))
        replaced = [marker for marker in shape.markers if isinstance(marker, Schema) and marker.replace]
        if replaced:
            schema: Json = {}
        elif shape.bare is ObjectMeta:
            embedded = any(isinstance(marker, EmbeddedResource) for marker in shape.markers)
            schema = {"type": "object"} if root_metadata or embedded else _embedded_metadata()
        else:
            schema = self._type(shape, place)
        if text is None and isinstance(shape.bare, type) and issubclass(shape.bare, Model):
            text = None if _is_builtin(shape.bare) else class_text(shape.bare)
        for marker in shape.markers:
            self._mark(schema, marker, place)
            if isinstance(marker, Description):
                text = marker.text
        check_list(schema, place.path)
        return _described(text, place, schema)

    def _type(self, shape: Shape, place: _Place) -> Json:
        bare, origin, args = shape.bare, typing.get_origin(shape.bare), typing.get_args(shape.bare)
        scalar = scalar_schema(shape, place.path)
        if scalar is not None:
            return scalar
        if _keeps_unknown(shape) and (bare in (Any, dict, msgspec.Raw) or (origin is dict and args == (str, Any))):
            opaque = bare in (Any, msgspec.Raw) and not _is_embedded(shape)
            return {} if opaque else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        if isinstance(bare, type) and origin is None and issubclass(bare, Model):
            return self._model(bare, place)
        if origin is list:
            return {"type": "array", "items": self._part(args[0], place.inside("[]"))}
        if origin is dict and args[0] is str:
            return {"type": "object", "additionalProperties": self._part(args[1], place.inside("{}"))}
        raise SchemaError(place.path, *_why_not(bare))

    def _part(self, hint: Any, place: _Place) -> Json:
        """An item of a list or map."""
        shape = shape_of(hint, place.path)
        made = self._field(shape, place)
        if shape.null:
            made["nullable"] = True
        return made

    def _mark(self, schema: Json, marker: Marker, place: _Place) -> None:
        check_fits(schema, marker, place.path)
        schema.update(marker.keywords())
        if isinstance(marker, Schema):
            schema.update(marker.raw)
        elif isinstance(marker, (Rule, Immutable, SetOnce)):
            for rule in _rules_of(marker):
                schema.setdefault("x-kubernetes-validations", []).append(rule.as_json())
        elif isinstance(marker, (PrintColumn, SelectableField)):
            self._note(marker, place)

    def _note(self, marker: PrintColumn | SelectableField, place: _Place) -> None:
        what = type(marker).__name__
        if place.json is None:
            raise SchemaError(place.path, f"{what} cannot look into a list or a map", "put it at a field outside of it")
        if isinstance(marker, SelectableField):
            self.selectable.append(place.json)
            return
        name = marker.name or place.path.rpartition(".")[2].replace("_", " ").title()
        self.columns.append(msgspec.structs.replace(marker, name=name, path=marker.path or place.json))

    def _check_paths(self, shape: Shape, marker: NotRequired, place: _Place) -> None:
        for path in marker.paths:
            owner: Any = shape.bare
            for attribute in path.split("."):
                known = hints_of(owner) if isinstance(owner, type) and issubclass(owner, Model) else {}
                if attribute not in known:
                    raise SchemaError(
                        place.path, f"there is no field {path!r} below it", "write attribute names, dotted"
                    )
                owner = shape_of(known[attribute], place.path).bare


def _rules_of(marker: Any) -> list[Rule]:
    made = marker() if isinstance(marker, type) else marker
    if isinstance(made, SetOnce):
        return [Rule("self == oldSelf", message=made.message)]
    return list(made.rules())


def _parent_rules(shape: Shape, key: str, *, always_there: bool) -> list[Rule]:
    """A rule about changes is not run when a field comes or goes, so the group around it has to speak of that."""
    if always_there:
        return []
    rules: list[Rule] = []
    new, old = f"has(self.{cel_name(key)})", f"has(oldSelf.{cel_name(key)})"
    for marker in shape.markers:
        if isinstance(marker, Immutable):
            rules.append(Rule(f"{new} == {old}", message=f"{key}: {marker.message}"))
        elif isinstance(marker, SetOnce):
            rules.append(Rule(f"!{old} || {new}", message=f"{key}: {marker.message}"))
    return rules


def _add_default(schema: Json, shape: Shape, default: Any, place: _Place) -> None:
    given = [marker.value for marker in shape.markers if isinstance(marker, Default)]
    if given:
        schema["default"] = to_dict({"": given[-1]})[""]
    elif not place.defaults or default is None or default is UNSET or isinstance(default, ObjectMeta):
        return
    elif isinstance(default, Model) and len(place.classes) == 1 and issubclass(place.classes[0], Resource):
        return  # spec and status: the kind itself decides
    else:
        schema["default"] = to_dict({"": default})[""]
    check_default(schema, place.path)


def _described(text: str | None, place: _Place, schema: Json) -> Json:
    text = schema.pop("description", text) if text is None else text
    schema.pop("description", None)
    if text and place.limit is not None and len(text) > place.limit:
        text = f"{text[: place.limit - 3].rstrip()}..." if place.limit > 3 else ""
    return {"description": text, **schema} if text else schema


def _embedded_metadata() -> Json:
    def texts() -> Json:
        return {"type": "object", "additionalProperties": {"type": "string"}}

    return {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "labels": texts(),
            "annotations": texts(),
            "finalizers": {"type": "array", "items": {"type": "string"}},
        },
    }


def _is_builtin(cls: type[Any]) -> bool:
    return cls.__module__.startswith("flyball.k8s.") or cls.__module__ == ObjectMeta.__module__


def _keeps_unknown(shape: Shape) -> bool:
    return any(isinstance(marker, (PreserveUnknown, EmbeddedResource)) for marker in shape.markers)


def _is_embedded(shape: Shape) -> bool:
    return any(isinstance(marker, EmbeddedResource) for marker in shape.markers)


def _why_not(bare: Any) -> tuple[str, str]:
    """Cause and remedy for a type that has no structural schema."""
    origin, args = typing.get_origin(bare) or bare, typing.get_args(bare)
    name = getattr(bare, "__name__", str(bare)) if not args else str(bare).replace("typing.", "")
    opaque = "Annotated[dict[str, Any], PreserveUnknown]"
    if origin in (typing.Union, types.UnionType):
        words = ", ".join(getattr(arg, "__name__", str(arg)) for arg in args)
        remedy = "make a Model with one optional field for each and rules=[ExactlyOneOf(...)] or a Discriminator"
        return f"a value that is one of {words} has no structural schema", remedy
    if bare in (Any, object, msgspec.Raw):
        remedy = f"say that anything is kept: Annotated[{name}, PreserveUnknown], or name a type"
        return f"{name} says nothing about the value", remedy
    if origin in (set, frozenset):
        return f"JSON has no sets, so {name} cannot be stored", 'use Annotated[list[...], ListType("set")]'
    if origin is tuple:
        return f"{name} has no structural schema", "use list[...], or a Model with a name for each part"
    if origin is list:
        return "the items of the list have no type", "write list[str], or the type that the items have"
    if origin is dict:
        cause = "JSON has only texts as keys" if args else "the values of the map have no type"
        return cause, f"write dict[str, ...] with the type of the values, or {opaque}"
    if isinstance(bare, type) and (issubclass(bare, msgspec.Struct) or inspect.get_annotations(bare)):
        return f"{name} is not a Model", f"derive it: class {name}(Model)"
    return f"{name} has no structural schema", f"use a type that JSON has, a Model, or {opaque}"

"""A schema, compiled once and walked often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from flyball.api.structural.formats import checker

__all__ = ["ABSENT", "META_FIELDS", "Resolver", "Schema", "compile_schema"]

ABSENT: Final[Any] = object()
"""Stands for "no default"."""

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})

Resolver = Callable[[str], Mapping[str, Any]]
"""Finds the definition that a `$ref` names."""

_NUMBER_FORMATS: Final = {"integer": frozenset({"int32", "int64"}), "number": frozenset({"float", "double"})}


class Schema:
    """One node of a schema with everything that a walk asks for, as attributes.

    Nodes never change after they were compiled. The schema of a built-in kind may contain itself.
    """

    __slots__ = (
        "additional",
        "all_of",
        "any_of",
        "closed",
        "default",
        "embedded",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "format",
        "format_check",
        "int_or_string",
        "items",
        "list_type",
        "map_keys",
        "map_type",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "not_",
        "nullable",
        "one_of",
        "pattern",
        "preserve",
        "properties",
        "required",
        "rules",
        "source",
        "types",
        "unique_items",
    )

    def __init__(self, source: Mapping[str, Any]) -> None:
        """Take the values of a node; its children are added by `compile_schema`."""
        self.source = source
        type_ = source.get("type", "")
        self.int_or_string = bool(source.get("x-kubernetes-int-or-string")) or source.get("format") == "int-or-string"
        self.types: tuple[str, ...] = ("integer", "string") if self.int_or_string else (type_,) if type_ else ()
        self.nullable = bool(source.get("nullable"))
        self.default: Any = source.get("default", ABSENT)
        self.required: tuple[str, ...] = tuple(source.get("required") or ())
        self.enum: list[Any] = list(source.get("enum") or ())
        self.format: str = _checked_format(source, self.types)
        self.format_check = checker(self.format) if self.format else None
        self.embedded = bool(source.get("x-kubernetes-embedded-resource"))
        self.preserve = bool(source.get("x-kubernetes-preserve-unknown-fields"))
        self.list_type: str | None = source.get("x-kubernetes-list-type")
        self.map_keys: tuple[str, ...] = tuple(source.get("x-kubernetes-list-map-keys") or ())
        self.map_type: str | None = source.get("x-kubernetes-map-type")
        self.rules: list[Mapping[str, Any]] = list(source.get("x-kubernetes-validations") or ())
        self.minimum: float | None = source.get("minimum")
        self.maximum: float | None = source.get("maximum")
        self.exclusive_minimum = bool(source.get("exclusiveMinimum"))
        self.exclusive_maximum = bool(source.get("exclusiveMaximum"))
        self.multiple_of: float | None = source.get("multipleOf")
        self.min_length: int | None = source.get("minLength")
        self.max_length: int | None = source.get("maxLength")
        self.pattern: str = source.get("pattern") or ""
        self.min_items: int | None = source.get("minItems")
        self.max_items: int | None = source.get("maxItems")
        self.unique_items = bool(source.get("uniqueItems"))
        self.min_properties: int | None = source.get("minProperties")
        self.max_properties: int | None = source.get("maxProperties")
        self.closed = source.get("additionalProperties") is False
        self.properties: dict[str, Schema] = {}
        self.additional: Schema | None = None
        self.items: Schema | None = None
        self.any_of: tuple[Schema, ...] = ()
        self.one_of: tuple[Schema, ...] = ()
        self.all_of: tuple[Schema, ...] = ()
        self.not_: Schema | None = None

    def child(self, field: str) -> Schema | None:
        """Return the schema of a field of an object, or None when the schema says nothing of it."""
        return self.properties.get(field) or self.additional

    def __repr__(self) -> str:
        """Name the node by its type and fields."""
        fields = ", ".join(self.properties)
        return f"<Schema {'/'.join(self.types) or 'any'}{f' of {fields}' if fields else ''}>"


def compile_schema(source: Mapping[str, Any], *, resolve: Resolver | None = None) -> Schema:
    """Compile an OpenAPI v3 schema.

    With `resolve`, the schema is one of a built-in kind: references are followed (each is compiled once), and an object
    of which nothing is said keeps all its fields. Without it, a reference is an error, as in a structural schema.
    """
    return _Compiler(resolve).compile(source)


class _Compiler:
    def __init__(self, resolve: Resolver | None) -> None:
        self._resolve = resolve
        self._known: dict[str, Schema] = {}

    def compile(self, source: Mapping[str, Any]) -> Schema:
        name, extra = _reference(source)
        if name is None:
            node = Schema(source)
            self._fill(node, source)
            return node
        if self._resolve is None:
            raise ValueError(f"a structural schema has no references: {name}")
        if extra:
            return self._overlaid(name, extra)
        return self._referred(name)

    def _referred(self, name: str) -> Schema:
        node = self._known.get(name)
        if node is None:
            assert self._resolve is not None
            definition = self._resolve(name)
            inner, _ = _reference(definition)
            if inner is not None:
                node = self._known[name] = self._referred(inner)
                return node
            node = self._known[name] = Schema(definition)
            self._fill(node, definition)
        return node

    def _overlaid(self, name: str, extra: Mapping[str, Any]) -> Schema:
        """Compile a reference that adds something of its own, such as a default or a list type."""
        base = self._referred(name)
        node = Schema({**base.source, **extra})
        for attribute in ("properties", "additional", "items", "any_of", "one_of", "all_of", "not_"):
            setattr(node, attribute, getattr(base, attribute))
        node.preserve = node.preserve or base.preserve
        return node

    def _fill(self, node: Schema, source: Mapping[str, Any]) -> None:
        properties: Mapping[str, Any] = source.get("properties") or {}
        for field, schema in properties.items():
            node.properties[field] = self.compile(schema)
        additional = source.get("additionalProperties")
        if isinstance(additional, Mapping):
            node.additional = self.compile(additional)
        elif additional is True:
            node.additional = Schema({"x-kubernetes-preserve-unknown-fields": True})
        items = source.get("items")
        if isinstance(items, Mapping):
            node.items = self.compile(items)
        node.any_of = tuple(map(self.compile, source.get("anyOf") or ()))
        node.one_of = tuple(map(self.compile, source.get("oneOf") or ()))
        node.all_of = tuple(map(self.compile, source.get("allOf") or ()))
        if source.get("not") is not None:
            node.not_ = self.compile(source["not"])
        if self._resolve is not None and not (node.properties or node.additional or node.items or node.closed):
            node.preserve = node.preserve or node.types in ((), ("object",))


def _reference(source: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """Return what a schema refers to (directly or as `allOf` of one, as the published documents do) and the rest."""
    if "$ref" in source:
        return str(source["$ref"]).rpartition("/")[2], {}
    parts = source.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and "$ref" in parts[0]:
        return str(parts[0]["$ref"]).rpartition("/")[2], {
            key: value for key, value in source.items() if key not in ("allOf", "description")
        }
    return None, {}


def _checked_format(source: Mapping[str, Any], types: tuple[str, ...]) -> str:
    """Return the format if it is one that counts for the type; others are ignored."""
    format_: str = source.get("format") or ""
    if not format_ or format_ == "int-or-string":
        return ""
    type_ = types[0] if len(types) == 1 else ""
    if type_ in _NUMBER_FORMATS:
        return format_ if format_ in _NUMBER_FORMATS[type_] else ""
    if type_ in ("", "string"):
        return format_ if checker(format_) is not None else ""
    return ""

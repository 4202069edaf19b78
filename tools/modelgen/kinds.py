"""What each schema becomes: a kind, a list of a kind, a plain model, or a Python type that exists already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from .names import attribute, folder

Json = dict[str, Any]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

API_MODELS: Final = ("Condition", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference")
"""Types of meta/v1 that `flyball.api` has by hand."""

RENAMED: Final = {"io.k8s.apimachinery.pkg.version.Info": (META, "VersionInfo")}
"""Types that move into another module, with their name there."""

KNOWN: Final[dict[str, tuple[str, str, str]]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("QuantityLike", "flyball.api.values", "QuantityLike"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("IntOrString", "flyball.api.values", "IntOrString"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ("Any", "typing", "Any"),
    META + "Time": ("datetime", "datetime", "datetime"),
    META + "MicroTime": ("MicroTime", "flyball.api.values", "MicroTime"),
    META + "FieldsV1": ("Raw", "msgspec", "Raw"),
    META + "Patch": ("Any", "typing", "Any"),
    EXTENSIONS + "JSON": ("Any", "typing", "Any"),
    EXTENSIONS + "JSONSchemaPropsOrArray": ("JSONSchemaProps | list[JSONSchemaProps]", "", ""),
    EXTENSIONS + "JSONSchemaPropsOrBool": ("JSONSchemaProps | bool", "", ""),
    EXTENSIONS + "JSONSchemaPropsOrStringArray": ("JSONSchemaProps | list[str]", "", ""),
    EXTENSIONS + "CustomResourceSubresourceStatus": ("dict[str, Any]", "typing", "Any"),
}
"""Schemas that have a Python type already: the expression, and what to import for it."""

SCALARS: Final = {
    ("string", None): "str",
    ("string", "byte"): "bytes",
    ("integer", "int32"): "int",
    ("integer", "int64"): "int",
    ("number", "double"): "int | float",
    ("boolean", None): "bool",
    ("object", None): "dict[str, Any]",
}
BUILTINS: Final = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str"})

Imports = set[tuple[str, str]]
"""Pairs of module and name."""


class KindError(Exception):
    """A schema that the rules of this generator do not cover."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A field of a model."""

    name: str
    json_name: str
    annotation: str
    required: bool
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Type:
    """A class to be written."""

    name: str
    schema: str
    module: str
    attributes: tuple[Attribute, ...]
    imports: frozenset[tuple[str, str]]
    api_version: str = ""
    kind: str = ""
    group: str = ""
    version: str = ""
    resource: Json | None = None
    is_list: bool = False
    is_object: bool = False


@dataclass(slots=True)
class Module:
    """A module to be written: `path` is relative to `flyball.k8s`, as in `core.v1`."""

    path: str
    title: str
    types: list[Type] = field(default_factory=list[Type])


def modules(facts: Json) -> list[Module]:
    """The modules that the facts make up, in the order of their paths."""
    places = _places(facts)
    found: dict[str, Module] = {}
    for schema_name, (path, class_name) in sorted(places.items(), key=lambda place: place[1]):
        module = found.setdefault(path, Module(path, _title(path, facts)))
        module.types.append(_type(schema_name, path, class_name, places, facts))
    return [found[path] for path in sorted(found)]


def _title(path: str, facts: Json) -> str:
    first, _, version = path.partition(".")
    groups: list[str] = [group["group"] for group in facts["groups"]]
    group = next((each for each in groups if folder(each) == first), f"{first}.k8s.io" if first == "meta" else first)
    return f"{group or 'core'}/{version}"


def _places(facts: Json) -> dict[str, tuple[str, str]]:
    """Schema name -> (module path, class name), for what becomes a class."""
    schemas: Json = facts["schemas"]
    folders = {"meta": "meta"}
    for name, schema in schemas.items():
        package = _package(name)
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            if not name.startswith(META):
                folders[package] = folder(kind["group"])
    places: dict[str, tuple[str, str]] = {}
    for name in schemas:
        if name in KNOWN or (name.startswith(META) and name.removeprefix(META) in API_MODELS):
            continue
        prefix, class_name = RENAMED.get(name, (name, name.rpartition(".")[2]))
        version = prefix.split(".")[-2]
        places[name] = (f"{folders[_package(prefix)]}.{version}", class_name)
    return places


def _package(name: str) -> str:
    """`io.k8s.api.core.v1.Pod` -> `core`."""
    return name.split(".")[-3]


def _type(name: str, path: str, class_name: str, places: dict[str, tuple[str, str]], facts: Json) -> Type:
    schema: Json = facts["schemas"][name]
    kinds: list[Json] = schema.get("x-kubernetes-group-version-kind", [])
    kind = next((each for each in kinds if not each["group"] or not name.startswith(META)), None)
    reader = _Reader(path, places, schema.get("properties", {}))
    if kind is None or "kind" not in schema["properties"]:
        return Type(class_name, name, path, tuple(reader.attributes(schema)), frozenset(reader.imports))
    metadata = schema["properties"].get("metadata", {})
    is_object = bool(metadata) and _reference(metadata) == META + "ObjectMeta"
    skipped = ("apiVersion", "kind", "metadata") if is_object else ("apiVersion", "kind")
    return Type(
        class_name,
        name,
        path,
        tuple(reader.attributes(schema, skipped)),
        frozenset(reader.imports),
        api_version=f"{kind['group']}/{kind['version']}".lstrip("/"),
        kind=kind["kind"],
        group=kind["group"],
        version=kind["version"],
        resource=_resource(kind, facts),
        is_list=bool(metadata) and _reference(metadata) == META + "ListMeta" and "items" in schema["properties"],
        is_object=is_object,
    )


def _resource(kind: Json, facts: Json) -> Json | None:
    for group in facts["groups"]:
        for version in group["versions"]:
            if (group["group"], version["version"]) == (kind["group"], kind["version"]):
                found: Iterable[Json] = (each for each in version["resources"] if each["kind"] == kind["kind"])
                return next(iter(found), None)
    return None


def _reference(schema: Json) -> str | None:
    """The name of the schema that this one only points to."""
    inner: list[Json] = schema.get("allOf", [schema])
    target = cast("str | None", inner[0].get("$ref")) if len(inner) == 1 else None
    return target and target.rpartition("/")[2]


class _Reader:
    """Reads the properties of one schema and gathers what their annotations need."""

    def __init__(self, path: str, places: dict[str, tuple[str, str]], properties: Json) -> None:
        self.path = path
        self.places = places
        self.imports: Imports = set()
        self.hidden = BUILTINS & {attribute(name) for name in properties}

    def attributes(self, schema: Json, skipped: tuple[str, ...] = ()) -> Iterator[Attribute]:
        required = schema.get("required", [])
        for name, inner in schema.get("properties", {}).items():
            if name not in skipped:
                annotation = self.annotation(inner)
                yield Attribute(attribute(name), name, annotation, name in required, tuple(_values(inner)))

    def annotation(self, schema: Json) -> str:
        reference = _reference(schema)
        if reference in KNOWN:
            expression, module, name = KNOWN[reference]
            if module:
                self.imports.add((module, name))
            return expression
        if reference is not None:
            return self.model(reference)
        if schema.get("type") == "array":
            return f"{self.builtin('list')}[{self.annotation(schema['items'])}]"
        if isinstance(schema.get("additionalProperties"), dict):
            inner = self.annotation(schema["additionalProperties"])
            return f"{self.builtin('dict')}[{self.builtin('str')}, {inner}]"
        return self.scalar(schema)

    def scalar(self, schema: Json) -> str:
        expression = SCALARS.get((schema.get("type", ""), schema.get("format")))
        if expression is None:
            raise KindError(f"{self.path}: no Python type for {schema}; add a rule to tools/modelgen/kinds.py")
        if "Any" in expression:
            self.imports.add(("typing", "Any"))
        return self.builtin(expression)

    def builtin(self, name: str) -> str:
        """The name, reached through its module where an attribute of the same class hides it."""
        if name not in self.hidden:
            return name
        self.imports.add(("", "builtins"))
        return f"builtins.{name}"

    def model(self, reference: str) -> str:
        short = reference.removeprefix(META)
        if short in API_MODELS:
            self.imports.add(("flyball.api.metadata", short))
            return short
        path, class_name = self.places[reference]
        if path != self.path:
            self.imports.add((f"flyball.k8s.{path}", class_name))
        return class_name


def _values(schema: Json) -> list[str]:
    """The known values of an enumeration, or of the items of a list or map of them."""
    inner: Json = schema.get("items", schema.get("additionalProperties")) or schema
    return cast("list[str]", inner.get("enum") or [])

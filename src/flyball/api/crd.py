"""CustomResourceDefinitions from classes: one class for each version of a kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from flyball.api.markers import PrintColumn
from flyball.api.refusal import SchemaError
from flyball.api.resource import KindOptions, Resource
from flyball.api.schema import Builder
from flyball.api.schema_checks import kind_word

__all__ = ["crd_of", "version_of"]

Json = dict[str, Any]
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {"alpha": 0, "beta": 1, None: 2}
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def crd_of(*classes: type[Resource], conversion: Json | None = None) -> Json:
    """The CustomResourceDefinition (apiextensions.k8s.io/v1) of one kind, given the class of each of its versions.

    Versions come newest first. With several classes, the one that says `storage=True` is stored and names the kind.
    `conversion` is the CRD's field of that name, for several versions with a webhook.
    """
    if not classes:
        raise TypeError("crd_of: give at least one class")
    for cls in classes:
        _check_kind(cls)
    stored = _stored(classes)
    options = stored.kind_options
    ordered = sorted(classes, key=lambda cls: _age_of(cls.kind_options.version), reverse=True)
    _check_same(stored, classes)
    metadata: Json = {"name": f"{options.plural}.{options.group}"}
    for part in ("labels", "annotations"):
        given = getattr(options, part)
        if given:
            metadata[part] = dict(given)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": options.group,
            "names": _names(options),
            "scope": options.scope,
            **({"conversion": conversion} if conversion else {}),
            "versions": [version_of(cls, storage=cls is stored) for cls in ordered],
        },
    }


def version_of(cls: type[Resource], *, storage: bool = True, whole: bool = True) -> Json:
    """The entry of one version in the CRD. `whole=False` is a quick check: built-in parts are not looked into."""
    options = cls.kind_options
    builder = Builder(whole=whole, limit=options.description_limit)
    schema = builder.root(cls)
    version: Json = {"name": options.version, "served": options.served, "storage": storage}
    if options.deprecated:
        version["deprecated"] = True
        if isinstance(options.deprecated, str):
            version["deprecationWarning"] = options.deprecated
    version["schema"] = {"openAPIV3Schema": schema}
    subresources = _subresources(cls, schema, whole)
    if subresources:
        version["subresources"] = subresources
    selectable = [*builder.selectable, *options.selectable_fields]
    if selectable:
        version["selectableFields"] = [{"jsonPath": _selectable(cls, schema, path)} for path in selectable]
    columns = [_column(cls, schema, column, whole) for column in (*builder.columns, *options.columns)]
    if columns:
        has_age = any(column["jsonPath"] == _AGE["jsonPath"] for column in columns)
        version["additionalPrinterColumns"] = columns if has_age else [*columns, dict(_AGE)]
    return version


def _check_kind(cls: type[Resource]) -> None:
    if getattr(cls, "kind_options", None) is None:
        remedy = f'write class {cls.__name__}(Resource, group="...", version="...")'
        raise SchemaError(cls.__name__, "the class has no group and version", remedy)
    if cls.kind_options.builtin:
        raise SchemaError(cls.__name__, "the kind is built in, it has no CRD", "give a kind of your own")


def _stored(classes: Sequence[type[Resource]]) -> type[Resource]:
    if len(classes) == 1:
        return classes[0]
    stored = [cls for cls in classes if cls.kind_options.storage]
    if len(stored) == 1:
        return stored[0]
    names = ", ".join(cls.__name__ for cls in stored or classes)
    which = "several versions are" if stored else "no version is"
    raise SchemaError(names, f"{which} the stored one", "write storage=True in exactly one of the classes")


def _check_same(stored: type[Resource], classes: Sequence[type[Resource]]) -> None:
    seen: set[str] = set()
    for cls in classes:
        for what in ("group", "kind", "plural", "singular", "scope"):
            mine, theirs = getattr(cls.kind_options, what), getattr(stored.kind_options, what)
            if mine != theirs:
                cause = f"its {what} is {mine!r}, but that of {stored.__name__} is {theirs!r}"
                raise SchemaError(cls.__name__, cause, "versions of one kind have it in common; give other kinds apart")
        version = cls.kind_options.version
        if version in seen:
            raise SchemaError(cls.__name__, f"version {version} is there twice", "give each class a version of its own")
        seen.add(version)


def _names(options: KindOptions) -> Json:
    names: Json = {
        "plural": options.plural,
        "singular": options.singular,
        "kind": options.kind,
        "listKind": options.list_kind,
    }
    if options.short_names:
        names["shortNames"] = list(options.short_names)
    if options.categories:
        names["categories"] = list(options.categories)
    return names


def _age_of(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: v2 after v1 after v1beta2 after v1alpha1 after any other word."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, "".join(chr(0x10FFFF - ord(letter)) for letter in version))
    return (_STAGES[match[2]], int(match[1]), int(match[3] or 0), "")


def _subresources(cls: type[Resource], schema: Json, whole: bool) -> Json:
    options = cls.kind_options
    has_status = options.status_subresource
    found: Json = {}
    if has_status or (has_status is None and "status" in schema["properties"]):
        found["status"] = {}
    if options.scale is not None:
        scale = options.scale
        number = ("integer", "must lead to a whole number")
        _expect(cls, schema, scale.spec, ".spec.", number, whole)
        _expect(cls, schema, scale.status, ".status.", number, whole)
        found["scale"] = {"specReplicasPath": scale.spec, "statusReplicasPath": scale.status}
        if scale.selector:
            _expect(cls, schema, scale.selector, (".spec.", ".status."), ("string", "must lead to a text"), whole)
            found["scale"]["labelSelectorPath"] = scale.selector
    return found


def _expect(
    cls: type[Resource], schema: Json, path: str, start: str | tuple[str, ...], wanted: tuple[str, str], whole: bool
) -> None:
    place = f"{cls.__name__}: scale"
    if not path.startswith(start):
        raise SchemaError(place, f"the path {path!r} does not begin with {start}", "write it as .spec.replicas")
    found = _at(schema, path)
    if (found is None and whole) or (found is not None and found.get("type") != wanted[0]):
        raise SchemaError(place, f"the path {path!r} {wanted[1]}", "add the field, or name another one in Scale(...)")


def _selectable(cls: type[Resource], schema: Json, path: str) -> str:
    found = _at(schema, path)
    if path.startswith(".metadata") or found is None or kind_word(found) not in ("string", "integer", "boolean"):
        raise SchemaError(
            f"{cls.__name__}: selectable_fields",
            f"the path {path!r} does not lead to a text, a whole number or a boolean",
            "write the JSON path of such a field, .spec.color",
        )
    return path


_COLUMN_TYPES: dict[str, Callable[[Json], str]] = {
    "string": lambda schema: "date" if schema.get("format") in ("date-time", "date") else "string",
    "int-or-string": lambda schema: "string",
    "integer": lambda schema: "integer",
    "number": lambda schema: "number",
    "boolean": lambda schema: "boolean",
}


def _column(cls: type[Resource], schema: Json, column: PrintColumn, whole: bool) -> Json:
    place = f"{cls.__name__}: column {column.name or column.path or ''}"
    if not column.name or not column.path:
        remedy = 'write PrintColumn("Size", ".spec.size")'
        raise SchemaError(place, "a column of the class needs a name and a path", remedy)
    kind: str | None = column.type
    if kind is None:
        found = _at(schema, column.path)
        finder = _COLUMN_TYPES.get(kind_word(found)) if found is not None else None
        if finder is None and (whole or found is not None):
            raise SchemaError(place, f"the path {column.path!r} does not tell a type", 'add it: type="string"')
        kind = finder(found) if finder and found is not None else "string"
    made = {
        "name": column.name,
        "type": kind,
        "format": column.format,
        "description": column.description,
        "jsonPath": column.path,
        "priority": column.priority or None,
    }
    return {key: value for key, value in made.items() if value is not None}


_KNOWN = {".metadata.name": "string", ".metadata.namespace": "string", ".metadata.creationTimestamp": "date-time"}


def _at(schema: Json, path: str) -> Json | None:
    """The schema that a simple JSON path leads to; None if it leads nowhere or is not simple."""
    if path in _KNOWN:
        word = _KNOWN[path]
        return {"type": "string", "format": word} if word != "string" else {"type": "string"}
    found: Json | None = schema
    for key in path.strip(".").split("."):
        if key == "kind" and found is schema:
            return {"type": "string"}
        found = found.get("properties", {}).get(key) if found else None
    return found

"""Reading facts out of an unpacked Go module `k8s.io/kubernetes`."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

Json = dict[str, Any]

TEXTS = frozenset({"description", "title", "example", "externalDocs"})
RESOURCE_FACTS = ("shortNames", "categories", "storageVersionHash")


class FactError(Exception):
    """The module lacks something that the facts are made of."""


def read(module: Path) -> Json:
    """All facts of an unpacked `k8s.io/kubernetes@vX.Y.Z`."""
    schemas = _schemas(module)
    _add_order_and_enums(schemas, module / "pkg/generated/openapi/zz_generated.openapi.go")
    return {
        "kubernetes": _version(module),
        "groups": _groups(module),
        "schemas": dict(sorted(schemas.items())),
    }


def pack(facts: Json) -> bytes:
    """The fact file: JSON, one schema a line, compressed."""
    return lzma.compress(text(facts).encode(), format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME)


def text(facts: Json) -> str:
    """The facts as JSON with a line for every group version and every schema, so that two of them can be compared."""
    parts = [f'"kubernetes":{_dump(facts["kubernetes"])}']
    groups = [_dump(group) for group in facts["groups"]]
    parts.append('"groups":[\n' + ",\n".join(groups) + "\n]")
    schemas = [f"{_dump(name)}:{_dump(schema)}" for name, schema in facts["schemas"].items()]
    parts.append('"schemas":{\n' + ",\n".join(schemas) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _load(path: Path) -> Json:
    try:
        return cast("Json", json.loads(path.read_text()))
    except OSError as error:
        raise FactError(f"read {path}: {error.strerror}; is it an unpacked k8s.io/kubernetes module?") from error


def _version(module: Path) -> str:
    found = re.search(r"@v(\d+\.\d+\.\d+)$", module.resolve().name)
    if found is None:
        raise FactError(f"{module}: its name does not end in @vX.Y.Z, so the version is not known")
    return found[1]


def _schemas(module: Path) -> Json:
    """Every schema of every group version, without texts; a meta type's list of kinds is the union of all documents."""
    found: dict[str, Json] = {}
    documents = sorted((module / "api/openapi-spec/v3").glob("*_openapi.json"))
    if not documents:
        raise FactError(f"{module}: no OpenAPI documents under api/openapi-spec/v3")
    for document in documents:
        for name, schema in _load(document).get("components", {}).get("schemas", {}).items():
            known = found.setdefault(name, _without_texts(schema))
            kinds = known.get("x-kubernetes-group-version-kind", [])
            kinds.extend(kind for kind in schema.get("x-kubernetes-group-version-kind", []) if kind not in kinds)
    for schema in found.values():
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        kinds.sort(key=_kind_order)
    return found


def _kind_order(kind: Json) -> tuple[str, str, str]:
    return kind["group"], kind["version"], kind["kind"]


def _without_texts(schema: Json) -> Json:
    clean: Json = {}
    for key, value in schema.items():
        if key in TEXTS:
            continue
        if key == "properties":
            clean[key] = {name: _without_texts(each) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            clean[key] = _without_texts(cast("Json", value))
        elif key in ("allOf", "oneOf", "anyOf"):
            clean[key] = [_without_texts(each) for each in value]
        else:
            clean[key] = value
    return clean


# --- the Go table: the order of fields as the server writes them, and the known values of enumerations ---------------

_FUNCTION = re.compile(r"^func schema_(\w+)\(ref common\.ReferenceCallback\)")
_PROPERTY = re.compile(r'^(\t+)"([^"]+)": \{$')
_ENUM = re.compile(r"^(\t+)Enum:\s+\[\]interface\{\}\{(.*)\},$")
_PROPERTY_DEPTH = 5


def _add_order_and_enums(schemas: Json, table: Path) -> None:
    try:
        lines = table.read_text().splitlines()
    except OSError as error:
        raise FactError(f"read {table}: {error.strerror}; is it an unpacked k8s.io/kubernetes module?") from error
    tables = dict(_functions(lines))
    for name, schema in schemas.items():
        properties = schema.get("properties")
        if not properties:
            continue
        found = _table_of(name, set(properties), tables)
        schema["properties"] = {field: properties[field] for field in found}
        for field, (values, inner) in found.items():
            if values:
                _target(properties[field], inner)["enum"] = values


def _target(schema: Json, inner: bool) -> Json:
    if not inner:
        return schema
    return cast("Json", schema["items"] if "items" in schema else schema["additionalProperties"])


Fields = dict[str, tuple[list[str], bool]]


def _functions(lines: list[str]) -> Iterator[tuple[str, Fields]]:
    name, fields, field = "", Fields(), ""
    for line in lines:
        if started := _FUNCTION.match(line):
            name, fields, field = started[1], {}, ""
        elif line == "}" and name:
            yield name, fields
            name = ""
        elif (found := _PROPERTY.match(line)) and len(found[1]) == _PROPERTY_DEPTH:
            field = found[2]
            fields[field] = ([], False)
        elif (enum := _ENUM.match(line)) and field:
            fields[field] = (json.loads(f"[{enum[2]}]"), len(enum[1]) > _PROPERTY_DEPTH + 2)


def _table_of(name: str, properties: set[str], tables: dict[str, Fields]) -> Fields:
    suffix = "_" + "_".join(name.split(".")[-3:])
    found = [fields for function, fields in tables.items() if function.endswith(suffix) and set(fields) == properties]
    if not found:
        raise FactError(f"{name}: the generated Go table has no such type with the same fields")
    return found[0]


# --- discovery --------------------------------------------------------------------------------------------------------


def _groups(module: Path) -> list[Json]:
    """Groups in the server's order, each with its versions (most preferred first) and their resources."""
    folder = module / "api/discovery"
    found: list[Json] = [{"group": "", "versions": [_resources(folder, "", "v1")]}]
    for group in _load(folder / "apis.json")["groups"]:
        versions = [_resources(folder, group["name"], each["version"]) for each in group["versions"]]
        found.append({"group": group["name"], "versions": versions})
    return found


def _resources(folder: Path, group: str, version: str) -> Json:
    name = f"apis__{group}__{version}.json" if group else f"api__{version}.json"
    resources: dict[str, Json] = {}
    listed: list[Json] = _load(folder / name)["resources"]
    for entry in listed:
        parent, _, subresource = entry["name"].partition("/")
        kind = {"group": entry.get("group", group), "version": entry.get("version", version), "kind": entry["kind"]}
        if subresource:
            below = {"name": subresource, **kind, "verbs": entry["verbs"]}
            owner = resources.setdefault(parent, {"plural": parent, "kind": "", "namespaced": entry["namespaced"]})
            owner.setdefault("subresources", []).append(below)
            continue
        resource = resources.setdefault(parent, {})
        resource |= {
            "plural": parent,
            "singular": entry["singularName"],
            "kind": entry["kind"],
            "namespaced": entry["namespaced"],
            "verbs": entry["verbs"],
            **{key: entry[key] for key in RESOURCE_FACTS if key in entry},
        }
    return {"version": version, "resources": list(resources.values())}

"""Objects made from the facts: every field of every built-in kind filled in, as a server would send it."""

from __future__ import annotations

from typing import Any, Final

from flyball.k8s.facts import load

Json = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_JSON: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
_SPECIAL: Final[dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "1500m",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "25%",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"apiVersion": "example.org/v1", "kind": "Any", "size": 3},
    _META + "Time": "2026-01-02T03:04:05Z",
    _META + "MicroTime": "2026-01-02T03:04:05.000006Z",
    _META + "FieldsV1": {"f:spec": {".": {}}},
    _JSON: {"any": [1, None, "text"]},
    _JSON + "SchemaPropsOrArray": {"type": "string"},
    _JSON + "SchemaPropsOrBool": True,
    _JSON + "SchemaPropsOrStringArray": ["first", "second"],
}
_SCALARS: Final[dict[tuple[str, str | None], Any]] = {
    ("string", None): "text",
    ("string", "byte"): "aGVsbG8=",
    ("integer", "int32"): 7,
    ("integer", "int64"): 2**53 + 1,
    ("number", "double"): 0.5,
    ("boolean", None): True,
    ("object", None): {},
}


def filled(schema_name: str, above: tuple[str, ...] = ()) -> Any:
    """A value of a published type with all of its fields."""
    if schema_name in _SPECIAL:
        return _SPECIAL[schema_name]
    if schema_name == _META + "Condition":
        return {**_object(load()["schemas"][schema_name], (*above, schema_name)), "status": "True"}
    return _value(load()["schemas"][schema_name], (*above, schema_name))


def _value(schema: Json, above: tuple[str, ...]) -> Any:
    reference: str | None = schema.get("allOf", [schema])[0].get("$ref")
    if reference is not None:
        return filled(reference.rpartition("/")[2], above)
    if "properties" in schema:
        return _object(schema, above)
    if schema["type"] == "array":
        return [_value(schema["items"], above)]
    if isinstance(schema.get("additionalProperties"), dict):
        return {"key": _value(schema["additionalProperties"], above)}
    return schema["enum"][-1] if "enum" in schema else _SCALARS[schema["type"], schema.get("format")]


def _object(schema: Json, above: tuple[str, ...]) -> Json:
    return {name: _value(inner, above) for name, inner in schema["properties"].items() if not _comes_back(inner, above)}


def _comes_back(schema: Json, above: tuple[str, ...]) -> bool:
    """A type inside itself is left out."""
    inner: Any = schema.get("items", schema.get("additionalProperties", schema))
    references = [each.get("$ref", "").rpartition("/")[2] for each in (schema, inner, *inner.get("allOf", ()))]
    return any(reference in above for reference in references)


def kinds() -> list[tuple[str, str, str, str]]:
    """Every kind that is an object: (schema name, group, version, kind)."""
    found: list[tuple[str, str, str, str]] = []
    for name, schema in load()["schemas"].items():
        metadata = schema.get("properties", {}).get("metadata", {})
        points = [each.get("$ref", "") for each in metadata.get("allOf", [metadata])]
        is_object = any(point.endswith("ObjectMeta") for point in points)
        for kind in schema.get("x-kubernetes-group-version-kind", ()) if is_object else ():
            found.append((name, kind["group"], kind["version"], kind["kind"]))
    return found


def server_object(schema_name: str, group: str, version: str, kind: str) -> Json:
    """The whole object of a kind."""
    return {**filled(schema_name), "apiVersion": f"{group}/{version}".lstrip("/"), "kind": kind}

"""Built-in types as structural schemas, for custom resources that embed them.

A custom resource may hold a `PodTemplateSpec` or a `ResourceRequirements`. Its schema then needs what the Python types
do not say: list types and their keys, formats, the defaults that list keys rest on. `structural` reads all that from
the facts and gives what a CustomResourceDefinition accepts: no references, no patch hints, no texts.
"""

from __future__ import annotations

from typing import Any, Final, cast

from flyball.k8s._index import SCHEMAS
from flyball.k8s.facts import load

__all__ = ["RecursiveSchemaError", "published_name", "structural"]

Json = dict[str, Any]

_HERE: Final = "flyball.k8s."
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_KEPT: Final = (
    "type",
    "format",
    "enum",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_ANYTHING: Final[Json] = {"x-kubernetes-preserve-unknown-fields": True}
_FREE_OBJECT: Final[Json] = {"type": "object", **_ANYTHING}
_KNOWN: Final[dict[str, Json]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "anyOf": _EITHER,
        "pattern": _QUANTITY,
        "x-kubernetes-int-or-string": True,
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"anyOf": _EITHER, "x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _FREE_OBJECT,
    _META + "FieldsV1": _FREE_OBJECT,
}


class RecursiveSchemaError(Exception):
    """The type contains itself, which a structural schema cannot say."""


def published_name(cls: type[Any]) -> str | None:
    """The name of a built-in type's schema, `io.k8s.api.core.v1.PodSpec`; None for any other class."""
    module = cls.__module__
    if not module.startswith(_HERE):
        return None
    prefix = SCHEMAS.get(module.removeprefix(_HERE))
    name = f"{prefix}.{cls.__name__}"
    return name if prefix and name in load()["schemas"] else None


def structural(name: str) -> Json:
    """The structural schema of a published type, by its name; every call gives a new one.

    `metadata` inside another object becomes a plain object, as the API server wants it: it prunes what an embedded
    metadata holds unless the author says otherwise.
    """
    return _convert(load()["schemas"][name], (name,))


def _convert(schema: Json, path: tuple[str, ...]) -> Json:
    references: list[Json] = schema.get("allOf", [schema])
    reference: str | None = references[0].get("$ref")
    return _plain(schema, path) if reference is None else _refer(reference.rpartition("/")[2], path)


def _refer(name: str, path: tuple[str, ...]) -> Json:
    if name in _KNOWN:
        return {**_KNOWN[name]}
    if name == _META + "ObjectMeta":
        return {"type": "object"}
    if name in path:
        chain = " -> ".join(each.rpartition(".")[2] for each in (*path, name))
        raise RecursiveSchemaError(f"{chain}: a type that contains itself has no structural schema")
    target = load()["schemas"][name]
    return _convert(target, (*path, name)) if "type" in target else {**_ANYTHING}


def _plain(schema: Json, path: tuple[str, ...]) -> Json:
    found: Json = {key: schema[key] for key in _KEPT if key in schema}
    if "properties" in schema:
        required: list[str] = schema.get("required", [])
        found["properties"] = {
            key: _convert(inner, path) | _default(inner, key in required) for key, inner in schema["properties"].items()
        }
        if required:
            found["required"] = sorted(required)
    if "items" in schema:
        found["items"] = _convert(schema["items"], path)
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = _convert(cast("Json", schema["additionalProperties"]), path)
    return found


def _default(schema: Json, required: bool) -> Json:
    """Defaults of required fields only say what Go's zero is; the others matter, above all for the keys of lists."""
    default = schema.get("default")
    return {} if required or default in (None, {}) else {"default": default}

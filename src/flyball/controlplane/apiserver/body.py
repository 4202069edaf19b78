"""Reading bodies: JSON, YAML 1.1 and protobuf become the same plain values; duplicate fields are noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
import yaml

from flyball.controlplane.apiserver.bounds import TooDeep, check_depth, check_yaml
from flyball.controlplane.apiserver.negotiation import media_type
from flyball.controlplane.apiserver.status import StatusError, bad_request, unsupported_media_type

__all__ = ["BODY_TYPES", "MAX_BODY", "Body", "duplicate_fields", "read_body", "read_documents", "read_yaml"]

MAX_BODY: Final = 3 * 1024 * 1024

JSON: Final = "application/json"
YAML: Final = "application/yaml"
NO_KIND: Final = "couldn't get version/kind"
"""How the refusal of a body begins of which not even the kind can be read."""
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
BODY_TYPES: Final = (JSON, YAML, PROTOBUF)

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class Body(msgspec.Struct):
    """An object as it came, and the paths of fields that came twice."""

    value: Any
    duplicates: list[str]


ReadProtobuf = Callable[[bytes], dict[str, Any]]


def read_body(raw: bytes, content_type: str, *, strict: bool, protobuf: ReadProtobuf | None) -> Body:
    """Read a body in one of `BODY_TYPES`; without a type it is JSON. `strict` looks for duplicate fields.

    `protobuf` reads that format; None where it is not accepted. Raises BadRequest and UnsupportedMediaType.
    """
    kind = media_type(content_type) or JSON
    if kind == PROTOBUF and protobuf is not None:
        return Body(_of_protobuf(protobuf, raw), [])
    if kind == YAML:
        value, duplicates = read_yaml(raw)
        return Body(value, duplicates)
    if kind != JSON:
        raise unsupported_media_type(BODY_TYPES if protobuf is not None else (JSON, YAML))
    value = read_json(raw)
    return Body(value, duplicate_fields(raw) if strict and _may_have_duplicates(raw, value) else [])


def _may_have_duplicates(raw: bytes, value: Any) -> bool:
    """Tell quickly that a text has no field twice: written anew, what was read has as many quotation marks then."""
    return b"\\u" in raw or raw.count(b'"') != _encode(value).count(b'"')


def _of_protobuf(protobuf: ReadProtobuf, raw: bytes) -> dict[str, Any]:
    try:
        value = protobuf(raw)
        check_depth(value)
        return value
    except (RecursionError, TooDeep):
        raise bad_request("the protobuf body of the request is nested too deeply") from None


def read_json(raw: bytes) -> Any:
    """Read JSON. Raises BadRequest."""
    try:
        value = _decode(raw)
        check_depth(value)
        return value
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TooDeep) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {_plain(error, raw)}") from None


def _plain(error: Exception, raw: bytes) -> str:
    if not raw.strip():
        return "unexpected end of JSON input"
    text = str(error)
    if "truncated" in text:
        return "unexpected end of JSON input"
    first = raw.lstrip()[:1]
    if first not in b'{["-0123456789tfn':
        return f"invalid character {_rune(first)} looking for beginning of value"
    return text


def _rune(byte: bytes) -> str:
    return f"'{byte.decode()}'" if byte.isascii() and byte.decode().isprintable() else f"'\\x{byte[0]:02x}'"


def unrecognized(kind: str, error: StatusError, raw: bytes) -> StatusError:
    """Say that a body is no object of the kind that is expected, and show how it begins."""
    shown = "<empty>" if not raw else raw[:256].decode(errors="replace") if raw[:1] == b"{" else raw[:256].hex()
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {error.message} ({shown})")


class _Pairs(list[tuple[str, Any]]):
    """An object as the list of its fields, so that none is lost."""


def duplicate_fields(raw: bytes) -> list[str]:
    """Return the paths of the fields that a JSON text has twice in one object, in the order of the text."""
    found = False

    def notice(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal found
        fields = dict(pairs)
        found = found or len(fields) != len(pairs)
        return fields

    try:
        json.loads(raw, object_pairs_hook=notice)
        if not found:
            return []
        paths: list[str] = []
        _find_duplicates(json.loads(raw, object_pairs_hook=_Pairs), "", paths)
        return paths
    except (ValueError, RecursionError):
        return []


def _find_duplicates(value: Any, path: str, paths: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            where = f"{path}.{name}" if path else name
            if name in seen and where not in paths:
                paths.append(where)
            seen.add(name)
            _find_duplicates(inner, where, paths)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _find_duplicates(item, f"{path}[{place}]", paths)


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML 1.1 as Kubernetes reads it: `y` and `n` are booleans, times are texts, keys become texts."""

    duplicates: list[str]


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    fields: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(loader.construct_object(key_node, deep=True))
        if key in fields and key not in loader.duplicates:
            loader.duplicates.append(key)
        fields[key] = loader.construct_object(value_node, deep=True)
    return fields


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else json.dumps(key) if key is not None else "null"


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _add_short_booleans() -> None:
    import re

    _Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:y|Y|n|N)$"), list("yYnN"))


_add_short_booleans()


def _boolean(loader: Any, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


_Loader.add_constructor("tag:yaml.org,2002:bool", _boolean)


def read_yaml(raw: bytes) -> tuple[Any, list[str]]:
    """Read one YAML document and the names of the keys that stand twice in a map. Raises BadRequest."""
    if raw[:1] in b"{[" and raw:
        try:
            value = _decode(raw)
            check_depth(value)
            return value, duplicate_fields(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TooDeep):
            pass  # flow style that is not JSON: YAML reads it
    try:
        check_yaml(raw)
        loader: Any = _Loader(raw)
        loader.duplicates = []
        value = loader.get_single_data()
        return value, loader.duplicates
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise bad_request(f"error converting YAML to JSON: {' '.join(str(error).split())}") from None


def read_documents(raw: bytes) -> list[Any]:
    """Read all documents of a YAML (or JSON) text, without the empty ones. Raises BadRequest."""
    try:
        check_yaml(raw)
        loader: Any = _Loader(raw)
        loader.duplicates = []
        found: list[Any] = []
        while loader.check_data():
            found.append(loader.get_data())
        return [document for document in found if document is not None]
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise bad_request(f"error converting YAML to JSON: {' '.join(str(error).split())}") from None


def expect_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object. Raises BadRequest."""
    if not isinstance(value, dict):
        raise _no_object(value)
    return value


def _no_object(value: Any) -> StatusError:
    return bad_request(
        "couldn't get version/kind; json parse error: json: cannot unmarshal "
        f'{_go_type(value)} into Go value of type struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
        'Kind string "json:\\"kind,omitempty\\"" }'
    )


def _go_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "number"

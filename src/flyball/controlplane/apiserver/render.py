"""From objects to bytes and back: what is stored, and what goes out.

A stored body is the text of the object in the version it is kept in. Of built-in kinds it lacks `kind` and
`apiVersion`, which a single object gets in front and an item of a list does not; fields are in the order of the
published schema. A custom object is stored whole, with its keys in alphabetical order, and an item of a list carries
its kind. So answers are joins of stored bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml

from flyball.api.structural import Schema
from flyball.controlplane.apiserver.conversions import Shape
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.negotiation import Form
from flyball.controlplane.apiserver.store import Draft, Entry, Event
from flyball.controlplane.apiserver.wire import tidy

__all__ = [
    "arrange",
    "draft",
    "encode",
    "event_frame",
    "item_bytes",
    "list_bytes",
    "metadata_only",
    "object_bytes",
    "parse",
    "shown",
    "written",
]

Object = dict[str, Any]

_encode: Final = msgspec.json.Encoder().encode
_encode_sorted: Final = msgspec.json.Encoder(order="deterministic").encode
_decode: Final = msgspec.json.Decoder().decode
_HEAD: Final = ("kind", "apiVersion")


def encode(value: Any) -> bytes:
    """Write plain values as JSON with the newline that ends every answer."""
    return _encode(value) + b"\n"


def written(body: bytes, form: Form) -> bytes:
    """Bring JSON text into the encoding that was asked for."""
    if form.encoding == "application/yaml":
        return yaml.safe_dump(_decode(body), sort_keys=False, allow_unicode=True).encode()
    if form.pretty:
        return msgspec.json.format(body, indent=2) + b"\n"
    return body


def arrange(value: Any, schema: Schema | None) -> Any:
    """Return the value with the fields of objects in the order of the schema."""
    if isinstance(value, dict):
        fields: Object = value
        if schema is None or not schema.properties:
            inner = None if schema is None else schema.additional
            return {name: arrange(fields[name], inner) for name in sorted(fields)}
        ordered = {
            name: arrange(fields[name], child) if isinstance(fields[name], (dict, list)) else fields[name]
            for name, child in schema.properties.items()
            if name in fields
        }
        if len(ordered) < len(fields):
            ordered.update((name, arrange(fields[name], None)) for name in sorted(fields) if name not in ordered)
        return ordered
    if isinstance(value, list):
        items: list[Any] = value
        inner = None if schema is None else schema.items
        return [arrange(item, inner) if isinstance(item, (dict, list)) else item for item in items]
    return value


def draft(kind: Kind, obj: Object, revision: int) -> Draft:
    """Make what is stored of an object at a revision."""
    metadata: Object = {**obj["metadata"], "resourceVersion": str(revision)}
    whole = {**obj, "metadata": metadata}
    if kind.builtin:
        message = kind.schema_name
        if isinstance(kind.conversion, Shape):
            whole, message = kind.conversion.store(whole), kind.conversion.message
        ordered = tidy(whole, message) if message else arrange(whole, kind.schema)
        body = _encode({name: value for name, value in ordered.items() if name not in _HEAD})
    else:
        if kind.conversion is not None:
            whole = kind.conversion.store(whole)
        body = _encode_sorted(whole)
    fields = dict(kind.strategy.fields(whole)) if kind.strategy.selectable else {}
    return Draft(body, metadata.get("uid", ""), metadata.get("labels") or {}, fields, str(whole["apiVersion"]))


def object_bytes(kind: Kind, entry: Entry) -> bytes:
    """Write a stored object as an answer has it, without the newline."""
    if kind.builtin:
        return _head(kind.kind, kind.api_version) + item_bytes(kind, entry)[1:]
    if kind.conversion is None or kind.conversion.as_it_is(entry):
        return entry.body
    return _encode_sorted(kind.conversion.read(_decode(entry.body)))


def item_bytes(kind: Kind, entry: Entry) -> bytes:
    """Write a stored object as an item of a list."""
    if not kind.builtin:
        return object_bytes(kind, entry)
    if kind.conversion is None:
        return entry.body
    return _encode(tidy(kind.conversion.read(_decode(entry.body)), kind.schema_name))


def parse(kind: Kind, entry: Entry) -> Object:
    """Read a stored object into plain values, for this caller alone."""
    obj: Object = _decode(entry.body)
    if kind.builtin:
        shown = obj if kind.conversion is None else tidy(kind.conversion.read(obj), kind.schema_name)
        return {"kind": kind.kind, "apiVersion": kind.api_version, **shown}
    if kind.conversion is None or kind.conversion.as_it_is(entry):
        return obj
    return kind.conversion.read(obj)


def shown(kind: Kind, obj: Object) -> Object:
    """Return an object that was not stored, in the form in which it would be answered."""
    return tidy(obj, kind.schema_name) if kind.builtin and kind.schema_name else obj


def _head(kind: str, api_version: str) -> bytes:
    return b'{"kind":"%b","apiVersion":"%b",' % (kind.encode(), api_version.encode())


def list_bytes(kind: str, api_version: str, items: Iterable[bytes], metadata: Object) -> bytes:
    """Join items into a list."""
    return b'%b"metadata":%b,"items":[%b]}\n' % (_head(kind, api_version), _encode(metadata), b",".join(items))


class _OnlyMetadata(msgspec.Struct):
    metadata: msgspec.Raw


_decode_metadata: Final = msgspec.json.Decoder(_OnlyMetadata).decode


def metadata_only(entry: Entry, version: str = "v1") -> bytes:
    """Write the metadata of a stored object as a PartialObjectMetadata."""
    head = _head("PartialObjectMetadata", f"meta.k8s.io/{version}")
    return b'%b"metadata":%b}' % (head, bytes(_decode_metadata(entry.body).metadata))


def event_frame(type_: str, body: bytes) -> bytes:
    """Write the line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)


def at_revision(event: Event, body: bytes) -> bytes:
    """Give the body of an event its own revision: an object that left a selection is shown as it was before."""
    if event.type != "DELETED" or event.previous is None or event.entry.body is not event.previous.body:
        return body
    obj: Object = _decode(body)
    obj["metadata"]["resourceVersion"] = str(event.revision)
    return _encode(obj)

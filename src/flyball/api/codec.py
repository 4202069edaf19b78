"""Objects from bytes and back.

- `decode` never fails on what a server may send; it raises `msgspec.DecodeError` only for what is not JSON at all.
- A decoded `Resource` keeps the bytes that it came from (`origin`): fields that its class does not know live there, and
  `flyball.api.changes` puts them into what is written.
  Objects inside a list or inside another object have no origin of their own.
- `encode` and `to_dict` give what the object says now, without unknown fields; an untouched `status` and an empty
  `spec` are left out.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar, cast

import msgspec

from flyball.api import lenient, times
from flyball.api.dynamic import DynamicObject
from flyball.api.model import UNSET, Model
from flyball.api.resource import Resource
from flyball.api.values import dec_hook, enc_hook

__all__ = ["decode", "encode", "from_dict", "origin", "to_dict"]

T = TypeVar("T")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_encoder = msgspec.json.Encoder(enc_hook=enc_hook)
_plain: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def decode(type_: type[T], raw: bytes | bytearray | memoryview) -> T:
    """The object that `raw` (JSON) holds, as a `type_`: a model, a kind, `DynamicObject`, or a list or map of such."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = _decoder_for(type_)
    try:
        made = decoder.decode(raw)
    except msgspec.ValidationError:
        made = lenient.fit(type_, _plain.decode(raw))
    if type_ is DynamicObject:
        made = DynamicObject(made)
    if isinstance(made, (Resource, DynamicObject)):
        vars(made)["_origin"] = bytes(raw)
    return cast("T", made)


def _decoder_for(type_: Any) -> msgspec.json.Decoder[Any]:
    if type_ is DynamicObject:
        return msgspec.json.Decoder(dict[str, Any])
    return msgspec.json.Decoder(type_, dec_hook=dec_hook)


def from_dict(type_: type[T], value: Any) -> T:
    """The same from plain dicts and lists, as YAML gives them."""
    return decode(type_, msgspec.json.encode(value))


def origin(obj: Any) -> bytes | None:
    """The bytes that the object was decoded from; None if it was made in the program."""
    found: Any = getattr(obj, "__dict__", {}).get("_origin")
    return cast("bytes | None", found)


def encode(obj: Any) -> bytes:
    """The JSON of a model, a kind, a dynamic object, or plain values of such."""
    if not isinstance(obj, Model):
        if isinstance(obj, DynamicObject):
            return _encoder.encode(dict(obj))
        if isinstance(obj, (list, dict)):
            return _encoder.encode(_inside(obj))
        return _encoder.encode(obj)
    return encode_whole(_without_empty_parts(obj) if isinstance(obj, Resource) else obj)


def encode_whole(obj: Model) -> bytes:
    """The JSON of a model with empty and untouched parts."""
    raw = _encoder.encode(obj)
    if times.needs_mending(obj):
        return _encoder.encode(times.mend(obj, _plain.decode(raw)))
    return raw


def _inside(value: Any) -> Any:
    """Models inside plain containers get the same care as outside of them."""
    if isinstance(value, list):
        return [_inside(item) for item in value]
    if isinstance(value, dict):
        return {key: _inside(item) for key, item in value.items()}
    return msgspec.Raw(encode(value)) if isinstance(value, Model) else value


def to_dict(obj: Any) -> dict[str, Any]:
    """The object as plain dicts, lists and scalars, with JSON's names."""
    return cast("dict[str, Any]", _plain.decode(encode(obj)))


def _without_empty_parts(obj: Resource) -> Resource:
    """The object, or a copy of it that lacks an empty spec and a status that nobody has touched."""
    unset = [part for part in ("spec", "status") if _is_untouched(obj, part)]
    if not unset:
        return obj
    slim = copy.copy(obj)
    for part in unset:
        setattr(slim, part, UNSET)
    return slim


def _is_untouched(obj: Resource, part: str) -> bool:
    value = getattr(obj, part, None)
    if not isinstance(value, Model):
        return False
    if part == "status" and origin(obj) is None and value == type(value)():
        return True
    return all(_is_nothing(getattr(value, name)) for name in value.__struct_fields__)


def _is_nothing(value: Any) -> bool:
    return value is None or value is UNSET or (isinstance(value, (list, dict)) and not value)

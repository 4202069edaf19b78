"""Reading the bodies that Go's typed clients send: protobuf, turned into the plain values that JSON would have given.

A body is four magic bytes and an envelope (type, raw message). The numbers and types of all fields are facts
(`wire.fields_of`). Zero values of fields that Go leaves out of JSON are on this wire all the same; `wire.tidy` drops
them later, as it does for JSON.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import msgspec

from flyball.controlplane.apiserver.status import StatusError, bad_request
from flyball.controlplane.apiserver.wire import Field, fields_of

__all__ = ["MAGIC", "ProtobufReader"]

MAGIC: Final = b"k8s\x00"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_MAX_DEPTH: Final = 100

Object = dict[str, Any]
MessageOf = Callable[[str, str], str]
"""Names the published type of an apiVersion and kind; an empty text when it has none."""


class ProtobufReader:
    """Reads bodies of the kinds that `message_of` knows."""

    def __init__(self, message_of: MessageOf) -> None:
        """Take the way from kinds to messages."""
        self._message_of = message_of

    def __call__(self, body: bytes) -> Object:
        """Read a body. Raises BadRequest."""
        if body[:4] != MAGIC:
            raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
        try:
            envelope = dict(_parts(body[4:]))
            head = {number: _text(value) for number, value in _parts(envelope.get(1, b""))}
            api_version, kind = head.get(1, ""), head.get(2, "")
            message = self._message_of(api_version, kind)
            if not message:
                raise _unknown(api_version, kind)
            return {"kind": kind, "apiVersion": api_version, **_read(envelope.get(2, b""), message, 0)}
        except (IndexError, struct.error, UnicodeDecodeError, TypeError, AttributeError, OverflowError) as error:
            raise bad_request(f"the protobuf body is broken: {error}") from None


def _unknown(api_version: str, kind: str) -> StatusError:
    return bad_request(f'no kind "{kind}" is registered for version "{api_version}"')


def _parts(raw: bytes) -> list[tuple[int, Any]]:
    """Split a message into its fields: number and value, which is bytes, or a number."""
    parts: list[tuple[int, Any]] = []
    place, end = 0, len(raw)
    while place < end:
        tag, place = _varint(raw, place)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == 0:
            value, place = _varint(raw, place)
        elif wire == 2:
            size, place = _varint(raw, place)
            if size > end - place:
                raise IndexError("it ends in the middle of a field")
            value, place = raw[place : place + size], place + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, place = raw[place : place + size], place + size
        else:
            raise IndexError(f"unknown wire type {wire}")
        parts.append((number, value))
    return parts


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise IndexError("a number has too many bytes")


@cache
def _by_number(message: str) -> Mapping[int, Field]:
    return {field.number: field for field in fields_of(message) or ()}


def _read(raw: bytes, message: str, depth: int) -> Object:
    if depth > _MAX_DEPTH:
        raise IndexError("it is nested too deeply")
    fields = _by_number(message)
    obj: Object = {}
    for number, value in _parts(raw):
        field = fields.get(number)
        if field is None:
            continue
        if not field.name:
            obj.update(_read(value, field.type[1:], depth + 1))
        elif field.type[0] == "[":
            obj.setdefault(field.name, []).append(_value(value, field.type[1:], depth))
        elif field.type[0] == "{":
            pair = dict(_parts(value))
            key = _text(pair.get(1, b""))
            obj.setdefault(field.name, {})[key] = _value(pair.get(2, b""), field.type[1:], depth)
        else:
            obj[field.name] = _value(value, field.type, depth)
    return obj


def _value(value: Any, type_: str, depth: int) -> Any:
    kind = type_[0]
    if kind == "s":
        return _text(value)
    if kind in "il":
        number = value if isinstance(value, int) else 0
        return number - (1 << 64) if number >= 1 << 63 else number
    if kind == "b":
        return bool(value)
    if kind == "m":
        return _read(value, type_[1:], depth + 1)
    if kind == "[":  # a list type inside of a map, such as an ExtraValue
        return [_value(item, type_[1:], depth) for _, item in _parts(value)]
    return _SPECIAL[kind](value)


def _text(value: Any) -> str:
    return bytes(value).decode()


def _time(value: bytes) -> str | None:
    moment = _moment(value)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: bytes) -> str | None:
    moment = _moment(value)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(value: bytes) -> datetime | None:
    parts = dict(_parts(value))
    seconds = int(parts.get(1, 0))
    seconds -= 1 << 64 if seconds >= 1 << 63 else 0
    if not parts or (seconds <= -62135596800 and not parts.get(2)):
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=int(parts.get(2, 0)) // 1000)


def _int_or_string(value: bytes) -> int | str:
    parts = dict(_parts(value))
    if parts.get(1, 0) == 1:
        return _text(parts.get(3, b""))
    number = int(parts.get(2, 0))
    return number - (1 << 64) if number >= 1 << 63 else number


def _quantity(value: bytes) -> str:
    return _text(dict(_parts(value)).get(1, b"")) or "0"


def _raw(value: bytes) -> Any:
    inner = dict(_parts(value)).get(1, b"")
    return msgspec.json.decode(inner) if inner else None


def _duration(value: bytes) -> str:
    nanoseconds = int(dict(_parts(value)).get(1, 0))
    return f"{nanoseconds / 1e9:g}s"


def _double(value: Any) -> float:
    return float(struct.unpack("<d" if len(value) == 8 else "<f", value)[0])


def _unsupported(value: Any) -> Any:
    raise bad_request("this field cannot be read from protobuf by this server: send the object as JSON")


_SPECIAL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "T": _time,
    "U": _micro_time,
    "I": _int_or_string,
    "Q": _quantity,
    "R": _raw,
    "D": _duration,
    "d": _double,
    "y": lambda value: base64.b64encode(bytes(value)).decode(),
    "X": _unsupported,
}

"""What built-in types look like on the wire, beyond their schema: what Go writes when a field is empty.

The facts come from `tools/wiregen.py`. `tidy` gives an object the exact form in which a Go server would write it again:
fields in their order, empty ones left out or written as the type demands, times and quantities in their one spelling.
"""

from __future__ import annotations

import base64
import binascii
import json
import lzma
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from flyball.api.quantity import Quantity

__all__ = ["Field", "Misfit", "fields_of", "tidy"]

Object = dict[str, Any]

_TYPED_INSIDE: Final = frozenset({"io.k8s.api.core.v1.PersistentVolumeClaim"})
"""Objects that say what they are although they are part of another one."""

_PUBLISHED: Final = "io.k8s."
_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_SHORT_TYPES: Final = {"i": "int32", "l": "int64", "b": "bool", "s": "string", "d": "float64", "y": "[]uint8"}


class Field(NamedTuple):
    """One field of a message: its JSON name, its number, its type, and what happens when it is empty."""

    name: str
    number: int
    type: str
    pointer: bool
    omit_empty: bool
    omit_zero: bool


class Misfit(ValueError):
    """A value is not of the type of its field; the message is worded as Go's decoder words it."""


@cache
def _facts() -> dict[str, list[tuple[str, int, str, str]]]:
    packed = (files("flyball.k8s") / "_facts" / "wire-1.36.json.xz").read_bytes()
    return json.loads(lzma.decompress(packed))  # type: ignore[no-any-return]


@cache
def fields_of(message: str) -> tuple[Field, ...] | None:
    """Return the fields of a published type, in the order in which they are written; None for types without fields."""
    known = _facts().get(message)
    if known is None:
        return None
    return tuple(
        Field(name, number, type_, "p" in flags, "o" in flags, "z" in flags) for name, number, type_, flags in known
    )


def tidy(value: Object, message: str) -> Object:
    """Return the object as a Go server writes it. Raises `Misfit`."""
    head = {name: value[name] for name in ("kind", "apiVersion") if name in value}
    return {**head, **_message(value, message, "")}


@cache
def _plan(message: str) -> tuple[tuple[str, _Rule], ...]:
    """Return how each field of a message is brought into form; inlined messages are part of it."""
    rules: list[tuple[str, _Rule]] = []
    for field in fields_of(message) or ():
        if not field.name:
            rules.extend(_plan(field.type[1:]))
        else:
            rules.append((field.name, _Rule(field, message.rpartition(".")[2])))
    return tuple(rules)


def _message(value: Any, message: str, path: str) -> Any:
    if not isinstance(value, dict):
        raise Misfit(
            f"json: cannot unmarshal {_go(value)} into Go struct field {path.lstrip('.')} of type {_short(message)}"
        )
    if fields_of(message) is None:
        return value
    written: Object = {}
    if path and message in _TYPED_INSIDE:
        written = {name: value[name] for name in ("kind", "apiVersion") if value.get(name)}
    for name, rule in _plan(message):
        given = value.get(name)
        if given is None:
            if rule.empty is not None:
                written[name] = rule.empty()
            continue
        kind = type(given)
        if kind is rule.plain:
            formed = given  # the usual case, and the quickest
        else:
            formed = rule.form(given, f"{path}.{name}")
        if not formed and rule.drops:
            continue
        written[name] = None if rule.forgets and not formed else formed
    return written


class _Rule:
    """How one field is brought into form."""

    __slots__ = ("_owner", "_type", "drops", "empty", "forgets", "plain")

    def __init__(self, field: Field, owner: str) -> None:
        self._type = field.type
        self._owner = owner
        kind = field.type[0]
        self.plain = {"s": str, "b": bool}.get(kind)
        """The type of values that are taken as they are."""
        plain = not field.pointer
        self.drops = (plain and field.omit_empty and kind in "silbdy[{") or (plain and field.omit_zero and kind in "mT")
        self.forgets = plain and kind in "[{"  # what has no items is as good as not there
        self.empty: Callable[[], Any] | None = None
        if field.pointer and not field.omit_empty:
            self.empty = _null
        if plain and not field.omit_zero:
            if kind == "m":
                self.empty = lambda: _message({}, field.type[1:], "")
            elif kind in "TUR":
                self.empty = _null
            elif kind in "QID":
                self.empty = {"Q": lambda: "0", "I": lambda: 0, "D": lambda: "0s"}[kind]
            elif not field.omit_empty:
                self.empty = {"s": str, "b": bool, "i": int, "l": int, "d": int}.get(kind, _null)

    def form(self, value: Any, path: str) -> Any:
        return _formed(value, self._type, path, self._owner)


def _null() -> None:
    return None


def _formed(value: Any, type_: str, path: str, owner: str) -> Any:
    kind = type_[0]
    if kind == "s":
        if isinstance(value, str):
            return value
    elif kind in "il":
        if isinstance(value, int) and not isinstance(value, bool):
            if -(1 << (31 if kind == "i" else 63)) <= value < 1 << (31 if kind == "i" else 63):
                return value
            raise Misfit(
                f"json: cannot unmarshal number {value} into Go struct field {owner}{path} of type {_SHORT_TYPES[kind]}"
            )
        if isinstance(value, float) and value.is_integer():
            return int(value)
    elif kind == "b":
        if isinstance(value, bool):
            return value
    elif kind == "m":
        if isinstance(value, dict):
            return _message(value, type_[1:], path)
    elif kind == "[":
        if isinstance(value, list):
            return [_item(item, type_[1:], path, owner) for item in value]
    elif kind == "{":
        if isinstance(value, dict):
            if type_ == "{s" and all(type(one) is str for one in value.values()):
                return dict(sorted(value.items()))
            return {name: _item(value[name], type_[1:], path, owner) for name in sorted(value)}
    else:
        return _special(value, kind, path, owner)
    raise Misfit(f"json: cannot unmarshal {_go(value)} into Go struct field {owner}{path} of type {_go_type(type_)}")


def _item(value: Any, type_: str, path: str, owner: str) -> Any:
    if value is None:
        kind = type_[0]
        return {"s": "", "i": 0, "l": 0, "b": False}.get(kind) if kind != "m" else _message({}, type_[1:], path)
    return _formed(value, type_, path, owner)


def _special(value: Any, kind: str, path: str, owner: str) -> Any:
    if kind in "TU" and isinstance(value, str):
        return _time(value, kind)
    if kind == "Q" and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return _quantity(str(value))
    if kind == "I" and isinstance(value, (str, int)) and not isinstance(value, bool):
        return value
    if kind == "d" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if kind == "y" and isinstance(value, str):
        return _bytes(value)
    if kind == "D" and isinstance(value, str):
        return value
    if kind in "RX":
        return value
    raise Misfit(f"json: cannot unmarshal {_go(value)} into Go struct field {owner}{path} of type {_go_type(kind)}")


_TIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)")
_PLAIN_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@lru_cache(maxsize=1024)
def _time(text: str, kind: str) -> str:
    if kind == "T" and _PLAIN_TIME.fullmatch(text):
        return text
    found = _TIME.fullmatch(text)
    layout = "2006-01-02T15:04:05Z07:00" if kind == "T" else "2006-01-02T15:04:05.000000Z07:00"
    if found is None or (kind == "U" and (found[7] is None or len(found[7]) != 6)):
        raise Misfit(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')
    try:
        moment = datetime.fromisoformat(text.replace(",", ".").replace("Z", "+00:00")).astimezone(UTC)
    except ValueError as error:
        raise Misfit(f'parsing time "{text}": {error}') from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S" + (".%fZ" if kind == "U" else "Z"))


@lru_cache(maxsize=4096)
def _quantity(text: str) -> str:
    try:
        return Quantity(text).canonical()
    except ValueError:
        raise Misfit(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def _bytes(text: str) -> str:
    try:
        return base64.b64encode(base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)).decode()
    except (binascii.Error, ValueError):
        raise Misfit(f"illegal base64 data at input byte {_first_bad(text)}") from None


def _first_bad(text: str) -> int:
    """Return where Go's decoder stops: at what is no letter, or where the last group begins if it is not complete."""
    plain = text.replace("\n", "").replace("\r", "")
    strange = next((place for place, letter in enumerate(plain) if letter not in _LETTERS), None)
    return len(plain) - len(plain) % 4 if strange is None else strange


def _go(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    return "array" if isinstance(value, list) else "number"


def _go_type(type_: str) -> str:
    kind = type_[0]
    if kind == "[":
        return f"[]{_go_type(type_[1:])}"
    if kind == "{":
        return f"map[string]{_go_type(type_[1:])}"
    if kind == "m":
        return _short(type_[1:])
    specials = {
        "T": "v1.Time",
        "U": "v1.MicroTime",
        "D": "v1.Duration",
        "Q": "resource.Quantity",
        "I": "intstr.IntOrString",
    }
    return _SHORT_TYPES.get(kind) or specials.get(kind, "runtime.RawExtension")


def _short(message: str) -> str:
    *_, version, name = message.removeprefix(_PUBLISHED).split(".")
    return f"{version}.{name}"

"""Types of expressions, and how they are fitted to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from flyball.api.cel.views import Shape

__all__ = [
    "ANY_LIST",
    "ANY_MAP",
    "BOOL",
    "BYTES",
    "CIDR",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "FORMAT",
    "INT",
    "IP",
    "NULL",
    "QUANTITY",
    "SEMVER",
    "STRING",
    "TIMESTAMP",
    "TYPE",
    "UINT",
    "URL",
    "Substitutions",
    "Type",
    "list_of",
    "map_of",
    "most_general",
    "object_of",
    "optional_of",
    "param",
    "shown",
    "signature",
    "type_of",
]


class Type:
    """A type: its kind, its name, its parameters; for an object also its fields."""

    __slots__ = ("fields", "kind", "name", "params", "shape")

    def __init__(self, kind: str, name: str = "", params: tuple[Type, ...] = ()) -> None:
        """Take the parts; `fields` (the types) and `shape` (the values) are set by who knows them."""
        self.kind = kind
        self.name = name or kind
        self.params = params
        self.fields: Mapping[str, Type] = {}
        self.shape: Shape | None = None

    def __eq__(self, other: object) -> bool:
        """Equal in kind, name and parameters."""
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        return self.kind == other.kind and self.name == other.name and self.params == other.params

    def __hash__(self) -> int:
        """Fit to equality."""
        return hash((self.kind, self.name, len(self.params)))

    def __repr__(self) -> str:
        """Show it as messages do."""
        return f"<Type {shown(self)}>"


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null", "null_type")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
DYN: Final = Type("dyn")
ERROR: Final = Type("error")
TYPE: Final = Type("type")
IP: Final = Type("opaque", "net.IP")
CIDR: Final = Type("opaque", "net.CIDR")
URL: Final = Type("object", "kubernetes.URL")
QUANTITY: Final = Type("object", "kubernetes.Quantity")
SEMVER: Final = Type("object", "kubernetes.Semver")
FORMAT: Final = Type("object", "kubernetes.NamedFormat")


def list_of(item: Type) -> Type:
    """Return the type of lists."""
    return Type("list", "list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of values that may be missing."""
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    """Return the type of types."""
    return Type("type", "type", (value,))


def param(name: str) -> Type:
    """Return a type that is found out."""
    return Type("param", name)


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    """Return the type of an object with these fields."""
    made = Type("object", name)
    made.fields = fields
    return made


ANY_LIST: Final = list_of(DYN)
ANY_MAP: Final = map_of(DYN, DYN)

_SHOWN: Final = {"error": "!error!", "null": "null", "duration": "duration", "timestamp": "timestamp"}


def shown(type_: Type) -> str:
    """Tell a type as messages do."""
    if type_.kind in _SHOWN:
        return _SHOWN[type_.kind]
    if not type_.params:
        return type_.name
    return f"{type_.name}({', '.join(map(shown, type_.params))})"


def signature(args: Sequence[Type], *, member: bool) -> str:
    """Tell the types that a function is called with."""
    target = f"{shown(args[0])}." if member else ""
    return f"{target}({', '.join(map(shown, args[1:] if member else args))})"


_NULLABLE: Final = frozenset({"opaque", "object", "duration", "timestamp", "null"})
_DYNAMIC: Final = frozenset({"dyn", "error"})


class Substitutions:
    """What is known of the type parameters so far."""

    __slots__ = ("_known",)

    def __init__(self, known: Mapping[str, Type] | None = None) -> None:
        """Start with what is known."""
        self._known: dict[str, Type] = dict(known or {})

    def fit(self, ones: Iterable[Type], others: Iterable[Type]) -> bool:
        """Tell whether types can stand for others, pairwise; only then something new is known."""
        before = dict(self._known)
        if all(self._fits(one, other) for one, other in zip(ones, others, strict=True)):
            return True
        self._known = before
        return False

    def resolve(self, type_: Type, *, free: bool = True) -> Type:
        """Put in what is known; what stays unknown becomes dyn, unless it may stay `free`."""
        while type_.kind == "param" and type_.name in self._known:
            type_ = self._known[type_.name]
        if type_.kind == "param":
            return type_ if free else DYN
        if not type_.params:
            return type_
        made = Type(type_.kind, type_.name, tuple(self.resolve(each, free=free) for each in type_.params))
        made.fields, made.shape = type_.fields, type_.shape
        return made

    def _fits(self, one: Type, other: Type) -> bool:
        if other.kind == "param":
            valid, known = self._substitutes(one, other)
            if valid or known:
                return valid
        if one.kind == "param":
            return self._substitutes(other, one)[0]
        if one.kind in _DYNAMIC or other.kind in _DYNAMIC:
            return True
        if one.kind == "null" or other.kind == "null":
            return (other if one.kind == "null" else one).kind in _NULLABLE
        if one.kind != other.kind or one.name != other.name:
            return False
        if one.kind == "type" or len(one.params) != len(other.params):
            return one.kind == "type"
        return all(self._fits(left, right) for left, right in zip(one.params, other.params, strict=True))

    def _substitutes(self, one: Type, parameter: Type) -> tuple[bool, bool]:
        """Tell whether a type can stand for a parameter, and whether something was known of it before."""
        if one == parameter:
            return True, True
        known = self._known.get(parameter.name)
        if known is not None:
            if known == one:
                return True, True
            if not self._fits(one, known):
                return False, True
            general = one if _is_as_general(one, known) else known
            if self._is_outside(parameter, general):
                self._known[parameter.name] = general
            return True, True
        if not self._is_outside(parameter, one):
            return False, False
        self._known[parameter.name] = one
        return True, False

    def _is_outside(self, parameter: Type, within: Type) -> bool:
        if parameter == within:
            return False
        if within.kind == "param":
            known = self._known.get(within.name)
            return known is None or self._is_outside(parameter, known)
        return all(self._is_outside(parameter, each) for each in within.params)


def _is_as_general(one: Type, other: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(_is_as_general, one.params, other.params))


def most_general(one: Type, other: Type) -> Type:
    """Return the more general of two types that fit."""
    return one if _is_as_general(one, other) else other

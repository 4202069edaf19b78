"""The words that say more about a field than its type does.

Most are written inside `Annotated`: `size: Annotated[int, Ge(0), Le(100)] = 1`. They constrain the schema of the CRD,
so the API server enforces them; nothing is checked when an object is decoded, since what the server stores must be
readable. Markers of a whole group of fields go into the class: `class Box(Model, rules=[ExactlyOneOf("a", "b")])`.

A marker without arguments may be written with or without parentheses: `Nullable` is `Nullable()`.

Each marker knows the schema types it fits; a misplaced one is refused when the class is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec

__all__ = [
    "AtLeastOneOf",
    "AtMostOneOf",
    "Default",
    "Description",
    "DescriptionLimit",
    "Discriminator",
    "EmbeddedResource",
    "Enum",
    "ExactlyOneOf",
    "Example",
    "Format",
    "Ge",
    "Gt",
    "Immutable",
    "Le",
    "ListMapKeys",
    "ListType",
    "Lt",
    "MapType",
    "Marker",
    "MaxItems",
    "MaxLength",
    "MaxProperties",
    "MinItems",
    "MinLength",
    "MinProperties",
    "ModelMarker",
    "MultipleOf",
    "NotRequired",
    "Nullable",
    "Pattern",
    "PreserveUnknown",
    "PrintColumn",
    "Rule",
    "Schema",
    "SelectableField",
    "SetOnce",
    "StructType",
    "Title",
    "UniqueItems",
]

_NUMBER = ("integer", "number", "int-or-string")
_TEXT = ("string", "int-or-string")


class Marker:
    """Something said about one field. `fits` are the schema types it may stand at; empty means any."""

    __slots__ = ()
    fits: ClassVar[tuple[str, ...]] = ()

    def keywords(self) -> dict[str, Any]:
        """What it adds to the schema of the field as it is."""
        return {}


class ModelMarker:
    """Something said about a whole group of fields, in the `rules` of its class."""

    __slots__ = ()

    def rules(self) -> list[Rule]:
        """The CEL rules that express it."""
        return []


class _Said(msgspec.Struct, Marker, frozen=True):
    """The base of markers with plain values: msgspec makes such classes twenty times as fast as dataclasses does."""


class Ge(_Said, frozen=True):
    """The number is at least `value`."""

    value: float
    fits = _NUMBER

    def keywords(self) -> dict[str, Any]:
        return {"minimum": self.value}


class Gt(_Said, frozen=True):
    """The number is greater than `value`."""

    value: float
    fits = _NUMBER

    def keywords(self) -> dict[str, Any]:
        return {"minimum": self.value, "exclusiveMinimum": True}


class Le(_Said, frozen=True):
    """The number is at most `value`."""

    value: float
    fits = _NUMBER

    def keywords(self) -> dict[str, Any]:
        return {"maximum": self.value}


class Lt(_Said, frozen=True):
    """The number is less than `value`."""

    value: float
    fits = _NUMBER

    def keywords(self) -> dict[str, Any]:
        return {"maximum": self.value, "exclusiveMaximum": True}


class MultipleOf(_Said, frozen=True):
    """The number is a multiple of `value`."""

    value: float
    fits = _NUMBER

    def keywords(self) -> dict[str, Any]:
        return {"multipleOf": self.value}


class MinLength(_Said, frozen=True):
    """The text has at least so many characters."""

    value: int
    fits = _TEXT

    def keywords(self) -> dict[str, Any]:
        return {"minLength": self.value}


class MaxLength(_Said, frozen=True):
    """The text has at most so many characters. It also lowers the estimated cost of rules about the text."""

    value: int
    fits = _TEXT

    def keywords(self) -> dict[str, Any]:
        return {"maxLength": self.value}


class Pattern(_Said, frozen=True):
    """The text matches this regular expression (RE2 syntax; anchor it with ^ and $)."""

    regex: str
    fits = _TEXT

    def keywords(self) -> dict[str, Any]:
        return {"pattern": self.regex}


class Format(_Said, frozen=True):
    """A named format, such as "ipv4", "uri", "int32"; the server ignores formats that it does not know."""

    name: str
    fits = ("string", "integer", "number")

    def keywords(self) -> dict[str, Any]:
        return {"format": self.name}


class Enum(Marker):
    """One of these values. `Literal` and `StrEnum` say the same to the type checker, too."""

    values: tuple[Any, ...]
    fits = ("string", "integer", "number", "boolean")

    def __init__(self, *values: Any) -> None:
        """The permitted values."""
        self.values = values

    def keywords(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


class MinItems(_Said, frozen=True):
    """The list has at least so many items."""

    value: int
    fits = ("array",)

    def keywords(self) -> dict[str, Any]:
        return {"minItems": self.value}


class MaxItems(_Said, frozen=True):
    """The list has at most so many items. It also lowers the estimated cost of rules about the items."""

    value: int
    fits = ("array",)

    def keywords(self) -> dict[str, Any]:
        return {"maxItems": self.value}


class UniqueItems(_Said, frozen=True):
    """No two items are equal: a list of scalars becomes a set, since `uniqueItems` is forbidden in a CRD."""

    fits = ("array",)

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "set"}


class MinProperties(_Said, frozen=True):
    """The map, or group of fields, has at least so many entries."""

    value: int
    fits = ("object",)

    def keywords(self) -> dict[str, Any]:
        return {"minProperties": self.value}


class MaxProperties(_Said, frozen=True):
    """The map, or group of fields, has at most so many entries."""

    value: int
    fits = ("object",)

    def keywords(self) -> dict[str, Any]:
        return {"maxProperties": self.value}


class ListType(_Said, frozen=True):
    """How server-side apply merges the list: as a whole, as a set of scalars, or item by item by `ListMapKeys`."""

    kind: Literal["atomic", "set", "map"]
    fits = ("array",)

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": self.kind}


class ListMapKeys(Marker):
    """The list is a map by these fields of its items (attribute names); implies `ListType("map")`."""

    keys: tuple[str, ...]
    fits = ("array",)

    def __init__(self, *keys: str) -> None:
        """The fields that name an item; each required or with a default."""
        self.keys = keys

    def keywords(self) -> dict[str, Any]:
        from flyball.api.naming import json_name

        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [json_name(key) for key in self.keys]}


class MapType(_Said, frozen=True):
    """How server-side apply merges the map: entry by entry (granular, the default) or as a whole."""

    kind: Literal["granular", "atomic"]
    fits = ("object",)

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-map-type": self.kind}


class StructType(MapType, frozen=True):
    """The same for a group of fields."""


class Nullable(_Said, frozen=True):
    """An explicit null is kept. Without it the server drops nulls before it fills in defaults."""

    def keywords(self) -> dict[str, Any]:
        return {"nullable": True}


class PreserveUnknown(_Said, frozen=True):
    """Fields that the schema does not name are kept instead of pruned. `Any` and `msgspec.Raw` need it."""

    fits = ("object", "any")

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-preserve-unknown-fields": True}


class EmbeddedResource(_Said, frozen=True):
    """A whole Kubernetes object with apiVersion, kind and metadata; a plain `dict[str, Any]` keeps all its fields."""

    fits = ("object",)

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-embedded-resource": True}


class Title(_Said, frozen=True):
    """A heading for the field in forms and documents."""

    text: str

    def keywords(self) -> dict[str, Any]:
        return {"title": self.text}


class Description(_Said, frozen=True):
    """What the field means; a docstring under the field says the same and is nicer to read."""

    text: str

    def keywords(self) -> dict[str, Any]:
        return {"description": self.text}


class DescriptionLimit(_Said, frozen=True):
    """Cut the descriptions at and below this field to so many characters; 0 leaves them out."""

    limit: int


class Example(_Said, frozen=True, eq=False):
    """A value for documents."""

    value: Any

    def keywords(self) -> dict[str, Any]:
        return {"example": self.value}


class Default(_Said, frozen=True, eq=False):
    """The default that the server fills in, where it is not that of the class (which also holds without a server)."""

    value: Any


class Schema(_Said, frozen=True, eq=False):
    """Schema keywords as they are, put over what the type says; `replace=True` forgets what the type says."""

    raw: Mapping[str, Any]
    replace: bool = False


class NotRequired(Marker):
    """Fields below this one, by dotted attribute path, that may be left out though their type requires them.

    `template: Annotated[PodTemplateSpec, NotRequired("spec.containers")]` is a pod template whose containers the
    operator supplies.
    """

    paths: tuple[str, ...]

    def __init__(self, *paths: str) -> None:
        """Dotted attribute paths."""
        self.paths = paths


class PrintColumn(_Said, frozen=True):
    """A column of `kubectl get`. At a field, name, path and type come from there; in `columns=` the path is needed.

    `priority` above 0 shows it with `-o wide` only. `type` is found from the schema where the path leads to a field.
    """

    name: str | None = None
    path: str | None = None
    type: Literal["integer", "number", "string", "boolean", "date"] | None = None
    format: str | None = None
    description: str | None = None
    priority: int = 0


class SelectableField(_Said, frozen=True):
    """`kubectl get --field-selector` and watches can select by this scalar field."""

    fits = ("string", "integer", "boolean")


Reason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]


class Rule(_Said, ModelMarker, frozen=True):
    """A CEL expression that must hold; `self` is the value it stands at, `oldSelf` makes it a rule about changes.

    At a field inside `Annotated`; for a group of fields in the `rules` of its class, also of the kind's own class.
    `field_path` names the field to blame, `message_expression` is CEL that yields the text. With
    `optional_old_self=True` the rule also runs when there is no old value (`oldSelf` is then an optional).
    """

    rule: str
    message: str | None = None
    message_expression: str | None = None
    reason: Reason | None = None
    field_path: str | None = None
    optional_old_self: bool = False

    def rules(self) -> list[Rule]:
        return [self]

    def as_json(self) -> dict[str, Any]:
        """The entry of x-kubernetes-validations."""
        entry = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self or None,
        }
        return {key: value for key, value in entry.items() if value is not None}


class Immutable(_Said, ModelMarker, frozen=True):
    """The value is given at creation and stays; an optional field can neither be added nor removed later."""

    message: str = "the field is immutable"

    def rules(self) -> list[Rule]:
        return [Rule("self == oldSelf", message=self.message)]


class SetOnce(_Said, frozen=True):
    """The value may be given later, and stays once it is given."""

    message: str = "the field cannot be changed once it is set"


class _Choice(ModelMarker):
    fields: tuple[str, ...]
    words: ClassVar[str] = ""
    test: ClassVar[str] = ""

    def __init__(self, *fields: str) -> None:
        """Attribute names of optional fields of the class."""
        self.fields = fields

    def rules(self) -> list[Rule]:
        from flyball.api.naming import json_name

        names = [json_name(name) for name in self.fields]
        present = ", ".join(f"has(self.{cel_name(name)})" for name in names)
        return [
            Rule(
                f"[{present}].filter(x, x).size() {self.test}",
                message=f"{self.words} of {', '.join(names)} must be set",
            )
        ]


class ExactlyOneOf(_Choice):
    """Exactly one of these fields is set."""

    words = "exactly one"
    test = "== 1"


class AtMostOneOf(_Choice):
    """At most one of these fields is set."""

    words = "at most one"
    test = "<= 1"


class AtLeastOneOf(_Choice):
    """At least one of these fields is set."""

    words = "at least one"
    test = ">= 1"


class Discriminator(msgspec.Struct, ModelMarker, frozen=True, eq=False):
    """A union: `field` names the member that is set. Values without a member of their own map to None.

    `Discriminator("type", {"Recreate": None, "RollingUpdate": "rolling_update"})`
    """

    field: str
    members: Mapping[str, str | None] = msgspec.field(default_factory=dict[str, str | None])

    def rules(self) -> list[Rule]:
        from flyball.api.naming import json_name

        tag = cel_name(json_name(self.field))
        found: dict[str, list[str]] = {}
        for value, member in self.members.items():
            if member is not None:
                found.setdefault(json_name(member), []).append(value)
        return [
            Rule(
                f"(has(self.{tag}) && self.{tag} in {_cel_list(values)}) == has(self.{cel_name(name)})",
                message=f"{name} must be set if, and only if, {json_name(self.field)} is {' or '.join(values)}",
            )
            for name, values in found.items()
        ]


_CEL_KEYWORDS = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)


def cel_name(name: str) -> str:
    """A field's name as CEL spells it: `__dash__` and the like, keywords in underscores."""
    if name in _CEL_KEYWORDS:
        return f"__{name}__"
    return (
        name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
    )


def _cel_list(values: Sequence[str]) -> str:
    return "[" + ", ".join("'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" for value in values) + "]"

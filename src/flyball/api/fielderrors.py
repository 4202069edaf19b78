"""A reason why a field of an object is refused, in the words that Kubernetes uses for it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["FieldError", "Reason", "Shown", "invalid_message"]


class Reason(Enum):
    """What is wrong with a field: how it is told to people, and its reason in a Status cause."""

    REQUIRED = ("Required value", "FieldValueRequired")
    INVALID = ("Invalid value", "FieldValueInvalid")
    TYPE_INVALID = ("Invalid value", "FieldValueTypeInvalid")
    NOT_SUPPORTED = ("Unsupported value", "FieldValueNotSupported")
    DUPLICATE = ("Duplicate value", "FieldValueDuplicate")
    FORBIDDEN = ("Forbidden", "FieldValueForbidden")
    NOT_FOUND = ("Not found", "FieldValueNotFound")
    TOO_LONG = ("Too long", "FieldValueTooLong")
    TOO_MANY = ("Too many", "FieldValueTooMany")
    INTERNAL = ("Internal error", "InternalError")

    def __init__(self, words: str, cause: str) -> None:
        """Keep the words and the cause apart."""
        self.words = words
        self.cause = cause


_WITHOUT_VALUE = frozenset({Reason.REQUIRED, Reason.FORBIDDEN, Reason.TOO_LONG, Reason.INTERNAL})
_OMITTED: Any = object()


class Shown(str):
    """A value that stands in a message as it is: what Go prints for something that has no form in JSON."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FieldError:
    """One refusal: the reason, the path of the field, the value that was found there, and what was expected."""

    reason: Reason
    field: str
    detail: str = ""
    value: Any = _OMITTED

    @classmethod
    def required(cls, field: str, detail: str = "") -> FieldError:
        """Say that a field must be given."""
        return cls(Reason.REQUIRED, field, detail)

    @classmethod
    def invalid(cls, field: str, value: Any, detail: str) -> FieldError:
        """Say that a value cannot stand in a field."""
        return cls(Reason.INVALID, field, detail, value)

    @classmethod
    def type_invalid(cls, field: str, value: Any, detail: str) -> FieldError:
        """Say that a value is of the wrong type."""
        return cls(Reason.TYPE_INVALID, field, detail, value)

    @classmethod
    def forbidden(cls, field: str, detail: str) -> FieldError:
        """Say that a field must not be given, or not be changed."""
        return cls(Reason.FORBIDDEN, field, detail)

    @classmethod
    def duplicate(cls, field: str, value: Any) -> FieldError:
        """Say that a value stands twice where it may stand once."""
        return cls(Reason.DUPLICATE, field, "", value)

    @classmethod
    def not_found(cls, field: str, value: Any) -> FieldError:
        """Say that something is named that does not exist."""
        return cls(Reason.NOT_FOUND, field, "", value)

    @classmethod
    def not_supported(cls, field: str, value: Any, allowed: list[str]) -> FieldError:
        """Say that a value is none of those that are allowed."""
        names = ", ".join(_quoted(one) for one in allowed)
        return cls(Reason.NOT_SUPPORTED, field, f"supported values: {names}" if allowed else "", value)

    @classmethod
    def too_long(cls, field: str, limit: int) -> FieldError:
        """Say that a text has more bytes than it may have."""
        unit = "byte" if limit == 1 else "bytes"
        return cls(
            Reason.TOO_LONG, field, f"may not be more than {limit} {unit}" if limit >= 0 else "value is too long"
        )

    @classmethod
    def too_many(cls, field: str, found: int, limit: int) -> FieldError:
        """Say that a list or map has more items than it may have."""
        unit = "item" if limit == 1 else "items"
        detail = f"must have at most {limit} {unit}" if limit >= 0 else "has too many items"
        return cls(Reason.TOO_MANY, field, detail, found)

    def body(self) -> str:
        """Tell the refusal without the field."""
        words = self.reason.words
        if self.reason not in _WITHOUT_VALUE and self.value is not _OMITTED:
            words = f"{words}: {_shown(self.value)}"
        return f"{words}: {self.detail}" if self.detail else words

    def __str__(self) -> str:
        """Tell the refusal as an API server does."""
        return f"{self.field or '<nil>'}: {self.body()}"

    def cause(self) -> dict[str, str]:
        """Give the refusal as a cause of a Status."""
        return {"reason": self.reason.cause, "message": self.body(), "field": self.field or "<nil>"}


def invalid_message(kind: str, name: str, errors: list[FieldError]) -> str:
    """Tell all refusals of one object in the sentence of an Invalid status."""
    told = [str(error) for error in dict.fromkeys(str(error) for error in errors)]
    return f"{kind} {_quoted(name)} is invalid: {told[0] if len(told) == 1 else '[' + ', '.join(told) + ']'}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Shown):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _quoted(text: str) -> str:
    """Quote a text as Go does."""
    return re.sub(r"\\u00([01][0-9a-f])", r"\\x\1", json.dumps(text, ensure_ascii=False))

"""What is checked of custom objects beside their schema: metadata, and the objects that are embedded in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.api.structural import Schema, prune
from flyball.controlplane.apiserver.crds.versions import OBJECT_META, object_meta_schema
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.metadata import validate_metadata
from flyball.controlplane.apiserver.names import is_label_1035, is_path_segment
from flyball.controlplane.apiserver.status import StatusError, bad_request
from flyball.controlplane.apiserver.wire import Misfit, tidy

__all__ = ["Objects", "embedded_errors", "kind_words", "must_have_kind"]

Object = dict[str, Any]


_SUMMARY: Final = 30


def must_have_kind(kind: Kind, obj: Object, raw: bytes) -> None:
    """Refuse an object that names a kind, and names none. Raises BadRequest."""
    if "kind" in obj and obj["kind"] is None:
        text = raw.decode("utf-8", "replace")
        summary = f"{text[:_SUMMARY]} ..." if len(text) > _SUMMARY else text
        told = f"must be of type {kind.kind}): Object 'Kind' is missing in '{text}' ({summary})"
        raise bad_request(f"the object provided is unrecognized ({told}")


def _plain_number(value: float) -> float:
    """Write a number without a fraction as what it is: a whole number."""
    return int(value) if value.is_integer() and abs(value) < _WHOLE_UP_TO else value


def _whole_numbers(value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, float):
                value[name] = _plain_number(inner)
            elif isinstance(inner, (dict, list)):
                _whole_numbers(inner)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            if isinstance(inner, float):
                value[place] = _plain_number(inner)
            else:
                _whole_numbers(inner)


_WHOLE_UP_TO: Final = 1e21


class Objects:
    """Brings metadata and embedded objects into shape, and judges the embedded ones."""

    def __init__(self, schema: Callable[[], Schema]) -> None:
        """Take the schema of the kind, which is compiled when it is first asked for."""
        self._schema = schema

    def coerce(self, obj: Object, unknown: list[str]) -> None:
        """Make metadata what it is everywhere; name the fields that are dropped. Raises BadRequest."""
        found: list[str] = []
        _whole_numbers(obj)
        _coerce_metadata(obj, "", found)
        schema = self._schema()
        for name, value in obj.items():
            if name not in ("apiVersion", "kind", "metadata"):
                _coerce(value, schema.child(name), name, found)
        unknown.extend(sorted(found))

    def validate(self, obj: Object) -> list[FieldError]:
        """Judge the embedded objects."""
        errors: list[FieldError] = []
        schema = self._schema()
        for name, value in obj.items():
            if name not in ("apiVersion", "kind", "metadata"):
                _validate(value, schema.child(name), name, errors)
        return errors


def _coerce(value: Any, schema: Schema | None, path: str, unknown: list[str]) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.embedded:
            for name in ("apiVersion", "kind"):
                if name in value and not isinstance(value[name], str):
                    raise _malformed(f"{path}.{name}", value[name], "must be a string")
            if "metadata" in value:
                _coerce_metadata(value, path, unknown)
        for name, inner in value.items():
            if isinstance(inner, (dict, list)):
                _coerce(inner, schema.child(name), f"{path}.{name}", unknown)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _coerce(item, schema.items, f"{path}[{place}]", unknown)


def _coerce_metadata(obj: Object, path: str, unknown: list[str]) -> None:
    where = f"{path}.metadata" if path else "metadata"
    metadata = obj.get("metadata")
    if metadata is None:
        obj.pop("metadata", None)
        return
    if not isinstance(metadata, dict):
        raise _malformed(where, metadata, "must be an object")
    unknown.extend(f"{where}.{field}" for field in prune(metadata, object_meta_schema(), root=False))
    try:
        obj["metadata"] = tidy(metadata, OBJECT_META)
    except Misfit as wrong:
        raise _malformed(where, metadata, str(wrong)) from None
    if obj["metadata"].get("creationTimestamp") is None:
        obj["metadata"].pop("creationTimestamp", None)


def _malformed(path: str, value: Any, why: str) -> StatusError:
    return StatusError(400, "BadRequest", str(FieldError.invalid(path, value, why)))


def _validate(value: Any, schema: Schema | None, path: str, errors: list[FieldError]) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.embedded:
            errors.extend(embedded_errors(value, path))
        for name, inner in value.items():
            if isinstance(inner, (dict, list)):
                where = f"{path}.{name}" if name in schema.properties else f"{path}[{name}]"
                _validate(inner, schema.child(name), where, errors)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _validate(item, schema.items, f"{path}[{place}]", errors)


def embedded_errors(obj: Object, path: str) -> list[FieldError]:
    """Judge an object that is embedded in another one: its type and its metadata."""
    errors = [FieldError.required(f"{path}.{name}") for name in ("apiVersion", "kind") if name not in obj]
    for name, check in (("apiVersion", _api_version_words), ("kind", kind_words)):
        value = obj.get(name)
        if isinstance(value, str):
            errors.extend(FieldError.invalid(f"{path}.{name}", value, words) for words in check(value))
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        named = {**metadata, "name": metadata.get("name") or "unnamed"}
        for error in validate_metadata(named, is_path_segment, bool(metadata.get("namespace"))):
            errors.append(FieldError(error.reason, f"{path}.{error.field}", error.detail, error.value))
    return errors


def _api_version_words(text: str) -> list[str]:
    if not text:
        return ["must not be empty"]
    return [f"unexpected GroupVersion string: {text}"] if text.count("/") > 1 else []


def kind_words(text: str) -> list[str]:
    """Judge the name of a kind: a label, but with capital letters."""
    if not text:
        return ["must not be empty"]
    words = is_label_1035(text.lower())
    return [f"may have mixed case, but should otherwise match: {','.join(words)}"] if words else []

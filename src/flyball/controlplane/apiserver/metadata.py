"""The rules of `metadata`: what the server sets, what a writer may set, and what nobody may change."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Shown
from flyball.controlplane.apiserver.names import NameCheck, is_label_value, is_qualified_name

__all__ = [
    "generate_name",
    "is_generated",
    "keep_on_update",
    "set_on_create",
    "time_text",
    "validate_metadata",
    "validate_metadata_update",
]

Object = dict[str, Any]

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_MAX_PREFIX: Final = 58
_MAX_ANNOTATIONS: Final = 256 * 1024
_BUILT_IN_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


def time_text(moment: datetime) -> str:
    """Write a time as metav1.Time does: whole seconds, UTC."""
    return moment.astimezone(UTC).isoformat()[:19] + "Z"


def generate_name(prefix: str) -> str:
    """Make a name from a prefix."""
    return prefix[:_MAX_PREFIX] + "".join(random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))  # noqa: S311 - a name, no secret


def is_generated(name: str, prefix: str) -> bool:
    """Tell whether a name looks like one that was made from a prefix."""
    head, tail = name[:-_SUFFIX_LENGTH], name[-_SUFFIX_LENGTH:]
    return head == prefix[:_MAX_PREFIX] and set(tail) <= set(_SUFFIX_LETTERS)


def set_on_create(metadata: Object, now: datetime, *, has_generation: bool) -> None:
    """Set what only the server sets; whatever the writer put there goes."""
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion"):
        metadata.pop(field, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = time_text(now)
    if has_generation:
        metadata["generation"] = 1


def keep_on_update(metadata: Object, old: Mapping[str, Any]) -> None:
    """Fill in what a writer may leave out of an update, and keep what it cannot set."""
    for field in ("uid", "generateName"):
        if not metadata.get(field) and old.get(field):
            metadata[field] = old[field]
    metadata["creationTimestamp"] = old.get("creationTimestamp")
    for field in ("generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(field, None)
        if field in old:
            metadata[field] = old[field]
    metadata.pop("resourceVersion", None)


def validate_metadata(metadata: Object, name: NameCheck, namespaced: bool) -> list[FieldError]:
    """Judge the metadata of any object."""
    errors: list[FieldError] = []
    if metadata.get("generateName"):
        words = name(metadata["generateName"], True)
        errors.extend(FieldError.invalid("metadata.generateName", metadata["generateName"], word) for word in words)
    if not metadata.get("name"):
        errors.append(FieldError.required("metadata.name", "name or generateName is required"))
    else:
        words = name(metadata["name"], False)
        errors.extend(FieldError.invalid("metadata.name", metadata["name"], word) for word in words)
    if not namespaced and metadata.get("namespace"):
        errors.append(FieldError.forbidden("metadata.namespace", "not allowed on this type"))
    errors.extend(validate_labels(metadata.get("labels"), "metadata.labels"))
    errors.extend(_annotations(metadata.get("annotations") or {}))
    errors.extend(_owners(metadata.get("ownerReferences") or []))
    errors.extend(_finalizers(metadata.get("finalizers") or []))
    return errors


def validate_labels(labels: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Judge keys and values of labels."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors.extend(FieldError.invalid(path, key, word) for word in is_qualified_name(key))
        errors.extend(FieldError.invalid(path, value, word) for word in is_label_value(value))
    return errors


def _annotations(annotations: Mapping[str, str]) -> list[FieldError]:
    errors = [
        FieldError.invalid("metadata.annotations", key, word)
        for key in annotations
        for word in is_qualified_name(key.lower())
    ]
    if sum(len(key) + len(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        errors.append(FieldError.too_long("metadata.annotations", _MAX_ANNOTATIONS))
    return errors


def _owners(owners: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    controller: Object | None = None
    for place, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{place}]"
        for field, words in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not owner.get(field):
                errors.append(FieldError.invalid(f"metadata.ownerReferences.{field}", owner.get(field, ""), words))
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            errors.append(FieldError.invalid(path, "", "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            if controller is not None:
                words = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller.get('kind')}/{controller.get('name')} and {owner.get('kind')}/{owner.get('name')}"
                )
                written = Shown(json.dumps(owners, separators=(",", ":")))
                errors.append(FieldError.invalid("metadata.ownerReferences", written, words))
            controller = owner
    return errors


def _finalizers(finalizers: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for finalizer in finalizers:
        words = is_qualified_name(finalizer)
        errors.extend(FieldError.invalid("metadata.finalizers", finalizer, word) for word in words)
    for place, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _BUILT_IN_FINALIZERS:
            told = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(FieldError.invalid(f"metadata.finalizers[{place}]", finalizer, told))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        told = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(FieldError.invalid("metadata.finalizers", finalizers, told))
    return errors


def validate_metadata_update(metadata: Object, old: Mapping[str, Any]) -> list[FieldError]:
    """Judge a change of metadata."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        before = old.get("finalizers") or []
        added = [finalizer for finalizer in metadata.get("finalizers") or [] if finalizer not in before]
        if added:
            told = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{', '.join(_quoted(finalizer) for finalizer in added)}}}"
            )
            errors.append(FieldError.forbidden("metadata.finalizers", told))
    for field in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if metadata.get(field) != old.get(field):
            errors.append(FieldError.invalid(f"metadata.{field}", metadata.get(field), "field is immutable"))
    return errors


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

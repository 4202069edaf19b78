"""What is wrong with a definition, in the words of an API server.

A part of a version that is the same in all versions is reported where definitions had it before they had versions:
`spec.validation`, `spec.subresources`, `spec.additionalPrinterColumns`, `spec.selectableFields`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from flyball.api.fielderrors import FieldError, Shown
from flyball.api.structural.formats import checker
from flyball.controlplane.apiserver.crds.conversion import check_conversion
from flyball.controlplane.apiserver.crds.default_values import check_defaults
from flyball.controlplane.apiserver.crds.definition import is_true
from flyball.controlplane.apiserver.crds.fieldpaths import FieldPathError, field_at
from flyball.controlplane.apiserver.crds.keywords import check_keywords
from flyball.controlplane.apiserver.crds.objects import kind_words
from flyball.controlplane.apiserver.crds.structure import check_structure
from flyball.controlplane.apiserver.names import is_label_1035, is_subdomain

__all__ = ["SchemaCheck", "format_warnings", "validate_definition", "validate_definition_update"]

Object = Mapping[str, Any]
_Errors = list[FieldError]
SchemaCheck = Callable[[Object, str], list[FieldError]]
"""Takes a schema and its path; returns what is wrong with the rules in it."""

_COLUMN_TYPES: Final = ["boolean", "date", "integer", "number", "string"]
_COLUMN_FORMATS: Final = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"]
_APPROVAL: Final = "api-approved.kubernetes.io"
_APPROVALS: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_MAX_SELECTABLE: Final = 8
_MAX_WARNING: Final = 256
_AT_ROOT: Final = (
    *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items"),
    *("properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
)
_AT_ROOT_WORDS: Final = " ".join(
    f"X{''.join(part.capitalize() for part in name.removeprefix('x-kubernetes-').split('-'))}"
    if name.startswith("x-")
    else name[0].upper() + name[1:]
    for name in _AT_ROOT
)


def validate_definition(obj: Object, rules: SchemaCheck) -> _Errors:
    """Judge a new definition."""
    spec: Object = obj.get("spec") or {}
    return [
        *_name(obj, spec),
        *_spec(spec, rules),
        *_stored(obj, spec),
        *_approval(obj, spec, None),
        *_preserve(spec, {}),
    ]


def validate_definition_update(obj: Object, old: Object, rules: SchemaCheck) -> _Errors:
    """Judge a change of a definition: what objects depend on stays."""
    spec: Object = obj.get("spec") or {}
    before: Object = old.get("spec") or {}
    errors = _spec(spec, rules)
    if is_true(old, "Established"):
        errors += _immutable(spec, before, "scope")
        errors += _immutable(spec, before, "names", "kind")
    errors += _immutable(spec, before, "group")
    errors += _immutable(spec, before, "names", "plural")
    return [*errors, *_stored(obj, spec), *_approval(obj, spec, old), *_preserve(spec, before)]


def format_warnings(obj: Object) -> list[str]:
    """Name the formats in the schemas of a definition that are only remarks: nothing is held to them."""
    found: list[str] = []
    for version in (obj.get("spec") or {}).get("versions") or ():
        _formats(_schema(version), found)
    return [f'unrecognized format "{name}"' for name in dict.fromkeys(found)]


def _formats(schema: Any, found: list[str]) -> None:
    if not isinstance(schema, Mapping):
        return
    format_, type_ = schema.get("format"), schema.get("type") or ""
    if format_ and not _is_known(str(format_), str(type_)):
        found.append(str(format_))
    for name in ("items", "additionalProperties", "not"):
        _formats(schema.get(name), found)
    for child in (schema.get("properties") or {}).values():
        _formats(child, found)
    for junctor in ("allOf", "anyOf", "oneOf"):
        for child in schema.get(junctor) or ():
            _formats(child, found)


def _is_known(format_: str, type_: str) -> bool:
    if type_ in _NUMBER_FORMATS:
        return format_ in _NUMBER_FORMATS[type_]
    return type_ in ("", "string") and checker(format_) is not None


_NUMBER_FORMATS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def _immutable(spec: Object, before: Object, *path: str) -> _Errors:
    now: Any = spec
    then: Any = before
    for part in path:
        now, then = (now or {}).get(part), (then or {}).get(part)
    return [] if now == then else [FieldError.invalid(".".join(("spec", *path)), now or "", "field is immutable")]


def _name(obj: Object, spec: Object) -> _Errors:
    name = obj["metadata"].get("name") or ""
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    if not name or name == wanted:
        return []
    return [FieldError.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def _spec(spec: Object, rules: SchemaCheck) -> _Errors:
    errors: _Errors = []
    group = spec.get("group") or ""
    if not group:
        errors.append(FieldError.required("spec.group"))
    elif is_subdomain(group):
        errors.append(FieldError.invalid("spec.group", group, ",".join(is_subdomain(group))))
    elif "." not in group:
        errors.append(FieldError.invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope") or ""
    if not scope:
        errors.append(FieldError.required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(FieldError.not_supported("spec.scope", scope, ["Cluster", "Namespaced"]))
    errors += _versions(spec, rules)
    errors += _names(spec.get("names") or {})
    return errors + check_conversion(spec.get("conversion") or {})


# Versions


def _versions(spec: Object, rules: SchemaCheck) -> _Errors:
    versions: list[Object] = list(spec.get("versions") or ())
    errors: _Errors = []
    for place, version in enumerate(versions):
        path, name = f"spec.versions[{place}]", version.get("name") or ""
        if _schema(version) is None:
            errors.append(FieldError.required(f"{path}.schema.openAPIV3Schema"))
        words = is_label_1035(name)
        if words:
            errors.append(FieldError.invalid(f"{path}.name", name, ",".join(words)))
            if place == 0:
                errors.append(FieldError.invalid("spec.version", name, ",".join(words)))
        errors += _warning(version, path)
    errors += _parts(versions, rules)
    shown = Shown(json.dumps([_shown(version, versions) for version in versions], separators=(",", ":")))
    if len({version.get("name") for version in versions}) != len(versions):
        errors.append(FieldError.invalid("spec.versions", shown, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        words_ = "must have exactly one version marked as storage version"
        errors.append(FieldError.invalid("spec.versions", shown, words_))
    return errors


def _schema(version: Object) -> Object | None:
    found: Object | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _parts(versions: list[Object], rules: SchemaCheck) -> _Errors:
    """Judge the parts of all versions; a part that all have alike is judged once."""
    errors: _Errors = []
    status = [(version.get("subresources") or {}).get("status") is not None for version in versions]
    for place, where in _places(versions, "schema", "spec.validation"):
        schema = _schema(versions[place])
        if schema is not None:
            has_status = status[place] if where != "spec.validation" else any(status)
            errors += _of_schema(schema, f"{where}.openAPIV3Schema", rules, has_status=has_status)
    for place, where in _places(versions, "subresources", "spec.subresources"):
        errors += _subresources(versions[place].get("subresources") or {}, where)
    for place, where in _places(versions, "additionalPrinterColumns", "spec.additionalPrinterColumns"):
        for number, column in enumerate(versions[place].get("additionalPrinterColumns") or ()):
            errors += _column(column, f"{where}[{number}]")
    for place, where in _places(versions, "selectableFields", "spec.selectableFields"):
        schema = _schema(versions[place])
        if schema is not None:
            errors += _selectable(versions[place].get("selectableFields") or [], schema, where)
    return errors


def _alike(versions: list[Object], part: str) -> bool:
    return all(version.get(part) == versions[0].get(part) for version in versions)


def _places(versions: list[Object], part: str, shared: str) -> list[tuple[int, str]]:
    if versions and _alike(versions, part):
        return [(0, shared)]
    return [(place, f"spec.versions[{place}].{part}") for place in range(len(versions))]


def _shown(version: Object, versions: list[Object]) -> dict[str, Any]:
    """Give a version as messages show it; parts that all have alike are shown elsewhere, that is: not at all."""
    parts = {
        "Schema": "schema",
        "Subresources": "subresources",
        "AdditionalPrinterColumns": "additionalPrinterColumns",
        "SelectableFields": "selectableFields",
    }
    return {
        "Name": version.get("name") or "",
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        **{shown: None if _alike(versions, part) else version.get(part) for shown, part in parts.items()},
    }


def _warning(version: Object, path: str) -> _Errors:
    warning, where = version.get("deprecationWarning"), f"{path}.deprecationWarning"
    if warning is None:
        return []
    if not version.get("deprecated"):
        return [FieldError.invalid(where, warning, "can only be set for deprecated versions")]
    words: list[str] = []
    if len(warning.encode()) > _MAX_WARNING:
        words.append("must be <= 256 characters long")
    if not warning:
        words.append("must not be an empty string")
    unprintable = next((place for place, one in enumerate(warning) if not one.isprintable()), None)
    if unprintable is not None:
        place = len(warning[:unprintable].encode())
        told = "must only contain printable UTF-8 characters; non-printable character found at index"
        words.append(f"{told} {place}")
    return [FieldError.invalid(where, warning, word) for word in words]


def _of_schema(schema: Object, path: str, rules: SchemaCheck, *, has_status: bool) -> _Errors:
    errors: _Errors = []
    if has_status:
        errors += _root_with_status(schema, path)
    if schema.get("nullable"):
        errors.append(FieldError.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    unsupported = check_keywords(schema, path)
    structural = [] if _cannot_be_read(schema) else check_structure(schema, path)
    structural = structural or ([] if _cannot_be_read(schema) else check_defaults(schema, path))
    errors += structural + unsupported
    return errors or rules(schema, path)


def _cannot_be_read(schema: Any) -> bool:
    """Tell whether a schema uses a keyword with which it is no structural schema at all: that is the only finding."""
    if not isinstance(schema, Mapping):
        return False
    if any(schema.get(word) for word in _UNREADABLE) or isinstance(schema.get("items"), list):
        return True
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return True
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    below += [child for word in ("allOf", "anyOf", "oneOf") for child in schema.get(word) or ()]
    return any(map(_cannot_be_read, [*below, schema.get("not")]))


_UNREADABLE: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")


def _root_with_status(schema: Object, path: str) -> _Errors:
    for name, value in schema.items():
        if not value and value != 0:
            continue
        if name == "type" and value != "object":
            words = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            return [FieldError.invalid(f"{path}.type", value, words)]
        if name not in _AT_ROOT:
            words = (
                f"only [{_AT_ROOT_WORDS}] fields are allowed at the root of the schema if the status subresource is "
                "enabled"
            )
            return [FieldError.invalid(path, schema, words)]
    return []


# The other parts


def _simple_path(value: str, path: str) -> _Errors:
    return (
        [] if value.startswith(".") else [FieldError.invalid(path, value, "must be a simple json path starting with .")]
    )


def _subresources(parts: Object, path: str) -> _Errors:
    scale = parts.get("scale")
    if scale is None:
        return []
    errors: _Errors = []
    for name, prefixes in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        where, value = f"{path}.scale.{name}", scale.get(name) or ""
        if not value:
            errors.append(FieldError.required(where))
            continue
        wrong = _simple_path(value, where)
        if not wrong and not value.startswith(prefixes):
            wrong = [FieldError.invalid(where, value, f"should be a json path under {prefixes[0].rstrip('.')}")]
        errors += wrong
    selector = scale.get("labelSelectorPath") or ""
    if selector:
        where = f"{path}.scale.labelSelectorPath"
        wrong = _simple_path(selector, where)
        if not wrong and not selector.startswith((".spec.", ".status.")):
            wrong = [FieldError.invalid(where, selector, "should be a json path under either .spec or .status")]
        errors += wrong
    return errors


def _column(column: Object, path: str) -> _Errors:
    errors: _Errors = []
    if not column.get("name"):
        errors.append(FieldError.required(f"{path}.name"))
    type_, words = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type_:
        errors.append(FieldError.required(f"{path}.type", words))
    elif type_ not in _COLUMN_TYPES:
        errors.append(FieldError.invalid(f"{path}.type", type_, words))
    format_ = column.get("format") or ""
    if format_ and format_ not in _COLUMN_FORMATS:
        errors.append(FieldError.invalid(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not column.get("jsonPath"):
        errors.append(FieldError.required(f"{path}.JSONPath"))
    else:
        errors += _simple_path(column["jsonPath"], f"{path}.JSONPath")
    return errors


def _selectable(fields: list[Object], schema: Object, path: str) -> _Errors:
    errors: _Errors = []
    seen: set[tuple[str, ...]] = set()
    for place, field in enumerate(fields):
        where, value = f"{path}[{place}].jsonPath", field.get("jsonPath") or ""
        if not value:
            errors.append(FieldError.required(where))
            continue
        try:
            names, found = field_at(schema, value, brackets=False)
        except FieldPathError as wrong:
            errors.append(FieldError.invalid(where, value, f"is an invalid path: {wrong}"))
            continue
        if names[0] == "metadata":
            errors.append(FieldError.invalid(where, value, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            words = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(FieldError.invalid(where, value, words))
        if names in seen:
            errors.append(FieldError.duplicate(where, value))
        seen.add(names)
    if len(seen) > _MAX_SELECTABLE:
        errors.append(FieldError.too_many(path, len(seen), _MAX_SELECTABLE))
    return errors


def _names(names: Object) -> _Errors:
    errors = [
        FieldError.required(f"spec.names.{name}")
        for name in ("plural", "singular", "kind", "listKind")
        if not names.get(name)
    ]
    for name in ("plural", "singular"):
        words = is_label_1035(names.get(name) or "a")
        if words:
            errors.append(FieldError.invalid(f"spec.names.{name}", names[name], ",".join(words)))
    for name in ("kind", "listKind"):
        words = kind_words(names.get(name) or "A")
        errors.extend(FieldError.invalid(f"spec.names.{name}", names[name], word) for word in words)
    for name in ("shortNames", "categories"):
        for place, value in enumerate(names.get(name) or ()):
            words = is_label_1035(value)
            if words:
                errors.append(FieldError.invalid(f"spec.names.{name}[{place}]", value, ",".join(words)))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        told = "kind and listKind may not be the same"
        errors.append(FieldError.invalid("spec.names.listKind", names["listKind"], told))
    return errors


def _stored(obj: Object, spec: Object) -> _Errors:
    stored: list[str] = (obj.get("status") or {}).get("storedVersions") or []
    path = "status.storedVersions"
    if not stored:
        return [FieldError.invalid(path, Shown("null"), "must have at least one stored version")]
    versions = {version.get("name"): version for version in spec.get("versions") or ()}
    errors = [
        FieldError.invalid(path, stored, f"must have the storage version {name}")
        for name, version in versions.items()
        if version.get("storage") and name not in stored
    ]
    for place, name in enumerate(stored):
        if name not in versions:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            errors.append(FieldError.invalid(f"{path}[{place}]", name, words))
    return errors


def _approval(obj: Object, spec: Object, old: Object | None) -> _Errors:
    """Groups of the Kubernetes community need to be approved there, and must say where they were."""
    group = spec.get("group") or ""
    if not re.search(r"(^|\.)(k8s\.io|kubernetes\.io)$", group):
        return []
    value = (obj["metadata"].get("annotations") or {}).get(_APPROVAL) or ""
    if old is not None and _approved(value) == _approved(
        (old["metadata"].get("annotations") or {}).get(_APPROVAL) or ""
    ):
        return []
    path = f"metadata.annotations[{_APPROVAL}]"
    needed = f'protected groups must have approval annotation "{_APPROVAL}"'
    state = _approved(value)
    if state == "missing":
        return [FieldError.required(path, f"{needed}, {_APPROVALS}")]
    if state == "invalid":
        words = f'{needed} with either a URL or a reason starting with "unapproved", {_APPROVALS}'
        return [FieldError.invalid(path, value, words)]
    return []


def _approved(value: str) -> str:
    if not value:
        return "missing"
    if value.startswith("unapproved"):
        return "bypassed"
    try:
        parts = urlsplit(value)
    except ValueError:
        return "invalid"
    return "approved" if parts.scheme and parts.netloc else "invalid"


def _preserve(spec: Object, before: Object) -> _Errors:
    if not spec.get("preserveUnknownFields") or before.get("preserveUnknownFields"):
        return []
    words = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [FieldError.invalid("spec.preserveUnknownFields", True, words)]

"""Check a value against a schema, with the findings and the wording of an API server."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from flyball.api.fielderrors import FieldError, Reason
from flyball.api.structural.patterns import compile_pattern
from flyball.api.structural.schema import Schema

__all__ = ["RULES_NOT_CHECKED", "blocks_rules", "same", "validate", "validate_lists"]

_Errors = list[FieldError]

_BLOCKING = frozenset({Reason.REQUIRED, Reason.NOT_SUPPORTED, Reason.TOO_LONG, Reason.TOO_MANY, Reason.TYPE_INVALID})
RULES_NOT_CHECKED = FieldError.invalid(
    "",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
"""What is reported in place of the findings of CEL rules when the object is too broken to ask them."""


def validate(value: Any, schema: Schema, path: str = "") -> list[FieldError]:
    """Check a value, all of it; the result is empty when nothing is wrong."""
    errors: _Errors = []
    _node(value, schema, path, errors)
    return errors if len(errors) < 2 else _distinct(errors)


def blocks_rules(errors: list[FieldError]) -> bool:
    """Tell whether rules cannot be asked, because the object is not of the shape that they were written for."""
    return any(error.reason in _BLOCKING for error in errors)


def _distinct(errors: _Errors) -> _Errors:
    """Keep the first of equal findings: a value may be looked at through several branches of a schema."""
    return list({str(error): error for error in reversed(errors)}.values())[::-1]


def _node(value: Any, schema: Schema, path: str, errors: _Errors) -> int:
    """Check one value. Returns how many checks were made: the branch of an `anyOf` that got furthest is reported."""
    if value is None:
        checks = _type(value, schema, path, errors)
        if schema.enum:
            _enum(value, schema, path, errors)
        return checks
    checks = 3
    if schema.types or schema.format:
        checks += 1 + _type(value, schema, path, errors)
    if schema.any_of or schema.one_of or schema.all_of or schema.not_ is not None:
        checks += _junctors(value, schema, path, errors)
    if isinstance(value, str):
        checks += 1 + _string(value, schema, path, errors)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        checks += 2
        _number(value, schema, path, errors)
    elif isinstance(value, list):
        checks += 2 + _list(value, schema, path, errors)
    if schema.enum:
        _enum(value, schema, path, errors)
    if isinstance(value, dict):
        checks += 1 + _object(value, schema, path, errors)
    return checks


def _type(value: Any, schema: Schema, path: str, errors: _Errors) -> int:
    types = schema.types
    if value is None:
        if types and not schema.nullable:
            errors.append(_wrong_type(path, ",".join(types), "null"))
            return 0
        return 1
    found = _type_of(value)
    fits = found in types or (found == "number" and "integer" in types and float(value).is_integer())
    fits = fits or (found == "integer" and "number" in types)
    numeric = "integer" in types or "number" in types
    if schema.format and found not in ("string", "array") and not fits:
        errors.append(_wrong_type(path, schema.format, {"integer": "int64", "number": "float64"}.get(found, "")))
        return 0
    if not numeric and schema.format and found in ("string", "array"):
        return 1
    if types and not fits:
        errors.append(_wrong_type(path, ",".join(types), found))
        return 0
    return 1


def _type_of(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _wrong_type(path: str, wanted: str, found: str) -> FieldError:
    return FieldError.type_invalid(_field(path), found, f'{path} in body must be of type {wanted}: "{found}"')


def _string(value: str, schema: Schema, path: str, errors: _Errors) -> int:
    if schema.max_length is not None and len(value) > schema.max_length:
        errors.append(FieldError.too_long(_field(path), schema.max_length))
    elif schema.min_length is not None and len(value) < schema.min_length:
        expected = f"{path} in body should be at least {schema.min_length} chars long"
        errors.append(FieldError.invalid(_field(path), value, expected))
    elif schema.pattern and compile_pattern(schema.pattern).search(value) is None:
        errors.append(FieldError.invalid(_field(path), value, f"{path} in body should match '{schema.pattern}'"))
    if schema.format_check is None:
        return 0
    if not schema.format_check(value):
        words = f"{path} in body must be of type {schema.format}: {json.dumps(value, ensure_ascii=False)}"
        errors.append(FieldError.type_invalid(_field(path), value, words))
    return 1


def _number(value: float, schema: Schema, path: str, errors: _Errors) -> None:
    whole = isinstance(value, int)
    if schema.types == ("integer",) and not _in_range(value, schema.format):
        kind = f"with format {schema.format}" if schema.format else "(default format)"
        errors.append(FieldError.invalid("", "", f"Checked value must be of type integer {kind} in {path}"))
    factor = schema.multiple_of
    if factor is not None and not _is_multiple(value, factor):
        errors.append(_bound(path, value, f"a multiple of {_told(factor, whole)}"))
    maximum, minimum = schema.maximum, schema.minimum
    if maximum is not None and (value >= maximum if schema.exclusive_maximum else value > maximum):
        words = "less than" if schema.exclusive_maximum else "less than or equal to"
        errors.append(_bound(path, value, f"{words} {_told(maximum, whole)}"))
    if minimum is not None and (value <= minimum if schema.exclusive_minimum else value < minimum):
        words = "greater than" if schema.exclusive_minimum else "greater than or equal to"
        errors.append(_bound(path, value, f"{words} {_told(minimum, whole)}"))


def _bound(path: str, value: float, words: str) -> FieldError:
    return FieldError.invalid(_field(path), value, f"{path} in body should be {words}")


def _in_range(value: float, format_: str) -> bool:
    if not format_ and not float(value).is_integer():
        return False
    limit = 1 << (31 if format_ == "int32" else 63)
    return -limit <= value < limit


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int) and float(factor).is_integer():
        return value % int(factor) == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    return math.isclose(quotient, round(quotient), rel_tol=1e-9, abs_tol=1e-9)


def _told(number: float, whole: bool) -> str:
    if float(number).is_integer() and (whole or abs(number) < 1e21):
        return str(int(number))
    return repr(float(number))


def _list(value: list[Any], schema: Schema, path: str, errors: _Errors) -> int:
    checks = 0
    if schema.items is not None:
        for place, item in enumerate(value):
            checks += _node(item, schema.items, f"{path}[{place}]", errors)
    size = len(value)
    if schema.min_items is not None and size < schema.min_items:
        words = f"{path} in body should have at least {schema.min_items} items"
        errors.append(FieldError.invalid(_field(path), size, words))
    if schema.max_items is not None and size > schema.max_items:
        errors.append(FieldError.too_many(_field(path), size, schema.max_items))
    if schema.unique_items and _repeated(value):
        errors.append(FieldError.invalid(_field(path), "", f"{path} in body shouldn't contain duplicates"))
    return checks


def _object(value: dict[str, Any], schema: Schema, path: str, errors: _Errors) -> int:
    size = len(value)
    if schema.min_properties is not None and size < schema.min_properties:
        words = f"{path} in body should have at least {schema.min_properties} properties"
        errors.append(FieldError.invalid(_field(path), size, words))
    if schema.max_properties is not None and size > schema.max_properties:
        errors.append(FieldError.too_many(_field(path), size, schema.max_properties))
    checks = 0
    properties, additional = schema.properties, schema.additional
    for field, inner in value.items():
        child = properties.get(field)
        if child is not None:
            checks += _node(inner, child, f"{path}.{field}" if path else field, errors)
        elif additional is not None:
            checks += _node(inner, additional, f"{path}.{field}", errors)
        elif schema.closed:
            errors.append(FieldError.invalid(_field(path), "", f"{path}.{field} in body is a forbidden property"))
    for field in schema.required:
        if field not in value:
            errors.append(FieldError.required(_field(f"{path}.{field}")))
    return checks


def _enum(value: Any, schema: Schema, path: str, errors: _Errors) -> None:
    if not any(same(value, allowed) for allowed in schema.enum if allowed is not None):
        names = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in schema.enum]
        errors.append(FieldError.not_supported(_field(path), value, names))


def _junctors(value: Any, schema: Schema, path: str, errors: _Errors) -> int:
    checks = 0
    if schema.any_of:
        checks += _some_branch(value, schema.any_of, path, errors)
    if schema.one_of:
        checks += _one_branch(value, schema.one_of, path, errors)
    if schema.all_of:
        checks += _every_branch(value, schema.all_of, path, errors)
    if schema.not_ is not None and not _findings(value, schema.not_, path)[0]:
        errors.append(_about_branches(f'"{path}" must not validate the schema (not)'))
    return checks + 1


def _findings(value: Any, schema: Schema, path: str) -> tuple[_Errors, int]:
    errors: _Errors = []
    return errors, _node(value, schema, path, errors)


def _some_branch(value: Any, branches: tuple[Schema, ...], path: str, errors: _Errors) -> int:
    best: tuple[_Errors, int] = ([], -1)
    for branch in branches:
        findings, checks = _findings(value, branch, path)
        if not findings:
            return checks
        if checks > best[1]:
            best = (findings, checks)
    errors.append(_about_branches(f'"{path}" must validate at least one schema (anyOf)'))
    errors.extend(best[0])
    return best[1]


def _one_branch(value: Any, branches: tuple[Schema, ...], path: str, errors: _Errors) -> int:
    valid: list[int] = []
    best: tuple[_Errors, int] = ([], -1)
    for branch in branches:
        findings, checks = _findings(value, branch, path)
        if not findings:
            valid.append(checks)
        elif checks > best[1]:
            best = (findings, checks)
    if len(valid) == 1:
        return valid[0]
    found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    errors.append(_about_branches(f'"{path}" must validate one and only one schema (oneOf). {found}'))
    if not valid:
        errors.extend(best[0])
    return max(best[1], 0)


def _every_branch(value: Any, branches: tuple[Schema, ...], path: str, errors: _Errors) -> int:
    valid = total = 0
    for branch in branches:
        findings, checks = _findings(value, branch, path)
        valid += not findings
        total += checks
        errors.extend(findings)
    if valid != len(branches):
        none = "" if valid else ". None validated"
        errors.append(_about_branches(f'"{path}" must validate all the schemas (allOf){none}'))
    return total


def _about_branches(words: str) -> FieldError:
    return FieldError.invalid("", "", words)


def validate_lists(value: Any, schema: Schema | None, path: str = "") -> list[FieldError]:
    """Check that sets hold each item once and that the items of maps have keys of their own."""
    errors: _Errors = []
    _lists(value, schema, path, errors)
    return errors


def _lists(value: Any, schema: Schema | None, path: str, errors: _Errors) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        for field, inner in fields.items():
            if not isinstance(inner, (dict, list)):
                continue
            if field in schema.properties:
                _lists(inner, schema.properties[field], f"{path}.{field}" if path else field, errors)
            elif schema.additional is not None:
                _lists(inner, schema.additional, f"{path}[{field}]", errors)
    elif isinstance(value, list):
        items: list[Any] = value
        if schema.list_type == "set":
            errors.extend(FieldError.duplicate(f"{path}[{place}]", items[place]) for place in _repeated(items))
        elif schema.list_type == "map":
            _map_keys(items, schema.map_keys, path, errors)
        for place, item in enumerate(items):
            if isinstance(item, (dict, list)):
                _lists(item, schema.items, f"{path}[{place}]", errors)


def _map_keys(items: list[Any], names: tuple[str, ...], path: str, errors: _Errors) -> None:
    keys: list[dict[str, Any]] = []
    for place, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            errors.append(
                FieldError.invalid(f"{path}[{place}]", item, "must be an object for an array of list-type map")
            )
            return
        fields: dict[str, Any] = item or {}
        keys.append({name: fields[name] for name in names if name in fields})
    errors.extend(FieldError.duplicate(f"{path}[{place}]", keys[place]) for place in _repeated(keys))


def _repeated(items: list[Any]) -> list[int]:
    """Return the place of the second appearance of each value that appears more than once."""
    seen: dict[str, int] = {}
    places: list[int] = []
    for place, item in enumerate(items):
        text = json.dumps(item, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            places.append(place)
    return places


_encode = msgspec.json.Encoder().encode


def same(left: Any, right: Any) -> bool:
    """Compare two JSON values; 1 and 1.0 are the same, 1 and true are not."""
    if left is right:
        return True
    if type(left) is type(right) and type(left) in (dict, list):
        # What differs for Python differs here, and what is the same text is the same: both are found without a walk.
        if left != right:
            return False
        if len(left) > 1 and _encode(left) == _encode(right):
            return True
    return _same(left, right)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        one: dict[str, Any] = left
        other: dict[str, Any] = right
        return one.keys() == other.keys() and all(_same(value, other[field]) for field, value in one.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _field(path: str) -> str:
    return path.removeprefix(".")

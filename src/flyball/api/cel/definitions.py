"""What is wrong with the rules of a schema: found when a CustomResourceDefinition is written, before any object is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from flyball.api.cel.declared import declare
from flyball.api.cel.environment import Environment
from flyball.api.cel.fieldpaths import resolve
from flyball.api.cel.rules import compile_rule
from flyball.api.fielderrors import FieldError, Reason
from flyball.api.structural.schema import Schema

__all__ = ["RefusedRule", "check_rules"]

_REASONS: Final = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]
_UNTYPED: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: "
    "unable to convert structural schema to CEL declarations"
)


class RefusedRule(FieldError):
    """A rule that cannot be compiled; shown whole, as an API server shows it."""

    __slots__ = ()

    def body(self) -> str:
        """Tell the refusal without the field."""
        return f"{self.reason.words}: {_shown(self.value)}: {self.detail}"


def _shown(rule: Mapping[str, Any]) -> str:
    parts = {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def check_rules(
    schema: Schema, path: str = "spec.validation.openAPIV3Schema", *, environment: Environment | None = None
) -> list[FieldError]:
    """Find what is wrong with all rules of the schema of a resource.

    What is wrong with the fields of rules comes first. Rules are compiled only where nothing of that kind was found at
    their node or below it.
    """
    schema_errors, rule_errors = _Walk(environment).node(schema, path, root=True, uncorrelated="", typed=True)
    return [*schema_errors, *rule_errors]


Errors = tuple[list[FieldError], list[FieldError]]


class _Walk:
    def __init__(self, environment: Environment | None) -> None:
        self._environment = environment

    def node(self, schema: Schema, path: str, *, root: bool, uncorrelated: str, typed: bool) -> Errors:
        """Check a node and those below it; `uncorrelated` is the path above that has no old values."""
        found: Errors = ([], [])
        for child in _children(schema, path):
            inner = self.node(
                child.schema,
                child.path,
                root=child.schema.embedded,
                uncorrelated=child.uncorrelated or uncorrelated,
                typed=typed and child.typed,
            )
            found[0].extend(inner[0])
            found[1].extend(inner[1])
        for index, rule in enumerate(schema.rules):
            found[0].extend(_field_errors(rule, schema, f"{path}.x-kubernetes-validations[{index}]"))
        if schema.rules and typed and not found[0]:
            found[1].extend(self._compile(schema, path, root, uncorrelated))
        return found

    def _compile(self, schema: Schema, path: str, root: bool, uncorrelated: str) -> list[FieldError]:
        type_ = declare(schema, root=root).type
        if type_ is None:
            return [FieldError(Reason.INTERNAL, f"{path}.x-kubernetes-validations", _UNTYPED)]
        errors: list[FieldError] = []
        for place, source in enumerate(schema.rules):
            at = f"{path}.x-kubernetes-validations[{place}]"
            rule = compile_rule(source, schema, type_, self._environment)
            if rule.error:
                errors.append(RefusedRule(Reason.INVALID, f"{at}.rule", rule.error, source))
            if rule.message_error:
                errors.append(RefusedRule(Reason.INVALID, f"{at}.messageExpression", rule.message_error, source))
            if rule.uses_old and uncorrelated:
                words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                errors.append(FieldError.invalid(f"{at}.rule", source.get("rule"), words))
            elif not rule.uses_old and source.get("optionalOldSelf") is not None:
                words = "may not be set if oldSelf is not used in rule"
                errors.append(FieldError.invalid(f"{at}.optionalOldSelf", source["optionalOldSelf"], words))
        return errors


class _Child(NamedTuple):
    """A node below; `uncorrelated` is the path from which it has no old values, and what is not `typed` never runs."""

    schema: Schema
    path: str
    uncorrelated: str = ""
    typed: bool = True


def _children(schema: Schema, path: str) -> Iterator[_Child]:
    """Go through the nodes below, in the order of an API server."""
    if schema.additional is not None:
        yield _Child(schema.additional, f"{path}.additionalProperties")
    for name, child in schema.properties.items():
        yield _Child(child, f"{path}.properties[{name}]")
    if schema.not_ is not None:
        yield _Child(schema.not_, f"{path}.not", typed=False)
    for word, parts in (("allOf", schema.all_of), ("oneOf", schema.one_of), ("anyOf", schema.any_of)):
        for index, part in enumerate(parts):
            yield _Child(part, f"{path}.{word}[{index}]", typed=False)
    if schema.items is not None:
        yield _Child(schema.items, f"{path}.items", "" if schema.list_type == "map" else path)


def _field_errors(rule: Mapping[str, Any], schema: Schema, path: str) -> list[FieldError]:
    """Find what is wrong with a rule before it is looked at as an expression."""
    errors = _text_errors(rule, path)
    expression = str(rule.get("messageExpression") or "")
    if expression and not expression.strip():
        words = "messageExpression must be non-empty if specified"
        errors.append(FieldError.required(f"{path}.messageExpression", words))
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.append(FieldError.not_supported(f"{path}.reason", reason, _REASONS))
    field = str(rule.get("fieldPath") or "")
    if not field:
        return errors
    if not field.strip():
        errors.append(FieldError.invalid(f"{path}.fieldPath", field, "must be non-empty if specified"))
    if "\n" in field:
        errors.append(FieldError.invalid(f"{path}.fieldPath", field, "must not contain line breaks"))
    try:
        resolve(field, schema)
    except ValueError:
        errors.append(FieldError.invalid(f"{path}.fieldPath", field, "must be a valid path"))
    return errors


def _text_errors(rule: Mapping[str, Any], path: str) -> list[FieldError]:
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not text:
        return [FieldError.required(f"{path}.rule", "rule is not specified")]
    if message and not message.strip():
        return [FieldError.invalid(f"{path}.message", message, "must be non-empty if specified")]
    if "\n" in message.strip():
        return [FieldError.invalid(f"{path}.message", message, "must not contain line breaks")]
    if "\n" in text and not message.strip():
        return [FieldError.required(f"{path}.message", "message must be specified if rule contains line breaks")]
    return []

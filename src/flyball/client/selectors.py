"""Which objects of a kind: label and field selectors as the server reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from flyball.client.refusals import RefusedRequest

__all__ = ["FieldQuery", "LabelQuery", "LabelSelectorLike", "field_text", "label_text"]


class LabelSelectorLike(Protocol):
    """`flyball.k8s.meta.v1.LabelSelector`, and what looks like it."""

    @property
    def match_labels(self) -> Any:
        """Labels that an object must have, all of them."""
        ...

    @property
    def match_expressions(self) -> Any:
        """Requirements with `key`, `operator` and `values`, all of which must hold."""
        ...


LabelQuery = str | Mapping[str, str] | LabelSelectorLike
"""`"app=web,tier!=db"`, `{"app": "web"}`, or the selector of a Deployment."""

FieldQuery = str | Mapping[str, str]
"""`"status.phase!=Running"` or `{"spec.nodeName": "n1"}`."""

_OPERATORS = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}


def label_text(labels: LabelQuery | None) -> str | None:
    """The text of a label selector; None selects everything.

    >>> label_text({"app": "web", "tier": "db"})
    'app=web,tier=db'
    """
    if labels is None or isinstance(labels, str):
        return labels
    if isinstance(labels, Mapping):
        return _equalities(labels)
    terms = [_equalities(labels.match_labels)] if labels.match_labels else []
    terms += [_expression(requirement) for requirement in labels.match_expressions or ()]
    return ",".join(terms)


def _equalities(pairs: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in pairs.items())


def _expression(requirement: Any) -> str:
    form = _OPERATORS.get(requirement.operator)
    if form is None:
        raise RefusedRequest(f"label selector: unknown operator {requirement.operator!r} of {requirement.key!r}")
    values: Sequence[str] = requirement.values or ()
    return form.format(requirement.key, ",".join(values))


def field_text(fields: FieldQuery | None) -> str | None:
    r"""The text of a field selector; values of a mapping are escaped.

    >>> print(field_text({"metadata.name": "a,b"}))
    metadata.name=a\,b
    """
    if fields is None or isinstance(fields, str):
        return fields
    return ",".join(f"{key}={_escaped(value)}" for key, value in fields.items())


def _escaped(value: str) -> str:
    for special in "\\,=":
        value = value.replace(special, "\\" + special)
    return value

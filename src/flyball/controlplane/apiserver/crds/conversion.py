"""How a definition says that its versions are converted. Webhooks are not called yet, and asking for one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.names import is_label_1035

__all__ = ["check_conversion"]

Object = Mapping[str, Any]
_Errors = list[FieldError]

_PATH: Final = "spec.conversion"
_REVIEWS: Final = ("v1", "v1beta1")


def check_conversion(conversion: Object) -> _Errors:
    """Judge the conversion of a definition."""
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    if not strategy:
        return [FieldError.required(f"{_PATH}.strategy")]
    errors: _Errors = []
    if strategy not in ("None", "Webhook"):
        errors.append(FieldError.not_supported(f"{_PATH}.strategy", strategy, ["None", "Webhook"]))
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        errors += _client(client) + _reviews(reviews)
        if not errors:
            told = "this server does not call conversion webhooks yet; use None, or leave out spec.conversion"
            errors.append(FieldError.forbidden(f"{_PATH}.strategy", told))
        return errors
    words = "should not be set when strategy is not set to Webhook"
    if client is not None:
        errors.append(FieldError.forbidden(f"{_PATH}.webhookClientConfig", words))
    if reviews:
        errors.append(FieldError.forbidden(f"{_PATH}.conversionReviewVersions", words))
    return errors


def _client(client: Object | None) -> _Errors:
    path = f"{_PATH}.webhookClientConfig"
    if client is None:
        return [FieldError.required(path, "required when strategy is set to Webhook")]
    if (client.get("url") is None) == (client.get("service") is None):
        return [FieldError.required(path, "exactly one of url or service is required")]
    return []


def _reviews(versions: list[str]) -> _Errors:
    path = f"{_PATH}.conversionReviewVersions"
    if not versions:
        return [FieldError.required(path)]
    errors: _Errors = []
    for place, version in enumerate(versions):
        if version in versions[:place]:
            errors.append(FieldError.invalid(f"{path}[{place}]", version, "duplicate version"))
        else:
            errors.extend(FieldError.invalid(f"{path}[{place}]", version, word) for word in is_label_1035(version))
    if not any(version in _REVIEWS for version in versions):
        errors.append(FieldError.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}"))
    return errors

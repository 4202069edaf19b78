"""The parameters of a request for a stream, read as upstream's generated conversions read them.

Of several values the first counts. A truth is false only as `0` or `false`: an empty text is true.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.kubelets import LogOptions
from flyball.controlplane.apiserver.request import Request
from flyball.controlplane.apiserver.status import bad_request, invalid

__all__ = ["log_options", "ports", "truth"]

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NATURAL: Final = re.compile(r"[0-9]+")
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)")
_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MAX: Final = (1 << 63) - 1


def truth(request: Request, name: str) -> bool:
    """Tell whether a parameter is given and not false."""
    values = request.every(name)
    return bool(values) and values[0].lower() not in ("0", "false")


def _integer(request: Request, name: str) -> int | None:
    values = request.every(name)
    if not values:
        return None
    text = values[0]
    if _INTEGER.fullmatch(text) is None:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text) if len(text) < 25 else _MAX + 1
    if not -_MAX - 1 <= number <= _MAX:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def _moment(request: Request, name: str) -> datetime | None:
    text = request.first(name)
    if not text:
        return None
    told = f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{text}" as "2006"'
    if _RFC3339.fullmatch(text) is None:
        raise bad_request(told)
    try:
        return datetime.fromisoformat(text.replace(",", ".").replace("Z", "+00:00")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_request(told) from None


def log_options(request: Request, pod: str, now: datetime) -> LogOptions:
    """Read which part of a log is wanted; the container is not judged yet."""
    seconds, since = _integer(request, "sinceSeconds"), _moment(request, "sinceTime")
    tail, limit = _integer(request, "tailLines"), _integer(request, "limitBytes")
    errors: list[FieldError] = []
    if tail is not None and tail < 0:
        errors.append(FieldError.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(FieldError.invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and since is not None:
        errors.append(FieldError.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        errors.append(FieldError.invalid("sinceSeconds", seconds, "must be greater than 0"))
    if request.every("stream"):  # a real server takes it only with a feature that is off unless somebody turns it on
        errors.append(FieldError.forbidden("stream", "may not be specified"))
    if errors:
        raise invalid("PodLogOptions", "", pod, errors)
    return LogOptions(
        container=request.first("container"),
        follow=truth(request, "follow"),
        previous=truth(request, "previous"),
        tail_lines=tail,
        since=_ago(now, seconds) if seconds is not None else since,
        timestamps=truth(request, "timestamps"),
        limit_bytes=limit,
    )


def _ago(now: datetime, seconds: int) -> datetime:
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def ports(request: Request) -> list[int]:
    """Read the ports of a port-forward, of which a WebSocket request names all."""
    found: list[int] = []
    for text in request.every("ports"):
        for one in text.split(","):
            if _NATURAL.fullmatch(one) is None:
                raise bad_request(f'cannot convert to []int32: strconv.ParseUint: parsing "{one}": invalid syntax')
            found.append(int(one) if len(one) < 12 else 1 << 31)
    return found

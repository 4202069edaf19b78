"""What a request can fail with: each a Status, worded as an API server words it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from flyball.api.fielderrors import FieldError

__all__ = [
    "StatusError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "internal",
    "invalid",
    "method_not_allowed",
    "no_such_resource",
    "not_found",
    "success",
    "too_large",
    "too_large_revision",
    "too_many",
    "unauthorized",
    "unsupported_media_type",
]

Details = dict[str, Any]


class StatusError(Exception):
    """Ends a request with a Status of failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Details | None = None,
        *,
        retry_after: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the parts of the Status."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.metadata: dict[str, Any] = dict(metadata or {})

    def body(self) -> dict[str, Any]:
        """Give the Status as an object."""
        details = dict(self.details) if self.details is not None else None
        if self.retry_after is not None:
            details = {**(details or {}), "retryAfterSeconds": self.retry_after}
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if details is not None:
            body["details"] = details
        body["code"] = self.code
        return body


def success(details: Details | None) -> dict[str, Any]:
    """Give the Status of a request that leaves no object to return."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body if details is None else {**body, "details": details}


def named(resource: str, group: str, name: str = "", **more: Any) -> Details:
    """Give the details that say which object it is about."""
    details: Details = {"name": name, "group": group, "kind": resource, **more}
    return {key: value for key, value in details.items() if value}


def qualified(resource: str, group: str) -> str:
    """Name a resource as messages do: `deployments.apps`, `pods`."""
    return f"{resource}.{group}" if group else resource


def bad_request(message: str) -> StatusError:
    """Say that the request itself makes no sense."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """Say that nobody knows who asks."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: str, group: str, name: str, why: str, causes: Iterable[Mapping[str, str]] = ()) -> StatusError:
    """Say that the object must not be touched in this way."""
    told = f'{qualified(resource, group)} "{name}" is forbidden: {why}'
    if not name:
        told = f"{qualified(resource, group)} is forbidden: {why}"
    return StatusError(403, "Forbidden", told, named(resource, group, name, causes=list(causes)))


def not_found(resource: str, group: str, name: str) -> StatusError:
    """Say that there is no object of this name."""
    return StatusError(
        404, "NotFound", f'{qualified(resource, group)} "{name}" not found', named(resource, group, name)
    )


def no_such_resource() -> StatusError:
    """Say that the group and version is served, and the resource is none of it."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    """Say that the resource does not know the verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def already_exists(resource: str, group: str, name: str) -> StatusError:
    """Say that the name is taken."""
    message = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, named(resource, group, name))


def conflict(resource: str, group: str, name: str, why: str) -> StatusError:
    """Say that the object is not the one that the writer had seen."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, named(resource, group, name))


def invalid(kind: str, group: str, name: str, errors: list[FieldError]) -> StatusError:
    """Say what is wrong with the fields of an object."""
    told = list(dict.fromkeys(map(str, errors)))
    text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    message = f"{qualified(kind, group)} {json.dumps(name)} is invalid: {text}"
    return StatusError(422, "Invalid", message, named(kind, group, name, causes=[error.cause() for error in errors]))


def unsupported_media_type(supported: Iterable[str]) -> StatusError:
    """Say in which forms a body may come."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> StatusError:
    """Say that a body is larger than anything that is stored."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}", {})


def expired(message: str, continue_: str = "") -> StatusError:
    """Say that history does not reach back so far."""
    return StatusError(410, "Expired", message, metadata={"continue": continue_} if continue_ else None)


def too_large_revision(asked: int, present: int) -> StatusError:
    """Say that a revision was asked for that does not exist yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {present}"
    return StatusError(504, "Timeout", message, {"causes": [cause]}, retry_after=1)


def too_many(message: str = "too many requests, please try again later", retry_after: int = 1) -> StatusError:
    """Say that the request may be repeated later."""
    return StatusError(429, "TooManyRequests", message, {}, retry_after=retry_after)


def internal(message: str) -> StatusError:
    """Say that the server failed at something that is not the client's fault."""
    cause = {"message": message}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [cause]})

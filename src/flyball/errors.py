"""Everything Flyball raises on purpose, and nothing else.

The root is `FlyballError`. Below it:

- `ApiError`: the server answered, and the answer is a refusal. One subclass per reason of a Kubernetes `Status`; the
  whole `Status` is kept.
- `TransportError`: no (whole) answer came: no connection, no trust, no patience, no sense.
- `ConfigError`: we could not even find out where to go or as whom.
- `TerminalError`, `RetryAfter`: what a reconciler raises to tell the queue what to do with it.

Every message is one line: what was being done to which object, what came back, what to do. No message carries a
token, a password or a key.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "CommandFailed",
    "ConfigError",
    "Conflict",
    "ConnectError",
    "ConnectionLost",
    "CredentialError",
    "Expired",
    "FlyballError",
    "Forbidden",
    "ForwardFailed",
    "Gone",
    "InternalError",
    "Invalid",
    "MalformedAnswer",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "RequestTimeout",
    "RetryAfter",
    "ServerTimeout",
    "ServiceUnavailable",
    "TerminalError",
    "Timeout",
    "TlsError",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "UnsupportedMediaType",
    "error_from",
    "error_from_status",
    "malformed",
    "one_line",
    "retry_after_of",
]


class FlyballError(Exception):
    """The root of all errors that Flyball raises on purpose; its text is one line for a person."""


class ConfigError(FlyballError):
    """Where to connect, or as whom, cannot be found out: kubeconfig, in-cluster files, options."""


class TransportError(FlyballError):
    """No usable answer came from the server; whether it acted on the request is told by the subclass."""

    def __init__(self, message: str, *, host: str = "", action: str = "") -> None:
        """`message` holds cause and remedy; `host` and `action` are put before it."""
        super().__init__(message)
        self.host = host
        self.action = action

    def __str__(self) -> str:
        return one_line(": ".join(part for part in (self.action, self.host, str(self.args[0])) if part))


class ConnectError(TransportError):
    """No connection came about: no byte of the request was sent, so a repeat is always safe."""


class TlsError(TransportError):
    """One side does not trust the other, or the two do not speak the same TLS."""


class RequestTimeout(TransportError):
    """The server was silent for too long; it may have acted on the request."""


class ConnectionLost(TransportError):
    """The connection broke after the request went out; the server may have acted on it."""


class ForwardFailed(TransportError):
    """A forwarded connection reached the Pod's node, and nobody there: mostly, nothing listens on the port."""


class MalformedAnswer(TransportError):
    """Something came back that is not HTTP, or not what a Kubernetes API server sends."""


class CredentialError(ConfigError, TransportError):
    """The credentials a request needed could not be had: exec plugin, token file, certificate."""


class CommandFailed(FlyballError):
    """A command in a container ended with another exit code than 0, and the caller had asked for success."""

    def __init__(self, action: str, exit_code: int, stdout: bytes, stderr: bytes) -> None:
        """`action` says what was run, and where."""
        super().__init__(action, exit_code)
        self.action = action
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr

    def __str__(self) -> str:
        told = f"{self.action}: exit code {self.exit_code}"
        last = one_line((self.stderr or self.stdout)[-400:].decode("utf-8", "replace"))
        return f"{told}: {last}" if last else f"{told}; it wrote nothing that would say why"


class TerminalError(FlyballError):
    """Raised by a reconciler: trying again is useless until the object changes."""


class RetryAfter(FlyballError):
    """Raised by a reconciler: nothing is wrong, but come back in `seconds`."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        """Ask for the next pass in `seconds`; `reason` is for people."""
        super().__init__(seconds, reason)
        self.seconds = seconds
        self.reason = reason

    def __str__(self) -> str:
        return f"again in {self.seconds:g} s" + (f": {self.reason}" if self.reason else "")


class ApiError(FlyballError):
    """The server refused; `status` is the whole Kubernetes `Status` as received.

    When the answer was no `Status` (a proxy's HTML page, an empty body), one is made up whose message says so; `code`
    is then the HTTP status code.
    """

    words: ClassVar[str] = ""
    """How the reason is called within a sentence."""

    def __init__(
        self,
        status: Mapping[str, Any],
        *,
        code: int = 0,
        action: str = "",
        host: str = "",
        retry_after: float | None = None,
    ) -> None:
        """Take the `Status` as received; `code` and `retry_after` (of the HTTP header) fill in what it lacks."""
        super().__init__(status)
        self.status = status
        self.code: int = _number(status.get("code")) or code
        self.reason: str = _text(status.get("reason"))
        self.message: str = _text(status.get("message"))
        self.action = action
        self.host = host
        after = retry_after if retry_after is not None else _number(self.details.get("retryAfterSeconds")) or None
        self.retry_after: float | None = after

    @property
    def details(self) -> Mapping[str, Any]:
        """The `details` of the Status; empty when there are none."""
        details = self.status.get("details")
        return cast("Mapping[str, Any]", details) if isinstance(details, dict) else {}

    @property
    def causes(self) -> Sequence[Mapping[str, Any]]:
        """The single causes: one per invalid field, or per conflicting field manager."""
        causes: Any = self.details.get("causes")
        return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []  # pyright: ignore[reportUnknownVariableType]

    @property
    def remedy(self) -> str:
        """What a person can do about it; empty when the message says it all."""
        return ""

    def __str__(self) -> str:
        words = self.words or self.reason or f"HTTP {self.code}"
        parts = [self.action, words if words.lower() not in self.message.lower() else "", self.message]
        line = ": ".join(part for part in parts if part)
        return one_line(f"{line}; {self.remedy}" if self.remedy else line)


class BadRequest(ApiError):
    """400: the server could not make sense of the request."""

    words = "bad request"


class Unauthorized(ApiError):
    """401: the server does not know who is asking, also after the credentials were refreshed."""

    words = "unauthorized"

    @property
    def remedy(self) -> str:
        return f"{self.host or 'the server'} refuses these credentials: renew the token or certificate, or log in again"


_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
)


class Forbidden(ApiError):
    """403: known, but not allowed; also quota and admission."""

    words = "forbidden"

    @property
    def remedy(self) -> str:
        found = _FORBIDDEN.search(self.message)
        if found is None:
            return ""
        user = found["user"]
        account = user.removeprefix("system:serviceaccount:").replace(":", "/")
        who = f'user "{user}"' if account == user else f"serviceaccount {account}"
        return f'add @rbac("{found["group"]}", "{found["resource"]}", "{found["verb"]}") or grant it to {who}'


class NotFound(ApiError):
    """404: no such object, or no such kind on this server."""

    words = "not found"


class MethodNotAllowed(ApiError):
    """405: the kind does not know this verb."""

    words = "method not allowed"


class NotAcceptable(ApiError):
    """406: the server cannot answer in the form asked for."""

    words = "not acceptable"


class AlreadyExists(ApiError):
    """409: an object of this name is there."""

    words = "already exists"


class Conflict(ApiError):
    """409: somebody else changed or owns it; read again and decide again."""

    words = "conflict"


class Gone(ApiError):
    """410: the server no longer has what was asked for."""

    words = "gone"


class Expired(Gone):
    """410: the resource version or continue token is too old; list again."""

    words = "expired"


class RequestEntityTooLarge(ApiError):
    """413: the object is larger than the server takes."""

    words = "request entity too large"


class UnsupportedMediaType(ApiError):
    """415: the server does not take this form of body or patch."""

    words = "unsupported media type"


class Invalid(ApiError):
    """422: the object breaks the rules of its kind; `causes` names the fields."""

    words = "invalid"


class TooManyRequests(ApiError):
    """429: not now; the request was not carried out."""

    words = "too many requests"


class InternalError(ApiError):
    """500: the server failed, or a webhook that it asked."""

    words = "internal error"


class ServiceUnavailable(ApiError):
    """503: the server, or the one behind it, is not there now."""

    words = "service unavailable"


class ServerTimeout(ApiError):
    """500 or 504: the server could not finish now; it may be asked again."""

    words = "server timeout"


class Timeout(ApiError):
    """504: the server gave up waiting; the request may have been carried out."""

    words = "timeout"


_BY_REASON: dict[str, type[ApiError]] = {
    kind.__name__: kind
    for kind in (
        AlreadyExists,
        BadRequest,
        Conflict,
        Expired,
        Forbidden,
        Gone,
        InternalError,
        Invalid,
        MethodNotAllowed,
        NotAcceptable,
        NotFound,
        RequestEntityTooLarge,
        ServerTimeout,
        ServiceUnavailable,
        Timeout,
        TooManyRequests,
        Unauthorized,
        UnsupportedMediaType,
    )
}

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Gone,
    413: RequestEntityTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: Timeout,
}


def error_from(status_code: int, headers: Mapping[str, str], body: bytes, *, action: str, host: str) -> ApiError:
    """Turn a refusing answer into the error of its reason; never raises, whatever the body is."""
    status = _status_in(body)
    if status is None:
        status = _made_up_status(status_code, headers, body, host)
    return error_from_status(status, code=status_code, action=action, host=host, retry_after=retry_after_of(headers))


def error_from_status(
    status: Mapping[str, Any], *, code: int = 0, action: str = "", host: str = "", retry_after: float | None = None
) -> ApiError:
    """Turn a `Status` (also one that came within a watch) into the error of its reason, else of its code; never
    raises.
    """
    kind = _BY_REASON.get(_text(status.get("reason"))) or _BY_CODE.get(_number(status.get("code")) or code, ApiError)
    return kind(status, code=code, action=action, host=host, retry_after=retry_after)


def malformed(headers: Mapping[str, str], body: bytes, *, action: str, host: str, cause: str = "") -> MalformedAnswer:
    """Say what came instead of the JSON that a successful answer should have been."""
    why = f" ({cause})" if cause else ""
    return MalformedAnswer(f"{_what_came(headers, body)}{why}; {_CHECK_SERVER}", host=host, action=action)


def retry_after_of(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds that a `Retry-After` header asks to wait (given as seconds or as an HTTP date); None without a usable
    one.
    """
    value = headers.get("Retry-After") or headers.get("retry-after")
    if not value:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        then = parsedate_to_datetime(value)
    except (ValueError, IndexError, OverflowError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())


def one_line(text: str) -> str:
    """The text with every run of white space, newlines too, as one blank."""
    return " ".join(text.split())


_CHECK_SERVER = (
    "check that the server address is a Kubernetes API server and that no proxy or login page stands before it"
)


def _status_in(body: bytes) -> Mapping[str, Any] | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if isinstance(found, dict) and found.get("kind") == "Status":  # pyright: ignore[reportUnknownMemberType]
        return cast("Mapping[str, Any]", found)
    return None


def _made_up_status(code: int, headers: Mapping[str, str], body: bytes, host: str) -> dict[str, Any]:
    came = _what_came(headers, body)
    location = headers.get("Location")
    if 300 <= code < 400 and location:
        came = f"a redirection to {location}, which is not followed"
    message = f"HTTP {code} from {host or 'the server'}: {came}; {_CHECK_SERVER}"
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": one_line(message), "code": code}


def _what_came(headers: Mapping[str, str], body: bytes) -> str:
    text = body[:2000].decode("utf-8", "replace").strip()
    if not text:
        return "the answer is empty"
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/html" or text[:15].lower().startswith(("<!doctype", "<html")):
        title = re.search(r"<(title|h1)[^>]*>(.*?)</\1", text, re.IGNORECASE | re.DOTALL)
        return "the answer is HTML" + (f' titled "{one_line(title[2])[:80]}"' if title else "")
    if text[0] in "{[":
        return "the answer is JSON, but not of Kubernetes" if _is_json(body) else "the answer is malformed JSON"
    return f'the answer is not JSON: "{one_line(text)[:120]}"'


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

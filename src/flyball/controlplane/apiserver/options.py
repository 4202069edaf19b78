"""What a request says beside its body: the options of each verb, read and judged."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.request import Request
from flyball.controlplane.apiserver.status import bad_request, invalid

__all__ = [
    "Continue",
    "DeleteOptions",
    "ListOptions",
    "WriteOptions",
    "read_continue",
    "read_delete_options",
    "read_list_options",
    "read_write_options",
]

FieldValidation = Literal["Ignore", "Warn", "Strict"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of create, update and patch."""

    dry_run: bool = False
    manager: str = ""
    validation: FieldValidation = "Warn"
    force: bool | None = None


def read_write_options(request: Request, kind: str) -> WriteOptions:
    """Read the options of a write; `kind` names them in messages: CreateOptions, UpdateOptions, PatchOptions."""
    errors: list[FieldError] = []
    dry_runs = request.every("dryRun")
    if set(dry_runs) - {"All"}:
        errors.append(FieldError.not_supported("dryRun", dry_runs, ["All"]))
    manager = request.first("fieldManager")
    if len(manager) > 128:
        errors.append(FieldError.too_long("fieldManager", 128))
    errors.extend(
        FieldError.invalid("fieldManager", manager, f"invalid character {_go_rune(character)} (at position {place})")
        for place, character in enumerate(manager)
        if not character.isprintable()
    )
    validation = request.first("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        errors.append(FieldError.not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    if errors:
        raise invalid(kind, "meta.k8s.io", "", errors)
    force = None if not request.every("force") else request.flag("force")
    agent = request.headers.get("user-agent", "").partition("/")[0][:128]
    return WriteOptions(bool(dry_runs), manager or agent or "unknown", validation, force)  # type: ignore[arg-type]


def _go_rune(character: str) -> str:
    return f"U+{ord(character):04X}"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a delete: from the body, or from the query."""

    grace: int | None = None
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    orphan_dependents: bool | None = None
    dry_run: bool = False


_POLICIES = ("Background", "Foreground", "Orphan")


def read_delete_options(request: Request, body: Mapping[str, Any]) -> DeleteOptions:
    """Read the options of a delete; what the body says wins over the query."""
    preconditions: Mapping[str, Any] = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds")
    if grace is None and request.first("gracePeriodSeconds"):
        grace = _integer(request.first("gracePeriodSeconds"))
    policy = body.get("propagationPolicy") or request.first("propagationPolicy")
    orphan = body.get("orphanDependents")
    if orphan is None and request.every("orphanDependents"):
        orphan = request.flag("orphanDependents")
    dry_runs = body.get("dryRun") or request.every("dryRun")
    errors: list[FieldError] = []
    if orphan is not None and policy:
        errors.append(
            FieldError.invalid(
                "propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"
            )
        )
    if policy and policy not in _POLICIES:
        errors.append(
            FieldError.not_supported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"])
        )
    if set(dry_runs) - {"All"}:
        errors.append(FieldError.not_supported("dryRun", dry_runs, ["All"]))
    if errors:
        raise invalid("DeleteOptions", "meta.k8s.io", "", errors)
    version = preconditions.get("resourceVersion") or ""
    return DeleteOptions(grace, preconditions.get("uid") or "", version, policy or "", orphan, bool(dry_runs))


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of list and watch."""

    labels: str = ""
    fields: str = ""
    version: str = ""
    match: str = ""
    limit: int = 0
    continue_: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: int | None = None


def read_list_options(request: Request) -> ListOptions:
    """Read the options of a list or watch."""
    options = ListOptions(
        labels=request.first("labelSelector"),
        fields=request.first("fieldSelector"),
        version=request.first("resourceVersion"),
        match=request.first("resourceVersionMatch"),
        limit=_integer(request.first("limit") or "0"),
        continue_=request.first("continue"),
        watch=request.flag("watch"),
        bookmarks=request.flag("allowWatchBookmarks"),
        initial_events=request.flag("sendInitialEvents") if request.every("sendInitialEvents") else None,
        timeout=_integer(request.first("timeoutSeconds")) if request.first("timeoutSeconds") else None,
    )
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if errors:
        raise invalid("ListOptions", "meta.k8s.io", "", errors)
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.match:
        if not options.version:
            told = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(FieldError.forbidden("resourceVersionMatch", told))
        if options.continue_:
            told = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(FieldError.forbidden("resourceVersionMatch", told))
        if options.match not in ("Exact", "NotOlderThan"):
            allowed = ["Exact", "NotOlderThan", ""]
            errors.append(FieldError.not_supported("resourceVersionMatch", options.match, allowed))
        if options.match == "Exact" and options.version == "0":
            told = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(FieldError.forbidden("resourceVersionMatch", told))
    if options.initial_events is not None:
        told = "sendInitialEvents is forbidden for list"
        errors.append(FieldError.forbidden("sendInitialEvents", told))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.initial_events is not None and options.match != "NotOlderThan":
        told = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(FieldError.forbidden("resourceVersionMatch", told))
    if options.match:
        if options.initial_events is None:
            told = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(FieldError.forbidden("resourceVersionMatch", told))
        if options.match != "NotOlderThan":
            errors.append(FieldError.not_supported("resourceVersionMatch", options.match, ["NotOlderThan"]))
        if options.continue_:
            told = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(FieldError.forbidden("resourceVersionMatch", told))
    return errors


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


@dataclass(frozen=True, slots=True)
class Continue:
    """Where a paged list goes on."""

    revision: int
    namespace: str
    name: str = field(default="")

    def token(self, *, within: str = "") -> str:
        """Write the place as an opaque text; in a list `within` a namespace, that namespace is understood."""
        start = f"{'' if within else self.namespace}/{self.name}\0" if self.namespace else f"{self.name}\0"
        text = json.dumps({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start}, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def read_continue(token: str, *, namespaced: bool, within: str = "") -> Continue:
    """Read a token that `Continue.token` wrote, for the same kind of list. Raises BadRequest."""
    try:
        padded = token + "=" * (-len(token) % 4)
        given = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        revision, start = given.get("rv"), given["start"].removesuffix("\0")
        if given["v"] != "meta.k8s.io/v1" or not isinstance(revision, int):
            raise ValueError("the version of its encoding is unknown")
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    namespace, slash, name = start.rpartition("/")
    return Continue(revision, (namespace or within) if slash and namespaced else "", name)

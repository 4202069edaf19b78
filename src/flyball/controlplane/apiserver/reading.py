"""Get and list, in every form."""

from __future__ import annotations

from typing import Any

from flyball.controlplane.apiserver.core import Core
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.negotiation import Form
from flyball.controlplane.apiserver.options import Continue, ListOptions, read_continue
from flyball.controlplane.apiserver.render import encode, item_bytes, list_bytes, metadata_only, object_bytes
from flyball.controlplane.apiserver.selectors import EVERYWHERE, selection
from flyball.controlplane.apiserver.status import StatusError, bad_request, expired, too_large_revision
from flyball.controlplane.apiserver.store import Entry, Expired, Listing
from flyball.controlplane.apiserver.tables import table_bytes

__all__ = ["body_of", "known_fields", "list_body", "wait_for_version"]

_WAIT_SECONDS = 3.0
_NO_NUMBER = 'strconv.ParseUint: parsing "{}": invalid syntax'


def known_fields(kind: Kind) -> tuple[str, ...]:
    """Name the fields that a selector may use."""
    if not kind.strategy.selectable and kind.builtin:
        return EVERYWHERE
    return ("metadata.name", *(("metadata.namespace",) if kind.namespaced else ()), *kind.strategy.selectable)


def body_of(core: Core, kind: Kind, entry: Entry, form: Form, include: str = "") -> bytes:
    """Write one object in the form that was asked for."""
    if form.as_ == "Table":
        return table_bytes(kind, [entry], {"resourceVersion": str(entry.revision)}, core.now(), include, form.version)
    if form.as_ == "PartialObjectMetadata":
        return metadata_only(entry, form.version) + b"\n"
    if form.as_ == "PartialObjectMetadataList":
        told = f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind.kind})"
        raise StatusError(406, "NotAcceptable", told, {})
    return object_bytes(kind, entry) + b"\n"


async def list_body(core: Core, kind: Kind, namespace: str, options: ListOptions, form: Form, include: str) -> bytes:
    """Write a list, or a page of one."""
    selected = selection(options.labels, options.fields, known_fields(kind))
    where = namespace if kind.namespaced and namespace else None
    start = (
        read_continue(options.continue_, namespaced=kind.namespaced, within=where or "") if options.continue_ else None
    )
    if start is not None and options.version and options.version != "0":
        raise bad_request("specifying resource version is not allowed when using continue")
    listing = await _listing(core, kind, where, options, start)
    entries = listing.entries if start is None else _rest(listing.entries, start)
    if selected is not None:
        entries = [entry for entry in entries if selected(entry)]
    metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
    if 0 < options.limit < len(entries) and options.version != "0":
        rest = len(entries) - options.limit
        entries = entries[: options.limit]
        last = entries[-1].key
        metadata["continue"] = Continue(listing.revision, last.namespace, last.name).token(within=where or "")
        if selected is None:
            metadata["remainingItemCount"] = rest
    return _written(core, kind, entries, metadata, form, include)


async def _listing(
    core: Core, kind: Kind, namespace: str | None, options: ListOptions, start: Continue | None
) -> Listing:
    store = core.store
    if start is not None:
        if start.revision < 0:
            return store.listing(kind.storage, namespace)
        try:
            return store.listing(kind.storage, namespace, start.revision)
        except Expired:
            token = Continue(-1, start.namespace, start.name).token(within=namespace or "")
            raise expired(_CONTINUE_EXPIRED, token) from None
    if not options.version or options.version == "0":
        return store.listing(kind.storage, namespace)
    version = await wait_for_version(core, options.version)
    if options.match == "Exact" or (options.limit and not options.match):
        try:
            return store.listing(kind.storage, namespace, version)
        except Expired as gone:
            raise expired(f"The resourceVersion for the provided list is too old: {gone}") from None
    return store.listing(kind.storage, namespace)


_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


async def wait_for_version(core: Core, text: str) -> int:
    """Return a version once it can be read. Raises BadRequest, or Timeout when it does not come."""
    if not text.isdecimal() or not text.isascii() or len(text) > 20:
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": {_NO_NUMBER.format(text)}'
        )
    version = int(text)
    if version > core.store.revision and not await core.wait(core.store.reach(version), _WAIT_SECONDS):
        raise too_large_revision(version, core.store.revision)
    return version


def _rest(entries: list[Entry], start: Continue) -> list[Entry]:
    after = (start.namespace, start.name)
    return [entry for entry in entries if (entry.key.namespace, entry.key.name) > after]


def _written(core: Core, kind: Kind, entries: list[Entry], metadata: dict[str, Any], form: Form, include: str) -> bytes:
    if form.as_ == "Table":
        return table_bytes(kind, entries, metadata, core.now(), include, form.version)
    if form.as_ == "PartialObjectMetadataList":
        items = (metadata_only(entry, form.version) for entry in entries)
        return list_bytes("PartialObjectMetadataList", f"meta.k8s.io/{form.version}", items, metadata)
    if form.as_ == "PartialObjectMetadata":
        told = f"you requested PartialObjectMetadata, but the requested object is a list ({kind.lists_as})"
        raise StatusError(406, "NotAcceptable", told, {})
    if not kind.builtin:
        return _custom_list(kind, entries, metadata)
    return list_bytes(kind.lists_as, kind.api_version, (item_bytes(kind, entry) for entry in entries), metadata)


def _custom_list(kind: Kind, entries: list[Entry], metadata: dict[str, Any]) -> bytes:
    items = b",".join(item_bytes(kind, entry) for entry in entries)
    head = encode(kind.api_version).rstrip()
    metadata = {"continue": metadata.pop("continue", ""), **metadata}
    return b'{"apiVersion":%b,"items":[%b],"kind":%b,"metadata":%b}\n' % (
        head,
        items,
        encode(kind.lists_as).rstrip(),
        encode(metadata).rstrip(),
    )

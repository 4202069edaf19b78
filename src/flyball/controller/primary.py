"""What a reconciler may change in its own object: metadata, and nothing else.

The spec belongs to the user. The status is written at the end of each pass, through its subresource.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from flyball.api import DynamicObject, Model
from flyball.api.changes import difference
from flyball.api.hints import hints_of, plain_type
from flyball.api.values import dec_hook, enc_hook
from flyball.client import JsonPatch, MergePatch, Patch, Ref
from flyball.client.refusals import RefusedRequest
from flyball.controller.failures import InvalidSpec
from flyball.controller.ownership import describe

__all__ = ["changed_spec", "expect_fitting_spec", "metadata_patch", "spec_bytes", "status_is_written"]

_encode = msgspec.json.Encoder(enc_hook=enc_hook).encode
_HARMLESS = frozenset({"apiVersion", "kind", "metadata"})


def status_is_written(obj: Any) -> RefusedRequest:
    """What a reconciler is told that writes its status by itself."""
    return RefusedRequest(
        f"patch {_words(obj)}/status: the status is written for you at the end of the pass; "
        "change obj.status, or use @controller(..., raw=True) to write it yourself"
    )


def _words(obj: Any) -> str:
    return obj.name if isinstance(obj, Ref) else describe(obj)


def metadata_patch(obj: Any, patch: Patch | None) -> Patch | None:
    """The patch to be sent for the controller's own object; None when nothing was changed. `RefusedRequest` for a patch
    of anything but metadata.
    """
    if patch is None:
        found = difference(obj)
        changed = sorted(set(found) - _HARMLESS - {"status"})
        patch = MergePatch({"metadata": found["metadata"]}) if "metadata" in found else None
    elif isinstance(patch, JsonPatch):
        paths = [str(one.get("path", "")) for one in patch.operations if one.get("op") != "test"]
        changed = sorted({path for path in paths if not path.startswith("/metadata/")})
    else:
        changed = sorted(set(patch.document) - _HARMLESS)
    if changed:
        raise RefusedRequest(
            f"patch {_words(obj)}: {', '.join(changed)} would be changed, and a reconciler changes nothing "
            "but the metadata of its own object; the spec is its user's, write what you find out into the status"
        )
    return patch


def changed_spec(obj: Any) -> str:
    """The warning about a spec that was changed in memory; it is never written."""
    return (
        f"the spec of {describe(obj)} was changed by its reconciler; that is never written. "
        "Make a copy to work on, and write what you find out into the status"
    )


def spec_bytes(obj: Any) -> bytes | None:
    """The spec as JSON; None for a kind without one."""
    spec = obj.get("spec") if isinstance(obj, DynamicObject) else getattr(obj, "spec", None)
    if isinstance(spec, Model):
        return _encode(spec)
    return None if spec is None else msgspec.json.encode(spec)


@cache
def _spec_decoder(kind: type[Any]) -> msgspec.json.Decoder[Any] | None:
    wanted = plain_type(hints_of(kind).get("spec"))
    if not (isinstance(wanted, type) and issubclass(wanted, Model)):
        return None
    return msgspec.json.Decoder(wanted, dec_hook=dec_hook)


def expect_fitting_spec(obj: Any) -> None:
    """`InvalidSpec` when the spec does not fit its class: objects are readable whatever a server has stored, and what
    does not fit stays as JSON had it; a reconciler is not to be called with that.
    """
    kind: Any = type(obj)
    decoder = None if kind is DynamicObject else _spec_decoder(kind)
    if decoder is None:
        return
    try:
        decoder.decode(_encode(obj.spec))
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidSpec(f"the spec does not fit {type(obj.spec).__name__}: {error}") from None

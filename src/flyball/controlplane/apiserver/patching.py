"""Patches: from the body of a PATCH to the change that it asks for."""

from __future__ import annotations

from typing import Any, Final

from flyball.api.fielderrors import FieldError, Shown
from flyball.controlplane.apiserver.body import duplicate_fields, read_json, read_yaml
from flyball.controlplane.apiserver.core import Core, Object
from flyball.controlplane.apiserver.negotiation import media_type
from flyball.controlplane.apiserver.options import WriteOptions
from flyball.controlplane.apiserver.patch import (
    MalformedPatch,
    PatchError,
    PatchTooLarge,
    apply_json_patch,
    apply_merge_patch,
    apply_strategic_patch,
    go_text,
)
from flyball.controlplane.apiserver.render import encode
from flyball.controlplane.apiserver.request import Request
from flyball.controlplane.apiserver.status import StatusError, bad_request, invalid, unsupported_media_type
from flyball.controlplane.apiserver.writing import Change, Target, Written, patch_by_apply, update

__all__ = ["APPLY", "JSON", "MERGE", "STRATEGIC", "patch", "patch_change"]

JSON: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_APPLY_CBOR: Final = "application/apply-patch+cbor"


async def patch(core: Core, request: Request, target: Target, options: WriteOptions) -> Written:
    """Change an object as the body asks."""
    kind = media_type(request.headers.get("content-type", ""))
    if kind not in _types_of(target):
        if kind == STRATEGIC:  # custom resources only: there is nothing that says how their lists are merged
            raise unsupported_media_type(_types_of(target))
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if kind == APPLY:
        return await _apply(core, request, target, options)
    if options.force is not None:
        error = FieldError.forbidden("force", "may not be specified for non-apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [error])
    if kind == JSON:
        body = read_json_patch(request.body)
    else:
        body = read_patch(request.body)
    unknown: list[str] = []
    change = patch_change(kind, body, target, unknown)
    duplicates = duplicate_fields(request.body) if options.validation != "Ignore" else []
    twice = [f'duplicate field "{path}"' for path in duplicates]

    patched = ""

    def noted(obj: Object) -> Object:
        nonlocal patched
        changed = change(obj)
        patched = encode({name: changed[name] for name in sorted(changed)}).decode().rstrip()
        return changed

    def report(fields: list[str]) -> None:
        _report(request, options, [*unknown, *twice, *(f'unknown field "{path}"' for path in fields)], patched)

    def misfit(error: StatusError) -> StatusError:
        why = error.message.partition(f"cannot be handled as a {target.kind.kind}: ")[2] or error.message
        shown: Any = Shown(f'"{go_text(body)}"') if kind == STRATEGIC else patched
        if kind == STRATEGIC and "cannot unmarshal object" in why and "of type []" in why:
            why = "cannot restore slice from map"
        return _invalid_patch(shown, why)

    return await update(core, request, target, noted, options, unknown_as=report, misfit=misfit)


def _types_of(target: Target) -> tuple[str, ...]:
    return (JSON, MERGE, STRATEGIC, APPLY) if target.kind.builtin else (JSON, MERGE, APPLY)


def patch_change(kind: str, body: Any, target: Target, unknown: list[str]) -> Change:
    """Return what a patch does to an object."""

    def change(obj: Object) -> Object:
        try:
            if kind == JSON:
                unknown.clear()
                return _object(apply_json_patch(obj, body, strict=unknown))
            if kind == MERGE:
                return _object(apply_merge_patch(obj, _object(body)))
            return apply_strategic_patch(obj, _object(body), target.kind.schema)
        except PatchTooLarge as error:
            raise StatusError(413, "RequestEntityTooLarge", str(error), {}) from None
        except MalformedPatch as error:
            raise bad_request(f"error decoding patch: {error}") from None
        except PatchError as error:
            raise _refused(kind, error) from None

    return change


def _refused(kind: str, error: PatchError) -> StatusError:
    if kind == JSON:
        return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})
    return StatusError(500, "", str(error))


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        kinds = {list: "array", str: "string", bool: "bool"}
        given = kinds.get(type(value), "number")
        told = f"json: cannot unmarshal {given} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: {told}")
    return value


def read_patch(raw: bytes) -> Any:
    """Read the body of a merge patch. Raises BadRequest."""
    try:
        return read_json(raw)
    except StatusError as error:
        raise bad_request(
            error.message.replace("couldn't get version/kind; json parse error:", "error decoding patch:")
        ) from None


def read_json_patch(raw: bytes) -> Any:
    """Read the body of a JSON patch. Raises BadRequest."""
    body = read_patch(raw)
    if not isinstance(body, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    return body


def _invalid_patch(shown: Any, why: str) -> StatusError:
    return invalid("", "", "", [FieldError.invalid("patch", shown, why)])


def _report(request: Request, options: WriteOptions, problems: list[str], patched: str) -> None:
    if not problems or options.validation == "Ignore":
        return
    if options.validation == "Warn":
        request.warnings.extend(problems)
        return
    raise _invalid_patch(patched, f"strict decoding error: {', '.join(problems)}")


async def _apply(core: Core, request: Request, target: Target, options: WriteOptions) -> Written:
    if not request.first("fieldManager"):
        error = FieldError.required("fieldManager", "is required for apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [error])
    config, duplicates = read_yaml(request.body)
    if not isinstance(config, dict):
        raise bad_request("error decoding YAML: the configuration is no object")
    if options.validation != "Ignore" and duplicates:
        core.report_unknown(request, target.kind, [f'duplicate field "{name}"' for name in duplicates], options)
    return await patch_by_apply(core, request, target, config, options)

"""JSON patch (RFC 6902): a list of operations, done all or not at all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from flyball.api.structural import same
from flyball.controlplane.apiserver.patch.errors import MalformedPatch, PatchError, PatchTooLarge

__all__ = ["MAX_OPERATIONS", "apply_json_patch"]

MAX_OPERATIONS: Final = 10_000
_MEMBERS: Final = frozenset({"op", "path", "from", "value"})
_ABSENT: Final[Any] = object()


def apply_json_patch(document: Any, patch: Any, *, strict: list[str] | None = None) -> Any:
    """Return the document after all operations. Names of unknown members of operations are added to `strict`."""
    if not isinstance(patch, list):
        raise MalformedPatch("a JSON patch is a list of operations")
    operations: list[Any] = patch
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    changed = copy.deepcopy(document)
    for place, operation in enumerate(operations):
        if not isinstance(operation, dict):
            raise MalformedPatch("an operation of a JSON patch is an object")
        members: dict[str, Any] = operation
        if strict is not None:
            strict.extend(f'json patch unknown field "[{place}].{name}"' for name in members if name not in _MEMBERS)
        changed = _operate(changed, members)
    return changed


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    name = operation.get("op")
    handler = _OPERATIONS.get(name) if isinstance(name, str) else None
    if handler is None:
        raise PatchError(f"Unexpected kind: {name}")
    return handler(document, _pointer(operation, "path"), operation)


def _pointer(operation: dict[str, Any], member: str) -> list[str]:
    text = operation.get(member)
    if not isinstance(text, str):
        raise PatchError(f"operation without a {member}")
    if text and not text.startswith("/"):
        raise PatchError(f'a path begins with "/": {text}')
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _value(operation: dict[str, Any]) -> Any:
    return copy.deepcopy(operation.get("value"))


def _add(document: Any, pointer: list[str], operation: dict[str, Any]) -> Any:
    return _put(document, pointer, _value(operation))


def _put(document: Any, pointer: list[str], value: Any) -> Any:
    if not pointer:
        return value
    parent, last = _parent(document, pointer)
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_index(last, len(parent) + 1), value)
    return document


def _remove(document: Any, pointer: list[str], operation: dict[str, Any]) -> Any:
    if not pointer:
        return None
    parent, last = _parent(document, pointer)
    if isinstance(parent, dict):
        if last not in parent:
            raise PatchError(f"Unable to remove nonexistent key: {last}: missing value")
        del parent[last]
    else:
        del parent[_index(last, len(parent))]
    return document


def _replace(document: Any, pointer: list[str], operation: dict[str, Any]) -> Any:
    if not pointer:
        return _value(operation)
    parent, last = _parent(document, pointer)  # a field of an object that is not there yet is added, as upstream does
    parent[last if isinstance(parent, dict) else _index(last, len(parent))] = _value(operation)
    return document


def _move(document: Any, pointer: list[str], operation: dict[str, Any]) -> Any:
    origin = _pointer(operation, "from")
    if pointer[: len(origin)] == origin and len(pointer) > len(origin):
        raise PatchError("a value cannot be moved into itself")
    value = _existing(document, origin)
    return _put(_remove(document, origin, operation), pointer, value)


def _copy(document: Any, pointer: list[str], operation: dict[str, Any]) -> Any:
    return _put(document, pointer, copy.deepcopy(_existing(document, _pointer(operation, "from"))))


def _test(document: Any, pointer: list[str], operation: dict[str, Any]) -> Any:
    found = _find(document, pointer)
    if not same(None if found is _ABSENT else found, operation.get("value")):
        raise PatchError(f"testing value /{'/'.join(pointer)} failed: test failed")
    return document


_OPERATIONS: Final[dict[str, Callable[[Any, list[str], dict[str, Any]], Any]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _existing(document: Any, pointer: list[str]) -> Any:
    found = _find(document, pointer)
    if found is _ABSENT:
        raise PatchError(f"there is nothing at /{'/'.join(pointer)}: missing value")
    return found


def _find(document: Any, pointer: list[str]) -> Any:
    for part in pointer:
        if isinstance(document, dict):
            document = document.get(part, _ABSENT)
        elif isinstance(document, list):
            document = document[_index(part, len(document))] if part != "-" else _ABSENT
        else:
            return _ABSENT
    return document


def _parent(document: Any, pointer: list[str]) -> tuple[Any, str]:
    parent = _find(document, pointer[:-1])
    if not isinstance(parent, (dict, list)):
        raise PatchError(f"doc is missing path: /{'/'.join(pointer)}: missing value")
    return parent, pointer[-1]


def _index(text: str, size: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or (len(digits) > 1 and digits[0] == "0") or len(digits) > 9:
        raise PatchError(f'"{text}" is no index of a list')
    index = int(text)
    if index < 0:
        index += size
    if not 0 <= index < size:
        raise PatchError(f"Unable to access invalid index: {text}: invalid index referenced")
    return index

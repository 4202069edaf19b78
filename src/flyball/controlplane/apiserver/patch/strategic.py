"""Strategic merge patch: a merge patch that knows how the lists of a kind are merged.

A list whose field has the strategy `merge` is merged item by item (maps by their merge key, scalars as a set); every
other list is replaced. What a patch can say beside values:

- `$patch: replace | delete | merge` in a map or in an item of a list;
- `$retainKeys: [...]`: fields of the map that are not named go;
- `$deleteFromPrimitiveList/FIELD: [...]`: scalars to take out of a merged list;
- `$setElementOrder/FIELD: [...]`: the order of a merged list. Items that only the server has keep their places
  relative to each other, and stand before the first patched item that followed them in the list as it was.
"""

from __future__ import annotations

from typing import Any, Final

from flyball.api.structural import Schema
from flyball.controlplane.apiserver.patch.errors import MalformedPatch, PatchError, go_text

__all__ = ["apply_strategic_patch"]

_Map = dict[str, Any]
_List = list[Any]

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def apply_strategic_patch(document: _Map, patch: _Map, schema: Schema | None) -> _Map:
    """Return the document with the patch merged in, as the schema says."""
    return _merge_map(document, patch, schema)


def _merge_map(original: _Map, patch: _Map, schema: Schema | None) -> _Map:
    if _DIRECTIVE in patch:
        return _directed(patch)
    merged = _retained(original, patch)
    ordered = _merge_ordered(merged, patch, schema)
    for field, value in patch.items():
        if field.startswith((_ORDER, _RETAIN)) or field in ordered:
            continue
        if field.startswith(_DELETE):
            _delete_scalars(merged, field.removeprefix(_DELETE), value)
        elif value is None:
            merged.pop(field, None)
        else:
            merged[field] = _merge_value(merged.get(field), value, field, schema)
    return merged


def _directed(patch: _Map) -> _Map:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {field: value for field, value in patch.items() if field != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise PatchError(f"unknown patch type: {directive} in map: {go_text(patch)}")


def _retained(original: _Map, patch: _Map) -> _Map:
    if _RETAIN not in patch:
        return dict(original)
    names = patch[_RETAIN]
    if not isinstance(names, list):
        raise MalformedPatch("invalid patch format of retainKeys")
    for field, value in patch.items():
        plain = field != _RETAIN and not field.startswith((_DELETE, _ORDER))
        if plain and value is not None and field not in names:
            raise MalformedPatch("invalid patch format of retainKeys")
    return {field: value for field, value in original.items() if field in names}


def _merge_value(original: Any, value: Any, field: str, schema: Schema | None) -> Any:
    child = None if schema is None else schema.child(field)
    if isinstance(original, dict) and isinstance(value, dict):
        return value if "replace" in _strategies(child) else _merge_map(original, value, child)
    if isinstance(original, list) and isinstance(value, list):
        return _merge_list(original, value, child) if "merge" in _strategies(child) else value
    return _without_directives(_without_nulls(value))


def _strategies(schema: Schema | None) -> list[str]:
    text = "" if schema is None else schema.source.get("x-kubernetes-patch-strategy") or ""
    return [one for one in text.split(",") if one]


def _merge_key(schema: Schema | None) -> str:
    return "" if schema is None else schema.source.get("x-kubernetes-patch-merge-key") or ""


def _delete_scalars(merged: _Map, field: str, gone: Any) -> None:
    if not isinstance(gone, list):
        raise MalformedPatch("invalid patch format of primitive list")
    if isinstance(merged.get(field), list):
        merged[field] = [item for item in merged[field] if item not in gone]


def _merge_ordered(merged: _Map, patch: _Map, schema: Schema | None) -> set[str]:
    """Merge the lists whose order the patch gives; return their fields."""
    done: set[str] = set()
    for directive, order in patch.items():
        if not directive.startswith(_ORDER):
            continue
        field = directive.removeprefix(_ORDER)
        child = None if schema is None else schema.child(field)
        given = patch.get(field)
        present = merged.get(field)
        _check_order(order, given, _merge_key(child), field)
        if not isinstance(present, list) and not isinstance(given, list):
            continue
        if given is None:
            both: _List = list(present or [])
        elif not isinstance(present, list):
            both = _without_directives(given)
        else:
            both = _merge_list(present, given, child) if "merge" in _strategies(child) else given
        merged[field] = _arranged(both, order, present or [], _merge_key(child))
        done.add(field)
    return done


def _check_order(order: Any, given: Any, key: str, field: str) -> None:
    """Check that the items of the patch stand in the order that it prescribes."""
    if not isinstance(order, list) or not (given is None or isinstance(given, list)):
        raise MalformedPatch("invalid patch format of setElementOrder list")
    places = [_identity(item, key) for item in order]
    wanted = [_identity(item, key) for item in given or [] if not (isinstance(item, dict) and _DIRECTIVE in item)]
    remaining = iter(places)
    if places and not all(identity in remaining for identity in wanted):
        raise PatchError(f"The order in patch list:\n{given}\n doesn't match $setElementOrder list:\n{order}\n")


def _merge_list(original: _List, patch: _List, schema: Schema | None) -> _List:
    if not original and not patch:
        return original
    key = _merge_key(schema)
    if not any(isinstance(item, dict) for item in [*original, *patch]):
        merged: _List = []
        for item in [*original, *patch]:
            if item not in merged:
                merged.append(item)
        return _arranged(merged, patch, original, "")
    if not key:
        raise PatchError("cannot merge lists without merge key")
    kept, changes = _after_directives(original, patch, key)
    merged = list(kept)
    for change in changes:
        identity = _identity(change, key)
        place = next((place for place, item in enumerate(merged) if _identity(item, key) == identity), None)
        if place is None:
            merged.append(_without_directives(change))
        else:
            merged[place] = _merge_map(merged[place], change, None if schema is None else schema.items)
    return _arranged(merged, changes, kept, key)


def _after_directives(original: _List, patch: _List, key: str) -> tuple[_List, _List]:
    """Do what items with `$patch` say; return what is left of the list, and the plain items of the patch."""
    kept, changes, replace = list(original), [], False
    for item in patch:
        directive = item.get(_DIRECTIVE) if isinstance(item, dict) else None
        if directive is None:
            changes.append(item)
        elif directive == "delete":
            identity = _identity(item, key)
            kept = [one for one in kept if _identity(one, key) != identity]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise PatchError(f"unknown patch type: {directive} in map: {go_text(item)}")
    return ([] if replace else kept), changes


def _identity(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict):
        raise PatchError(f"expected a map with the merge key {key}, but received {item!r}")
    if key not in item:
        raise PatchError(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return item[key]


def _arranged(merged: _List, order: _List, before: _List, key: str) -> _List:
    """Bring a merged list into order: of the patch where it names items, of the list as it was everywhere else."""
    wanted = {_hashable(_identity(item, key)): place for place, item in reversed(list(enumerate(order)))}
    was = {_hashable(_identity(item, key)): place for place, item in reversed(list(enumerate(before)))}
    named: list[tuple[Any, Any]] = []
    others: list[tuple[Any, Any]] = []
    for item in merged:
        identity = _hashable(_identity(item, key))
        (named if identity in wanted else others).append((identity, item))
    named.sort(key=lambda pair: wanted[pair[0]])
    others.sort(key=lambda pair: was.get(pair[0], len(was)))
    arranged: _List = []
    for identity, item in named:
        while others and identity in was and was.get(others[0][0], len(was)) < was[identity]:
            arranged.append(others.pop(0)[1])
        arranged.append(item)
    return arranged + [item for _, item in others]


def _hashable(identity: Any) -> Any:
    return repr(identity) if isinstance(identity, (dict, list)) else (type(identity) is bool, identity)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _without_nulls(inner) for field, inner in value.items() if inner is not None}
    return value


def _without_directives(value: Any) -> Any:
    """Take the directives out of a part of the patch that meets nothing to be merged with."""
    if isinstance(value, dict):
        return {
            field: _without_directives(inner)
            for field, inner in value.items()
            if not field.startswith((_ORDER, _DELETE, _RETAIN)) and not _is_directive(inner) and field != _DIRECTIVE
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and value.get(_DIRECTIVE) == "delete"

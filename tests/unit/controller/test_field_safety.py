"""An operator with older types never drops a field of a newer object: 10,000 objects, by a seed."""

from __future__ import annotations

import copy
import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from flyball import Resource, Spec, Status
from flyball.api import Model, decode, field
from flyball.api.changes import apply_merge_patch
from flyball.client.writes import changes
from flyball.controller.failures import Verdict
from flyball.controller.primary import metadata_patch
from flyball.controller.status import new_draft

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OBJECTS = 10_000


class Part(Model):
    name: str = ""
    ready: int = 0


class OldSpec(Spec):
    size: int = 1


class OldStatus(Status):
    ready: int = 0
    parts: list[Part] = field(default_factory=list[Part])
    one: Part = field(default_factory=Part)


class Old(Resource, group="example.org", version="v1"):
    """What the operator knows of the kind."""

    spec: OldSpec
    status: OldStatus


def unknown(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    """Fields that no old class has; their names begin with `x`."""
    return {f"x{number}": value(chance, depth) for number in range(chance.randrange(3))}


def value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(6 if depth < 2 else 4)
    if kind == 4:
        return [value(chance, depth + 1) for _ in range(chance.randrange(3))]
    if kind == 5:
        return unknown(chance, depth + 1)
    return [7, "text", True, 1.5][kind]


def newer(chance: random.Random) -> dict[str, Any]:
    """An object as a newer operator and its users have it."""
    names = chance.sample(["a", "b", "c", "d"], chance.randrange(4))
    conditions = [
        {
            "type": type,
            "status": chance.choice(["True", "False", "Unknown"]),
            "reason": chance.choice(["Some", "Reconciled", "ReconcileError"]),
            "message": "",
            "lastTransitionTime": "2025-01-01T00:00:00Z",
            **unknown(chance),
        }
        for type in chance.sample(["Ready", "Degraded", "Foreign", "Other"], chance.randrange(5))
    ]
    status: dict[str, Any] = {
        "ready": chance.randrange(3),
        "parts": [{"name": name, "ready": chance.randrange(3), **unknown(chance)} for name in names],
        "one": {"name": "one", **unknown(chance)},
        "conditions": conditions,
        **unknown(chance),
    }
    metadata = {"name": "demo", "namespace": "default", "uid": "u", "resourceVersion": "5", "generation": 2}
    return {
        "apiVersion": "example.org/v1",
        "kind": "Old",
        "metadata": {**metadata, "labels": {"a": "b"}, **unknown(chance)},
        "spec": {"size": 3, **unknown(chance)},
        "status": {key: part for key, part in status.items() if chance.random() > 0.1},
        **unknown(chance),
    }


def reconcile(obj: Old, chance: random.Random) -> None:
    """What an author does to a status."""
    obj.status.ready = chance.randrange(3)
    obj.status.one.ready = chance.randrange(3)
    for part in obj.status.parts:
        part.ready = chance.randrange(3)
    chance.shuffle(obj.status.parts)
    if chance.random() < 0.3:
        obj.status.parts.append(Part(name="new"))
    if chance.random() < 0.5:
        obj.status.set_condition("Ready", chance.random() < 0.5, reason="Said", message="by the author")


def unknown_paths(found: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Every unknown field by its path; items of lists by their names."""
    paths: dict[tuple[str, ...], Any] = {}
    if isinstance(found, dict):
        items: dict[str, Any] = found
        for name, part in items.items():
            if name.startswith("x"):
                paths[(*path, name)] = part
            else:
                paths.update(unknown_paths(part, (*path, name)))
    elif isinstance(found, list):
        parts: list[Any] = found
        for part in parts:
            if isinstance(part, dict):
                paths.update(unknown_paths(part, (*path, str(part.get("name") or part.get("type")))))
    return paths


@pytest.mark.capability("C50")
def test_no_unknown_field_is_ever_lost() -> None:
    chance = random.Random(20261119)
    for number in range(OBJECTS):
        before = newer(chance)
        obj = decode(Old, msgspec.json.encode(before))
        draft = new_draft(obj, owned=["Ready"], error_condition="Degraded")
        assert draft is not None
        reconcile(obj, chance)
        verdict = Verdict("backoff", "ReconcileError", "x") if chance.random() < 0.3 else None
        draft.finish(NOW, verdict)
        kept = unknown_paths(before)
        after = apply_merge_patch(copy.deepcopy(before), changes(obj, "status"))
        assert {path: unknown_paths(after).get(path) for path in kept} == kept, number
        assert {name: part for name, part in after.items() if name != "status"} == {
            name: part for name, part in before.items() if name != "status"
        }
        obj.metadata.labels["new"] = "label"
        patch: Any = metadata_patch(obj, None)
        labelled = apply_merge_patch(copy.deepcopy(before), patch.document)
        assert labelled["metadata"]["labels"] == {"a": "b", "new": "label"}
        assert unknown_paths(labelled) == kept

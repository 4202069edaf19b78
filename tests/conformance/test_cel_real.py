"""Rules of custom resources: a real API server and `flyball.api.cel` refuse the same things, in the same words.

With `FLYBALL_RECORD=1` what the server says is written to `tests/unit/api/cel/refusals.json`, for the unit tests.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.celcases import CHANGES, DEFINITIONS, OBJECTS, resource_schema

from flyball.api.cel import Rules, check_rules
from flyball.api.fielderrors import FieldError
from flyball.api.structural import compile_schema
from flyball.testing.eventually import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real

RECORDING = Path(__file__).parents[1] / "unit/api/cel/refusals.json"
Record = Callable[[str, str, list[dict[str, str]]], None]

_numbers = count(1)
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    kind = name.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.cel.flyball.example.org"},
        "spec": {
            "group": "cel.flyball.example.org",
            "scope": "Namespaced",
            "names": {"plural": f"{name}s", "singular": name, "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


class Server:
    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster

    def send(self, verb: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        code, raw = self.cluster.request(verb, path, None if body is None else json.dumps(body).encode())
        answer: dict[str, Any] = json.loads(raw)
        return code, answer

    async def kind(self, schema: dict[str, Any]) -> tuple[str, str]:
        """Make a kind, wait for it, and return its path and name."""
        name = f"rule{next(_numbers)}x"
        code, answer = self.send("POST", CRDS, definition(name, schema))
        assert code == 201, answer["message"]
        path = f"/apis/cel.flyball.example.org/v1/namespaces/default/{name}s"
        await eventually(lambda: self.cluster.request("GET", path)[0], lambda found: found == 200)
        return path, name.capitalize()


@pytest.fixture(scope="module")
def record() -> Iterator[Record]:
    """Keep what the server says, and write it down at the end if that was asked for."""
    found: dict[str, dict[str, Any]] = {"definitions": {}, "objects": {}, "changes": {}}

    def keep(family: str, name: str, told: list[dict[str, str]]) -> None:
        found[family][name] = told

    yield keep
    if os.environ.get("FLYBALL_RECORD"):
        RECORDING.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


@pytest.fixture
def server(real_cluster: RealCluster) -> Server:
    return Server(real_cluster)


def causes(answer: dict[str, Any]) -> list[dict[str, str]]:
    """Return the causes without what changes from one answer to the next, in an order of their own."""
    found = [dict(cause) for cause in answer.get("details", {}).get("causes", [])]
    for cause in found:
        cause["message"] = re.sub(r"selfType\d*", "selfType", cause["message"])
    return sorted(found, key=lambda cause: (cause["field"], cause["message"]))


def ours(errors: list[FieldError]) -> list[dict[str, str]]:
    return sorted((error.cause() for error in errors), key=lambda cause: (cause["field"], cause["message"]))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_ill_formed_rules_are_refused_with_the_kind(server: Server, record: Record, name: str) -> None:
    schema = DEFINITIONS[name]
    code, answer = server.send("POST", CRDS, definition(f"bad{next(_numbers)}x", resource_schema(schema)))
    expected = ours(check_rules(compile_schema(resource_schema(schema))))
    record("definitions", name, causes(answer))
    assert code == 422
    assert causes(answer) == expected


@pytest.mark.parametrize("name", OBJECTS)
async def test_objects_are_refused_alike(server: Server, record: Record, name: str) -> None:
    case = OBJECTS[name]
    schema = resource_schema(case.schema, *case.root_rules)
    assert check_rules(compile_schema(schema)) == []
    path, kind = await server.kind(schema)
    body = {"apiVersion": "cel.flyball.example.org/v1", "kind": kind, "metadata": {"name": "a"}, "spec": case.new}
    code, answer = server.send("POST", path, body)
    record("objects", name, causes(answer))
    expected = ours(Rules(compile_schema(schema)).check(body))
    assert code == (422 if expected else 201), answer
    assert causes(answer) == expected
    assert bool(expected) is case.refused


@pytest.mark.parametrize("name", CHANGES)
async def test_changes_are_refused_alike(server: Server, record: Record, name: str) -> None:
    case = CHANGES[name]
    schema = resource_schema(case.schema, *case.root_rules)
    path, kind = await server.kind(resource_schema(without_rules(case.schema)))
    body = {"apiVersion": "cel.flyball.example.org/v1", "kind": kind, "metadata": {"name": "a"}, "spec": case.old}
    code, old = server.send("POST", path, body)
    assert code == 201, old
    await change_schema(server, path, kind.lower(), schema)
    new = {**old, "spec": case.new}
    expected = ours(Rules(compile_schema(schema)).check(new, old))
    code, answer = server.send("PUT", f"{path}/a?dryRun=All", new)
    record("changes", name, causes(answer))
    assert code == (422 if expected else 200), answer
    assert causes(answer) == expected
    assert bool(expected) is case.refused


async def change_schema(server: Server, path: str, name: str, schema: dict[str, Any]) -> None:
    """Give a kind the schema that has the rules, and wait until they count: those of the marker are asked then."""
    definition_path = f"{CRDS}/{name}s.cel.flyball.example.org"
    made = server.send("GET", definition_path, None)[1]
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    code, answer = server.send("PUT", definition_path, made)
    assert code == 200, answer["message"]
    body = server.send("GET", f"{path}/a", None)[1]
    body["spec"] = {**body["spec"], "marker": "no"}
    await eventually(lambda: server.send("PUT", f"{path}/a?dryRun=All", body)[0], lambda found: found == 422)


def without_rules(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_rules(value) for key, value in schema.items() if key != "x-kubernetes-validations"}
    return [without_rules(each) for each in schema] if isinstance(schema, list) else schema

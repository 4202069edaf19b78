"""What tests of an operator's machine start from: a sample object, and a cluster where there is one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import pytest

from flyball.api import DynamicObject, Resource, ResourceType, from_dict
from flyball.api.crd import crd_of
from flyball.api.schema import schema_of
from flyball.errors import AlreadyExists

__all__ = ["EventLog", "cluster_or_skip", "install_or_skip", "sample_of"]

R = TypeVar("R", bound=Resource)

_DEFINITION = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
_PATIENCE, _PAUSE = 2.0, 0.02
_TEXTS = {"date-time": "2024-01-01T00:00:00Z", "date": "2024-01-01", "duration": "1s", "byte": "", "ipv4": "127.0.0.1"}


def sample_of(kind: type[R], name: str, *, namespace: str = "default") -> R:
    """An object of a class with what its schema requires: defaults and first choices, else the smallest values.

    Patterns and rules are not solved; set such fields yourself.
    """
    schema = schema_of(kind)
    document = {
        "apiVersion": kind.resource_type.api_version,
        "kind": kind.resource_type.kind,
        "metadata": {"name": name, **({"namespace": namespace} if kind.resource_type.namespaced else {})},
        "spec": _example(schema.get("properties", {}).get("spec", {})),
    }
    return from_dict(kind, document)


def _example(schema: dict[str, Any]) -> Any:
    """The smallest value that a schema takes."""
    for key in ("default", "example"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object" | None:
            properties = schema.get("properties", {})
            return {key: _example(properties[key]) for key in schema.get("required", []) if key in properties}
        case "array":
            return [_example(schema.get("items", {}))] * int(schema.get("minItems", 0))
        case "boolean":
            return False
        case "integer" | "number":
            return _number(schema)
        case _:
            return _TEXTS.get(schema.get("format", ""), "x" * int(schema.get("minLength", 0)))


def _number(schema: dict[str, Any]) -> int | float:
    least = schema.get("minimum", 0)
    exclusive = schema.get("exclusiveMinimum") is True
    value: int | float = least + 1 if exclusive else max(least, min(0, schema.get("maximum", 0)))
    return value


class EventLog:
    """Stands where a recorder of events is wanted and keeps what it is told.

    Whatever method is called on it, `calls` has its name, its arguments and its keywords.
    """

    def __init__(self) -> None:
        """Nothing was recorded yet."""
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., _Done]:
        if name.startswith("__"):
            raise AttributeError(name)

        def record(*args: Any, **keywords: Any) -> _Done:
            self.calls.append((name, args, keywords))
            return _Done()

        return record


class _Done:
    """What a recording returns: nothing, whether it is awaited or not."""

    def __await__(self) -> Generator[None]:
        return
        yield


def cluster_or_skip(request: pytest.FixtureRequest) -> Any:
    """The cluster of the fixture `cluster`; the test is skipped, with the reason, where nothing provides it."""
    try:
        return request.getfixturevalue("cluster")
    except pytest.FixtureLookupError:
        pytest.skip("needs a cluster: no plugin or conftest.py provides the fixture `cluster`")


async def install_or_skip(client: Any, kind: type[Resource]) -> None:
    """Make a kind known to a cluster; the test is skipped, with the reason, where it is not served then."""
    if kind.kind_options.builtin:
        return
    document = crd_of(kind)
    with contextlib.suppress(AlreadyExists):
        await client.create(DynamicObject(document))
    name = str(document["metadata"]["name"])
    for _ in range(round(_PATIENCE / _PAUSE)):
        if _established(await client.get(_DEFINITION, name)):
            return
        await asyncio.sleep(_PAUSE)
    pytest.skip(f"the cluster does not serve {name}: its definition is not established after {_PATIENCE:g} s")


def _established(definition: dict[str, Any]) -> bool:
    status = definition.get("status") or {}
    return any(one["type"] == "Established" and one["status"] == "True" for one in status.get("conditions") or [])

"""What the scripts of this folder share: cases that run one after another, and a report of them.

A script is a program of a real client's user: it finds the cluster by $KUBECONFIG and asserts on what it sees. Each
case has a namespace of its own. The report is one JSON object: the traceback of each failed case by name, and what the
cases want to tell the test about the world they leave behind.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

_cases: list[Callable[..., Any]] = []
left: dict[str, Any] = {}
"""What the test may look for when the script has ended."""


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    """A case: a function of a client and the name of a namespace that it may create."""
    _cases.append(function)
    return function


def namespace_name() -> str:
    return f"clients-{uuid.uuid4().hex[:8]}"


def run(*given: Any) -> None:
    """Run all cases and print the report."""
    print(json.dumps(asyncio.run(arun(*given, inside=False))))


async def arun(*given: Any, inside: bool = True) -> dict[str, Any]:
    """Run all cases with `given`; `inside` an event loop for cases that are coroutines."""
    failures: dict[str, str] = {}
    passed: list[str] = []
    for function in _cases:
        try:
            result = function(*given, namespace_name())
            if inspect.isawaitable(result):
                await asyncio.wait_for(result, 30)
        except Exception:
            failures[function.__name__] = traceback.format_exc()
        else:
            passed.append(function.__name__)
    return {"passed": passed, "failures": failures, "left": left}


def until(look: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Look until the answer is true."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {inspect.getsource(look).strip()}"
        time.sleep(0.02)


def gadgets(group: str) -> dict[str, Any]:
    """A definition with everything that a client may ask of a custom kind."""
    text, number = {"type": "string"}, {"type": "integer"}
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {**number, "minimum": 0, "maximum": 10},
            "color": {**text, "enum": ["red", "green"], "default": "green"},
            "parts": {
                "type": "array",
                "items": {"type": "object", "required": ["name"], "properties": {"name": text, "weight": number}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        },
        "x-kubernetes-validations": [{"rule": "self.size != 7", "message": "seven is taken"}],
    }
    status = {"type": "object", "properties": {"ready": number, "phase": text}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
        },
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "shortNames": ["gd"]},
            "versions": [version],
        },
    }


def gadget(group: str, name: str, size: int, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Gadget",
        "metadata": {"name": name},
        "spec": {"size": size, **spec},
    }


def established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "registry.test/main:1"}]},
            },
        },
    }

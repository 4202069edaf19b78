"""Short ways to write cases: each turns what a family's file says into steps (see `cases`).

steps      the steps themselves
create     post one object, record the answer                               (`to`, `object`)
patch      make an object, patch it once or several times                   (`base` of the family's `bases`, `patches`)
apply      apply one after the other, with managers                         (`to` or `base`, `applies`)
schema     a CustomResourceDefinition, then objects of it                   (`schema`, `objects`, `updates`)
rule       one CEL rule over the fields of a spec, then objects             (`fields`, `rule`, `objects`, `updates`)
life       a kind's whole life: create, read, list, change, delete          (`to`, `object`, `change`)
table      objects, printed as a list and alone                             (`to`, `objects`, `statuses`)
random     a sequence of writes made from a seed                            (`base` of the family's `bases`, `seed`)
story      what happens to workloads, and what controllers make of it      (`story`, `looks`; see `stories`)
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tools.differential.sequences import sequence

__all__ = ["WAYS", "definition"]

Written = dict[str, Any]


def _steps(case: Written, family: Written) -> list[Any]:
    return [*family.get("before", []), *case["steps"]]


def _create(case: Written, family: Written) -> list[Any]:
    return [{"POST": case.get("to", family.get("to")), "body": case["object"]}]


def _patch(case: Written, family: Written) -> list[Any]:
    base = family["bases"][case["base"]]
    path, query = f"{base['to']}/{base['object']['metadata']['name']}", case.get("query", "")
    steps: list[Any] = [{"crd": definition(base["crd"]), "quiet": True}] if "crd" in base else []
    steps.append({"POST": base["to"], "body": _overlaid(base["object"], case.get("with")), "quiet": True})
    for written in case.get("patches", [case]):
        step = {"PATCH": path + written.get("sub", "") + written.get("query", query), "type": written["type"]}
        step |= {key: written[key] for key in ("raw", "headers") if key in written}
        if "raw" not in written:
            step["body"] = written["patch"]
        steps.append(step)
    return steps


def _apply(case: Written, family: Written) -> list[Any]:
    base = family["bases"][case["base"]]
    path = f"{base['to']}/{base['object']['metadata']['name']}"
    steps: list[Any] = []
    if "crd" in base:
        steps.append({"crd": definition(base["crd"]), "quiet": True})
    for written in case["applies"]:
        verb, manager = written.get("verb", "apply"), written.get("by", "one")
        query = f"?fieldManager={manager}" if manager else "?"
        query += "&force=true" if written.get("force") else ""
        target = path + written.get("sub", "") + query + written.get("query", "")
        if verb == "apply":
            body = _overlaid(base["object"], {}) if written.get("whole") else _named(base["object"])
            body = _overlaid(body, written.get("set"))
            steps.append({"PATCH": target, "type": "apply", "body": body})
        elif verb == "create":
            body = _overlaid(base["object"], written.get("set"))
            steps.append({"POST": f"{base['to']}{query}", "body": body})
        elif verb == "update":
            steps.append({"GET": path + written.get("sub", ""), "save": "live", "quiet": True})
            steps.append({"PUT": target, "from": "live", "merge": written["set"]})
        else:
            steps.append({"PATCH": target, "type": verb, "body": written["set"]})
    return steps


def definition(crd: Written) -> Written:
    """A whole CustomResourceDefinition from its schema, or from versions."""
    versions = crd.get("versions")
    if versions is None:
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": crd["schema"]}}
        versions = [version | crd.get("version", {})]
    plural = crd.get("plural", "things")
    spec = {
        "group": "$GROUP",
        "scope": crd.get("scope", "Namespaced"),
        "names": {"plural": plural, "kind": crd.get("kind", "Thing")} | crd.get("names", {}),
        "versions": versions,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.$GROUP"},
        "spec": spec | crd.get("spec", {}),
    }


def _schema(case: Written, family: Written) -> list[Any]:
    crd = case["crd"] if "crd" in case else {"schema": case.get("schema")}
    if "spec" in case:
        crd = {"schema": {"type": "object", "properties": {"spec": case["spec"]}}}
    objects = case.get("objects", [])
    steps: list[Any] = [{"crd": definition(crd), **({"quiet": True} if objects else {})}]
    return steps + _objects(case)


def _rule(case: Written, family: Written) -> list[Any]:
    rule = case["rule"] if isinstance(case["rule"], list) else [case["rule"]]
    rules = [{"rule": one} if isinstance(one, str) else one for one in rule]
    spec: Written = {
        "type": "object",
        "properties": {name: _field(kind) for name, kind in case["fields"].items()},
        "x-kubernetes-validations": rules,
    }
    crd = {"schema": {"type": "object", "properties": {"spec": spec}}}
    objects = case.get("objects", [])
    steps: list[Any] = [{"crd": definition(crd), **({"quiet": True} if objects else {})}]
    return steps + _objects(case)


def _field(kind: Any) -> Written:
    """`string`, `integer`, ... `[string]` a list, `{string}` a map, or a whole schema. Lists and maps are bounded."""
    if isinstance(kind, dict):
        return kind
    if isinstance(kind, list):
        return {"type": "array", "maxItems": 20, "items": _field(kind[0])}
    if kind.startswith("map of "):
        return {"type": "object", "maxProperties": 20, "additionalProperties": _field(kind.removeprefix("map of "))}
    if kind == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    name, _, form = kind.partition(":")
    bound = {"maxLength": 200} if name == "string" and form in ("", "byte") else {}
    return {"type": name} | bound | ({"format": form} if form else {})


def _objects(case: Written) -> list[Any]:
    """Objects of the definition: each is posted under a name of its own; updates replace the first one's spec."""
    path = case.get("path", "/apis/$GROUP/v1/namespaces/$NS/things")
    steps: list[Any] = []
    for number, spec in enumerate(case.get("objects", [])):
        written = {"spec": spec} if "whole" not in case else spec
        body = {"apiVersion": "$GROUP/v1", "kind": "Thing", "metadata": {"name": f"n{number}"}}
        steps.append({"POST": path + case.get("query", ""), "body": _overlaid(body, written), "save": f"n{number}"})
    for spec in case.get("updates", []):
        steps.append({"GET": f"{path}/n0", "save": "live", "quiet": True})
        body = {"apiVersion": "$GROUP/v1", "kind": "Thing", "metadata": {"name": "n0"}, "spec": spec}
        body["metadata"]["resourceVersion"] = "${live.metadata.resourceVersion}"  # type: ignore[index]
        steps.append({"PUT": f"{path}/n0", "body": body})
    return steps


def _life(case: Written, family: Written) -> list[Any]:
    made = copy.deepcopy(case["object"])
    name = made["metadata"].setdefault("name", "$NS" if case.get("cluster") else "one")
    made["metadata"]["labels"] = {"case": "$NS"} | made["metadata"].get("labels", {})
    path, chosen, events = case["to"], "labelSelector=case%3D$NS", case.get("events", 2)
    change = case.get("change") or {"metadata": {"annotations": {"changed": "yes"}}}
    return [
        *case.get("before", []),
        {"POST": f"{path}?dryRun=All", "body": made},
        {"POST": path, "body": made, "save": "made"},
        {"POST": path, "body": made},
        f"GET {path}/{name}",
        f"GET {path}?{chosen}",
        {"PUT": f"{path}/{name}", "from": "made", "merge": change},
        {"PUT": f"{path}/{name}", "from": "made", "merge": {"metadata": {"annotations": {"stale": "yes"}}}},
        {"PATCH": f"{path}/{name}", "type": "merge", "body": {"metadata": {"annotations": {"patched": "yes"}}}},
        {"watch": f"{path}?watch=1&{chosen}&resourceVersion=${{made.metadata.resourceVersion}}", "events": events},
        f"DELETE {path}?{chosen}&dryRun=All",
        f"DELETE {path}/{name}{case.get('delete', '')}",
        f"GET {path}/{name}",
    ]


def _table(case: Written, family: Written) -> list[Any]:
    steps: list[Any] = [{"crd": definition(case["crd"]), "quiet": True}] if "crd" in case else []
    for made in case["objects"]:
        body = copy.deepcopy(made)
        body["metadata"]["labels"] = {"case": "$NS"} | body["metadata"].get("labels", {})
        steps.append({"POST": case["to"], "body": body, "quiet": True})
    for name, status in case.get("statuses", {}).items():
        steps.append(
            {"PATCH": f"{case['to']}/{name}/status", "type": "merge", "body": {"status": status}, "quiet": True}
        )
    first, chosen = case["objects"][0]["metadata"]["name"], "labelSelector=case%3D$NS"
    as_table = {"headers": {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}}
    return [
        *steps,
        {"GET": f"{case['to']}?{chosen}"} | as_table,
        {"GET": f"{case['to']}/{first}?includeObject=None"} | as_table,
    ]


def _random(case: Written, family: Written) -> list[Any]:
    base = family["bases"][case["base"]]
    steps: list[Any] = [{"crd": definition(base["crd"]), "quiet": True}] if "crd" in base else []
    return steps + sequence(base["to"], base["object"], case["base"], case["seed"], case.get("length", 8))


def _story(case: Written, family: Written) -> list[Any]:
    """Steps of a story; `make` may name one of the family's `bases`, changed by `with`."""
    steps: list[Any] = []
    for written in case["story"]:
        step = dict(written)
        if isinstance(step.get("make"), str):
            step["make"] = _overlaid(family["bases"][step["make"]], step.pop("with", None))
        steps.append(step)
    return steps


def _named(body: Written) -> Written:
    return {key: body[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": body["metadata"]["name"]}}


def _overlaid(body: Written, changes: Written | None) -> Written:
    """A copy of the body with a merge patch on it; here null stays null, so that a case can send one."""
    result = copy.deepcopy(body)
    for key, value in (changes or {}).items():
        old = result.get(key)
        result[key] = _overlaid(old, value) if isinstance(value, dict) and isinstance(old, dict) else value
    return result


WAYS: dict[str, Callable[[Written, Written], list[Any]]] = {
    "steps": _steps,
    "create": _create,
    "patch": _patch,
    "apply": _apply,
    "schema": _schema,
    "rule": _rule,
    "life": _life,
    "table": _table,
    "random": _random,
    "story": _story,
}

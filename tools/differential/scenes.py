"""What a story tells of the world at a moment of rest, with everything accidental replaced.

uids -> U; hashes of templates and revisions -> H1, H2, ... in the order of their revisions; generated suffixes -> `*`;
minutes in the names of a CronJob's Jobs -> M1, M2, ...; times -> T; service addresses -> IP; the namespace -> $NS;
versions of other objects are left out.
How often a controller has changed an object that it owns is not told. Conditions are told by type, without times; Pods
that look alike are told once, with their number; of Events only what was not told before, in the order in which it was
said, and not how often.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tools.differential.play import at

__all__ = ["Narrator"]

Object = dict[str, Any]

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX = f"[{LETTERS}]{{5}}"
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:\d\d)")
ADDRESS = re.compile(r"\b10\.0\.0\.\d+\b")
MINUTES = re.compile(r"(?<=-)\d{8}\b")
HASH_LABELS = ("pod-template-hash", "controller-revision-hash")
COMBINED = "(combined from similar events): "
"""How client-go begins an Event that stands for many: how often something was said is not told."""
ACCIDENT = "the object has been modified; please apply your changes to the latest version"
"""What is said when a controller's cache was late: it tries again, and nobody has to do anything."""
REVISION = "deployment.kubernetes.io/revision"
SPEC: dict[str, tuple[str, ...]] = {
    "cronjobs": ("suspend",),
    "deployments": ("replicas", "paused"),
    "endpoints": (),
    "jobs": ("parallelism", "completions", "suspend", "selector", "manualSelector"),
    "persistentvolumeclaims": ("accessModes", "resources", "storageClassName"),
    "pods": ("nodeName", "hostname", "subdomain"),
    "replicasets": ("replicas", "minReadySeconds", "selector"),
    "replicationcontrollers": ("replicas", "minReadySeconds", "selector"),
    "services": ("type", "selector"),
    "statefulsets": ("replicas",),
}
ALIKE = frozenset(("endpointslices", "pods"))
"""Of these there are many whose names say nothing."""
PASSING = frozenset(("uid", "resourceVersion"))
LEFT_OUT = frozenset(("apiVersion", "kind", "metadata", "spec", "status"))
TOO_LONG: dict[str, frozenset[str]] = {"controllerrevisions": frozenset(("data",))}


class Narrator:
    """Tells what has changed since it was asked last."""

    def __init__(self, namespace: str, shows: dict[str, list[str]], *, in_order: bool = True) -> None:
        """Nothing was told yet. Events are told `in_order`, or sorted where their order is chance."""
        self._in_order = in_order
        self._namespace = namespace
        self._shows = shows
        self._hashes: dict[str, str] = {}
        self._minutes: dict[str, str] = {}
        self._bases: set[str] = set()
        self._told: dict[str, Any] = {}
        self._said: set[str] = set()

    def tell(self, found: dict[str, list[Object]], events: list[Object]) -> dict[str, Any]:
        """What is new, after `learn`: objects by resource and name (null when they went), Pods as a list, Events."""
        news: dict[str, Any] = {}
        for resource, objects in found.items():
            shown = [self._object(resource, each) for each in objects]
            now: Any = _counted(shown) if resource in ALIKE else {each.pop("name"): each for each in shown}
            changed = _changes(self._told.get(resource), now)
            if changed is not None:
                news[resource] = changed
            self._told[resource] = now
        said = self.hear(events)
        return news | ({"events": said} if said else {})

    def learn(self, found: dict[str, list[Object]]) -> None:
        """Take note of names, without telling anything."""
        for resource in sorted(found, key=lambda name: name == "pods"):
            self._learn(resource, found[resource])

    # -- names

    def real_name(self, told: str) -> str:
        """The name that was told as this one."""
        for value, name in (self._hashes | self._minutes).items():
            told = re.sub(rf"\b{name}\b", value, told)
        return told

    def _learn(self, resource: str, objects: Iterable[Object]) -> None:
        for each in sorted(objects, key=_age):
            metadata = each["metadata"]
            for label in HASH_LABELS:
                value = (metadata.get("labels") or {}).get(label, "").rpartition("-")[2]
                if value:
                    self._hashes.setdefault(value, f"H{len(self._hashes) + 1}")
            if resource == "controllerrevisions":
                self._hashes.setdefault(metadata["name"].rpartition("-")[2], f"H{len(self._hashes) + 1}")
            for minutes in MINUTES.findall(metadata["name"]):
                self._minutes.setdefault(minutes, f"M{len(self._minutes) + 1}")
            if resource != "pods":
                self._bases.add(self._text(metadata["name"]))

    def _text(self, text: str) -> str:
        text = text.replace(self._namespace, "$NS")
        for value, name in self._hashes.items():
            text = text.replace(value, name)
        text = UID.sub("U", text)
        text = TIME.sub("T", text)
        text = ADDRESS.sub("IP", text)
        text = MINUTES.sub(lambda match: self._minutes.get(match[0], "M"), text)
        if self._bases:
            bases = "|".join(re.escape(base) for base in sorted(self._bases, key=len, reverse=True))
            text = re.sub(rf"\b((?:{bases})(?:-\d+)?-){SUFFIX}\b", r"\1*", text)
        return text

    def _masked(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._text(key): self._masked(inner) for key, inner in value.items() if key not in PASSING}
        if isinstance(value, list):
            return [self._masked(inner) for inner in value]
        return self._text(value) if isinstance(value, str) else value

    # -- objects

    def _object(self, resource: str, obj: Object) -> dict[str, Any]:
        metadata, status = obj["metadata"], dict(obj.get("status") or {})
        shown: dict[str, Any] = {"name": self._name(metadata)}
        if resource != "pods" and "generation" in metadata and not metadata.get("ownerReferences"):
            shown["generation"] = metadata["generation"]
        for key in ("labels", "annotations", "finalizers"):
            if metadata.get(key):
                shown[key] = self._masked(metadata[key])
        if metadata.get("ownerReferences"):
            shown["owners"] = [self._owner(each) for each in metadata["ownerReferences"]]
        if "deletionTimestamp" in metadata:
            shown["deleting"] = True
        spec = obj.get("spec") or {}
        chosen = {key: spec[key] for key in SPEC.get(resource, ()) if key in spec}
        images = [each.get("image") for each in (at(spec, "template.spec.containers") or ())]
        shown |= {"spec": self._masked(chosen)} if chosen else {}
        shown |= {"images": images} if images else {}
        shown |= {path: self._masked(at(obj, path)) for path in self._shows.get(resource, ())}
        others = {key: value for key, value in obj.items() if key not in LEFT_OUT | TOO_LONG.get(resource, frozenset())}
        for unordered in ("endpoints", "subsets"):
            if others.get(unordered):
                others[unordered] = sorted(others[unordered], key=_addressed)
        shown |= self._masked(others)
        if resource == "pods":
            status = {key: status[key] for key in ("phase", "reason", "message", "conditions") if key in status}
        if "observedGeneration" in status and metadata.get("ownerReferences"):
            status["observedGeneration"] = (
                "the newest" if status["observedGeneration"] == metadata["generation"] else "old"
            )
        if "conditions" in status:
            status["conditions"] = {each["type"]: _condition(each) for each in status["conditions"]}
        return shown | ({"status": self._masked(status)} if status else {})

    def _name(self, metadata: Object) -> str:
        base = metadata.get("generateName", "")
        name = str(metadata["name"])
        generated = base and re.fullmatch(re.escape(base) + SUFFIX, name)
        return self._text(base) + "*" if generated else self._text(name)

    def _owner(self, reference: Object) -> str:
        words = [f"{reference['kind']}/{self._text(reference['name'])}"]
        words += [key for key in ("controller", "blockOwnerDeletion") if reference.get(key)]
        return " ".join(words)

    def hear(self, events: list[Object]) -> list[str]:
        """The Events that were not heard before, as lines."""
        told: list[str] = []
        for event in sorted(events, key=lambda each: (_about(each), int(each["metadata"]["resourceVersion"]))):
            source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or "?"
            message = event.get("message", "").removeprefix(COMBINED)
            if ACCIDENT in message:
                continue
            line = self._text(f"{_about(event)} {event['type']} {event['reason']} [{source}]: {message}")
            if line not in self._said:
                self._said.add(line)
                told.append(line)
        return sorted(told, key=lambda line: line.partition(" ")[0] if self._in_order else line)


def _about(event: Object) -> str:
    return f"{event['involvedObject'].get('kind')}/{event['involvedObject'].get('name')}"


def _age(obj: Object) -> tuple[str, int, str]:
    metadata = obj["metadata"]
    revision = obj.get("revision", (metadata.get("annotations") or {}).get(REVISION, 0))
    return str(metadata.get("creationTimestamp", "")), int(revision or 0), str(metadata["name"])


def _addressed(part: Object) -> str:
    """What parts of endpoints are sorted by, whose order says nothing: their addresses and ports."""
    return json.dumps([part.get(key) for key in ("ports", "addresses", "notReadyAddresses")], sort_keys=True)


def _condition(condition: Object) -> dict[str, Any]:
    return {key: condition[key] for key in ("status", "reason", "message") if condition.get(key)}


def _counted(shown: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that look alike once, with their number."""
    found: dict[str, dict[str, Any]] = {}
    for each in shown:
        text = json.dumps(each, sort_keys=True)
        found.setdefault(text, {"count": 0} | each)["count"] += 1
    return [found[text] for text in sorted(found)]


def _changes(before: Any, now: Any) -> Any:
    """What differs, or None."""
    if isinstance(now, list) or before is None:
        return None if now == (before or type(now)()) else now
    changed = {name: each for name, each in now.items() if before.get(name) != each}
    changed |= dict.fromkeys(set(before) - set(now))
    return {name: changed[name] for name in sorted(changed)} or None


def resources(looks: Sequence[str]) -> dict[str, str]:
    """Where the objects of these resources lie, with `$NS` for the namespace."""
    return {name: f"{ROOTS[name]}/{name}" for name in looks}


ROOTS: dict[str, str] = {
    **dict.fromkeys(("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"), "$APPS"),
    **dict.fromkeys(("cronjobs", "jobs"), "$BATCH"),
    **dict.fromkeys(
        (
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "resourcequotas",
            "secrets",
            "serviceaccounts",
            "services",
        ),
        "$CORE",
    ),
    "endpointslices": "/apis/discovery.k8s.io/v1/namespaces/$NS/endpointslices".removesuffix("/endpointslices"),
}

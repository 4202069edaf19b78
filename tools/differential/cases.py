"""What a case is, and how the files of a family are read.

A step is one of

    "GET /api/v1/namespaces/$NS/pods"                         a request without a body
    {POST: /api/v1/..., body: {...}}                          with a body, as JSON
    {PATCH: /api/v1/..., type: apply, body: {...}}            type: json, merge, strategic, apply, yaml or a media type
    {POST: /api/v1/..., raw: "{", type: ...}                  with exactly these bytes
    {PUT: /api/v1/..., from: before, merge: {...}}            a saved answer, changed by a merge patch
    {watch: /api/v1/...?watch=1, events: 3, during: [...]}    a watch, read until so many events (or `until: bookmark`,
                                                              or `until: close`), with steps while it is open
    {crd: {...}, ...}                                         a CustomResourceDefinition, made and waited for
    {wait: /api/v1/..., until: {status.phase: Active}}        ask until the answer has these values; never recorded

and may carry `headers`, `as` (a user name; without it the one who may do everything), `save` (a name for the answer's
body), `quiet` (not recorded, must succeed). Stories have steps of other kinds; `stories` tells of them. In all texts
`$NS` is the case's own namespace, `$GROUP` its own API group, `$CORE`, `$APPS`, `$BATCH` the paths of its namespace in
the three groups, `$THINGS` that of its custom resources, `${name.path.to.field}` a value of a saved body, and `${name}`
alone the whole body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tools.differential import families

__all__ = ["CASES", "METHODS", "Case", "CaseError", "Step", "load", "load_file"]

CASES = Path(__file__).parents[2] / "tests/differential/cases"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY")
MEDIA_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "yaml": "application/yaml",
    "plain": "application/json",
}
_SWITCHES = ("managed_fields", "service_account", "any_order")
_KEYS = frozenset(("body", "raw", "type", "from", "merge", "headers", "as", "save", "quiet"))
_KINDS = frozenset((*METHODS, "watch", "wait", "crd"))
_WATCH_KEYS = frozenset(("events", "until", "during", "seconds"))
_STORY_KINDS = frozenset(("make", "change", "delete", "pods", "pass"))
_STORY_KEYS = {
    "make": frozenset(()),
    "change": frozenset(("with", "type", "sub")),
    "delete": frozenset(("policy", "grace")),
    "pods": frozenset(("where", "image", "marked", "are", "count", "mark", "metadata", "node", "code", "with")),
    "pass": frozenset(()),
}
_STORY_SWITCHES = frozenset(("quiet", "unsaid", "at_once", "until"))


class CaseError(Exception):
    """A case is written wrongly, or its preparation failed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a case."""

    kind: str
    path: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def content_type(self) -> str | None:
        """The media type that the step asks for; None leaves the choice to the runner."""
        given = self.options.get("type")
        return MEDIA_TYPES.get(given, given) if isinstance(given, str) else None


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A list of requests, in a namespace and an API group of its own."""

    family: str
    name: str
    about: str
    steps: tuple[Step, ...]
    keeps_managed_fields: bool
    wants_service_account: bool
    refuses_in_any_order: bool
    looks: tuple[str, ...] = ()
    """The resources that a story tells of; a case without them is no story."""
    shows: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What a story tells of them besides the usual: paths by resource."""

    @property
    def is_story(self) -> bool:
        """Whether the case is a story: what controllers make of what happens."""
        return bool(self.looks)

    @property
    def id(self) -> str:
        """The name of the case in all families."""
        return f"{self.family}/{self.name}"

    @property
    def namespace(self) -> str:
        """The name of the case's own namespace."""
        return f"ns-{self.family}-{self.name}".lower().replace("_", "-")[:63].rstrip("-")


def load(folder: Path = CASES, only: Iterable[str] = ()) -> list[Case]:
    """All cases; or those of some families, or some by their ids (`family/name`)."""
    wanted = set(only)
    families = {each.partition("/")[0] for each in wanted}
    files = sorted(path for path in folder.glob("*.yaml") if not wanted or path.stem in families)
    cases = [case for path in files for case in load_file(path)]
    unknown = wanted - {case.family for case in cases} - {case.id for case in cases}
    if unknown:
        raise CaseError(f"there is no family or case {', '.join(sorted(unknown))} in {folder}")
    return [case for case in cases if not wanted or case.family in wanted or case.id in wanted]


def load_file(path: Path) -> list[Case]:
    """The cases of one family."""
    try:
        family: dict[str, Any] = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise CaseError(f"{path.name}: {error}") from None
    make = families.WAYS.get(family.get("way", "steps"))
    if make is None:
        raise CaseError(f"{path.name}: there is no way {family['way']!r} to write cases")
    found: list[Case] = []
    for written in family["cases"]:
        name = str(written["id"])
        try:
            steps = tuple(step(each) for each in make(written, family))
        except (KeyError, TypeError, ValueError, CaseError) as error:
            raise CaseError(f"{path.name}: {name}: {type(error).__name__} {error}") from error
        fields, account, any_order = (bool(written.get(key, family.get(key, False))) for key in _SWITCHES)
        looks = tuple(written.get("looks", family.get("looks", ())))
        shows = family.get("shows", {}) | written.get("shows", {})
        about = str(written.get("about", ""))
        found.append(Case(path.stem, name, about, steps, fields, account, any_order, looks, shows))
    _refuse_doubles(path.name, found)
    return found


def _refuse_doubles(file: str, cases: list[Case]) -> None:
    for what in ("name", "namespace"):
        seen: set[str] = set()
        for case in cases:
            value = getattr(case, what)
            if value in seen:
                raise CaseError(f"{file}: two cases have the {what} {value}")
            seen.add(value)


def step(written: Any) -> Step:
    """A step as it is written."""
    if isinstance(written, str):
        method, _, path = written.partition(" ")
        if method not in METHODS or not path:
            raise CaseError(f"not a request: {written!r}")
        return Step(method, path)
    options = dict(written)
    told = [key for key in options if key in _STORY_KINDS]
    if told:
        return _story_step(told, options)
    kinds = [key for key in options if key in _KINDS]
    if len(kinds) != 1 or set(options) - _KEYS - _KINDS - _WATCH_KEYS:
        raise CaseError(f"not a step: {written!r}")
    kind = kinds[0]
    if "during" in options:
        options["during"] = [step(each) for each in options["during"]]
    target = options.pop(kind)
    if kind == "crd":
        return Step(kind, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {**options, "crd": target})
    return Step(kind, target, options)


def _story_step(kinds: list[str], options: dict[str, Any]) -> Step:
    kind = kinds[0]
    if len(kinds) != 1 or set(options) - {kind} - _STORY_KEYS[kind] - _STORY_SWITCHES:
        raise CaseError(f"not a step of a story: {options!r}")
    target = options.pop(kind)
    return Step(kind, "", {**options, "body": target}) if kind == "make" else Step(kind, str(target), options)

"""One description per kind, from which everything else follows: routes, discovery, OpenAPI, tables, handlers.

Built-in kinds and custom ones are the same thing to the rest of the server. A `Kind` is one version of a resource;
versions of one resource share their storage (`Kind.storage`), and the one that objects are kept in is `Kind.stored_as`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from flyball.api.structural import Schema
from flyball.controlplane.apiserver.status import no_such_resource
from flyball.controlplane.apiserver.store import Entry
from flyball.controlplane.apiserver.strategy import Strategy

__all__ = ["Conversion", "Kind", "Kinds", "Subresource", "version_order"]

LAST_VERBS = ("delete", "deletecollection", "get", "list", "watch")
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with an address of its own."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


class Conversion(Protocol):
    """How objects of a version relate to what is stored."""

    def as_it_is(self, entry: Entry) -> bool:
        """Tell whether the stored body is what this version shows."""
        ...

    def read(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Bring an object that was stored into this version; may change it in place."""
        ...

    def store(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Bring an object of this version into the one that is stored, without changing it."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Kind:
    """One version of a resource."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, Subresource] = field(default_factory=dict[str, Subresource])
    storage_version_hash: str = ""
    builtin: bool = True
    load_schema: Callable[[], Schema | None] = lambda: None
    """Compiles the schema; called once, when it is first needed."""
    definition: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of a custom kind: the version's part of its CustomResourceDefinition."""
    schema_name: str = ""
    """Of a built-in kind: the name of its published schema."""
    strategy: Strategy = field(default_factory=Strategy)
    stored_with: str = ""
    """The resource in whose storage the objects lie; empty means its own."""
    stored_as: str = ""
    """The apiVersion in which objects are kept; empty means this one."""
    columns: tuple[Any, ...] = ()
    """The columns of its Table (`tables.Column`); empty means name and age."""
    warning: str = ""
    """What every request for this version is warned of."""
    conversion: Conversion | None = None
    """How objects are stored and read, where that is not in the shape of this version."""
    terminating: bool = False
    """Whether the kind is on its way out, and takes no new objects."""
    _schema: Schema | None = field(default=None, repr=False)
    _loaded: bool = field(default=False, repr=False)

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` of the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> str:
        """The name under which the store keeps the objects of all versions."""
        return self.stored_with or (f"{self.plural}.{self.group}" if self.group else self.plural)

    @property
    def told_verbs(self) -> tuple[str, ...]:
        """What discovery tells can be done: of a kind that is on its way out, only to look and to delete."""
        return LAST_VERBS if self.terminating else self.verbs

    @property
    def lists_as(self) -> str:
        """The kind of a list of these."""
        return self.list_kind or f"{self.kind}List"

    @property
    def schema(self) -> Schema | None:
        """The compiled schema, or None where anything goes."""
        if not self._loaded:
            self._schema, self._loaded = self.load_schema(), True
        return self._schema

    def has(self, subresource: str) -> bool:
        """Tell whether the kind has a subresource."""
        return subresource in self.subresources

    def __repr__(self) -> str:
        """Name the kind."""
        return f"<Kind {self.kind} {self.api_version}>"


class _Version(NamedTuple):
    group: str
    version: str


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sort versions as discovery does: v2, v1, v1beta2, v1beta1, v1alpha1, then everything else by name."""
    for stage, word in enumerate(("", "beta", "alpha")):
        major, found, minor = version[1:].partition(word) if word else (version[1:], "", "0")
        if version[:1] == "v" and major.isdecimal() and (minor.isdecimal() or not word) and (found or not word):
            return (stage, -int(major), -int(minor), "")
    return (3, 0, 0, version)


class Kinds:
    """All kinds that are served. Changes when custom kinds come and go; `generation` counts the changes."""

    def __init__(self, builtin: Iterable[Kind] = ()) -> None:
        """Start with the kinds that are always there."""
        self._kinds: dict[_Version, dict[str, Kind]] = {}
        self.generation = 0
        for kind in builtin:
            self._put(kind)

    def _put(self, kind: Kind) -> None:
        self._kinds.setdefault(_Version(kind.group, kind.version), {})[kind.plural] = kind

    def add(self, kinds: Iterable[Kind]) -> None:
        """Serve more kinds, or new descriptions of those that are served."""
        for kind in kinds:
            self._put(kind)
        self.generation += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource in all its versions."""
        for place, kinds in list(self._kinds.items()):
            if place.group == group and kinds.pop(plural, None) is not None and not kinds:
                del self._kinds[place]
        self.generation += 1

    def replace(self, group: str, plural: str, kinds: Iterable[Kind]) -> None:
        """Serve exactly these versions of a resource."""
        self.remove(group, plural)
        self.add(kinds)

    def groups(self) -> list[str]:
        """Name the groups, the core group (empty) first, custom ones by name after the built-in ones."""
        seen = dict.fromkeys(place.group for place in self._kinds)
        return sorted(seen, key=lambda group: (not self.is_builtin(group), "" if self.is_builtin(group) else group))

    def is_builtin(self, group: str) -> bool:
        """Tell whether a group has kinds that are always there."""
        return any(
            kind.builtin for place, kinds in self._kinds.items() if place.group == group for kind in kinds.values()
        )

    def versions(self, group: str) -> list[str]:
        """Name the versions of a group, the preferred one first."""
        return sorted((place.version for place in self._kinds if place.group == group), key=version_order)

    def of(self, group: str, version: str) -> list[Kind]:
        """Return the kinds of a group and version, by name of the resource."""
        kinds = self._kinds.get(_Version(group, version), {})
        return [kinds[plural] for plural in sorted(kinds)]

    def serves(self, group: str, version: str) -> bool:
        """Tell whether there is such a group and version."""
        return _Version(group, version) in self._kinds

    def find(self, group: str, version: str, plural: str) -> Kind:
        """Return the kind of a resource. Raises NotFound."""
        kind = self._kinds.get(_Version(group, version), {}).get(plural)
        if kind is None:
            raise no_such_resource()
        return kind

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind of an object by what it says of itself."""
        group, _, version = api_version.rpartition("/")
        kinds = self._kinds.get(_Version(group, version), {})
        return next((one for one in kinds.values() if one.kind == kind), None)

    def preferred(self, group: str, plural: str) -> Kind | None:
        """Return a resource in the first version that serves it."""
        for version in self.versions(group):
            kind = self._kinds[_Version(group, version)].get(plural)
            if kind is not None:
                return kind
        return None

    def stored(self) -> Iterator[Kind]:
        """Give each resource that has objects once, in its preferred version."""
        seen: set[str] = set()
        for group in self.groups():
            for version in self.versions(group):
                for kind in self.of(group, version):
                    if kind.storage not in seen and "list" in kind.verbs:
                        seen.add(kind.storage)
                        yield kind

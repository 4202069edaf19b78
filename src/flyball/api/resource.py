"""Kinds: classes whose objects live on an API server.

    class Shell(Resource, group="example.org", version="v1", short_names=["sh"]):
        "Pods that wait for somebody to open a shell in them."
        spec: ShellSpec
        status: ShellStatus

The class options name the kind; the fields are its fields beside `apiVersion`, `kind` and `metadata`. `spec` and
`status` are never None: an object made without them has empty ones, which are not sent while they are empty. What can
only be said about a kind of your own (columns, scope, rules, ...) is described in `KindOptions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from flyball.api.conditions import Status
from flyball.api.metadata import ObjectMeta
from flyball.api.model import UNSET, Model, field
from flyball.api.naming import plural_of

if TYPE_CHECKING:
    from flyball.api.markers import ModelMarker, PrintColumn

__all__ = ["KindOptions", "Resource", "ResourceType", "Scale", "Spec", "Status"]


@dataclass(frozen=True, slots=True)
class ResourceType:
    """The names of a kind and of the place where its objects are."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """`deployments.apps`, the name by which CRDs, RBAC and messages call it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection (no name), of an object, or of a subresource. Nothing is quoted here."""
        parts = ["/apis" if self.group else "/api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True)
class Scale:
    """The scale subresource: where `kubectl scale` and autoscalers find the wanted and the actual number."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str | None = None


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """What a class says about its kind, in the head of the class; all but group and version have defaults."""

    group: str
    version: str
    kind: str = ""
    """Default: the name of the class."""
    plural: str = ""
    singular: str = ""
    short_names: Iterable[str] = ()
    categories: Iterable[str] = ()
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"
    list_kind: str = ""
    builtin: bool = False
    """A kind that the API server brings along: no CRD is made of it."""
    storage: bool | None = None
    """This version is the one that is stored; needed when the kind has several classes."""
    served: bool = True
    deprecated: bool | str = False
    """True, or the warning that clients get."""
    columns: Iterable[PrintColumn] = ()
    """Columns of `kubectl get`; AGE is added at the end unless a column shows the creation time."""
    scale: Scale | None = None
    selectable_fields: Iterable[str] = ()
    """JSON paths such as `.spec.color`; the marker `SelectableField` at the field says the same."""
    status_subresource: bool | None = None
    """Default: there is one if the class has a `status`."""
    description_limit: int | None = None
    """Cut all descriptions to so many characters; 0 leaves them out."""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    """Of the CustomResourceDefinition itself."""


_OPTION_NAMES = tuple(option.name for option in fields(KindOptions))


class _LatePart:
    """Makes an empty `spec` or `status`; the class is found by its annotation when it is first needed."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.owner: type[Resource] | None = None
        self.made: Any = None

    def __call__(self) -> Any:
        if self.made is None:
            from flyball.api.hints import hints_of, plain_type

            wanted = plain_type(hints_of(self.owner)[self.part]) if self.owner else None
            self.made = wanted if isinstance(wanted, type) and issubclass(wanted, Model) else lambda: UNSET
        return self.made()


class Resource(Model, dict=True, gc=True):
    """The base of all kinds. Derive from it with `group` and `version`; see the module and `KindOptions`.

    `decode` keeps the bytes that an object was made from beside it, so fields that this class does not know survive
    a read, a change and a write.
    """

    resource_type: ClassVar[ResourceType]
    kind_options: ClassVar[KindOptions]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    if TYPE_CHECKING:

        def __init_subclass__(
            cls,
            *,
            group: str = ...,
            version: str = ...,
            kind: str = ...,
            plural: str = ...,
            singular: str = ...,
            short_names: Iterable[str] = ...,
            categories: Iterable[str] = ...,
            scope: Literal["Namespaced", "Cluster"] = ...,
            list_kind: str = ...,
            builtin: bool = ...,
            storage: bool | None = ...,
            served: bool = ...,
            deprecated: bool | str = ...,
            columns: Iterable[PrintColumn] = ...,
            scale: Scale | None = ...,
            selectable_fields: Iterable[str] = ...,
            status_subresource: bool | None = ...,
            description_limit: int | None = ...,
            labels: Mapping[str, str] | None = ...,
            annotations: Mapping[str, str] | None = ...,
            preserve_unknown: bool = ...,
            rules: Iterable[ModelMarker | type[ModelMarker]] = ...,
        ) -> None: ...

    @classmethod
    def new(
        cls,
        name: str,
        *,
        namespace: str | None = None,
        spec: Any = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **other: Any,
    ) -> Self:
        """An object of this kind by name; `other` are further fields of the kind, such as `data` of a ConfigMap."""
        metadata = ObjectMeta(
            name=name, namespace=namespace, labels=dict(labels or {}), annotations=dict(annotations or {})
        )
        if spec is not None:
            other["spec"] = spec
        for attribute, value in other.items():
            cls._check_part(attribute, value)
        return cls(metadata=metadata, **other)

    @classmethod
    def _check_part(cls, attribute: str, value: Any) -> None:
        """Nobody types `new`'s parts statically, so a wrong class is told here and not by the server."""
        from flyball.api.hints import hints_of, plain_type

        wanted = plain_type(hints_of(cls).get(attribute))
        if isinstance(wanted, type) and issubclass(wanted, Model) and not isinstance(value, wanted):
            raise TypeError(
                f"{cls.__name__}.new: {attribute} must be a {wanted.__name__}, not {type(value).__name__}; "
                f"write {attribute}={wanted.__name__}(...)"
            )

    @classmethod
    def _prepare(
        cls, name: str, annotations: dict[str, Any], namespace: dict[str, Any], options: dict[str, Any]
    ) -> None:
        """Before a subclass is made: its names become the defaults of `api_version` and `kind`."""
        for part in ("spec", "status"):
            if part in annotations and namespace.get(part, UNSET) is UNSET:
                namespace[part] = field(default_factory=_LatePart(part))
        inherited: KindOptions | None = getattr(cls, "kind_options", None)
        version = options.get("version") or (inherited.version if inherited else None)
        if version is None:
            return
        group = options.get("group", inherited.group if inherited else "")
        own = dict(annotations)
        annotations.clear()
        annotations.update({"api_version": str, "kind": str, "metadata": own.pop("metadata", ObjectMeta)})
        annotations.update(own)
        namespace["api_version"] = f"{group}/{version}" if group else version
        namespace["kind"] = options.get("kind") or name
        namespace.setdefault("metadata", field(default_factory=ObjectMeta))

    @classmethod
    def _configure(cls, options: dict[str, Any]) -> None:
        given = {key: options.pop(key) for key in _OPTION_NAMES if key in options}
        try:
            super()._configure(options)
        except TypeError as error:
            raise TypeError(f"{error}, {', '.join(_OPTION_NAMES)}") from None
        for value in cls.__struct_defaults__:
            factory = getattr(value, "factory", None)
            if isinstance(factory, _LatePart):
                factory.owner = cls
        inherited: KindOptions | None = getattr(cls, "kind_options", None)
        if inherited is not None:
            given = {"group": inherited.group, "version": inherited.version, "scope": inherited.scope, **given}
        if "group" in given or "version" in given:
            cls._become_kind(given)

    @classmethod
    def _become_kind(cls, given: dict[str, Any]) -> None:
        missing = [key for key in ("group", "version") if key not in given]
        if missing:
            raise TypeError(
                f"class {cls.__name__}: {missing[0]} is missing; "
                f'write class {cls.__name__}(Resource, group="...", version="...")'
            )
        kind = given.setdefault("kind", cls.__name__)
        plural = given.setdefault("plural", plural_of(kind))
        singular = given.setdefault("singular", kind.lower())
        given.setdefault("list_kind", f"{kind}List")
        cls.kind_options = options = KindOptions(**given)
        namespaced = options.scope == "Namespaced"
        cls.resource_type = ResourceType(options.group, options.version, kind, plural, namespaced, singular)
        if not options.builtin:
            from flyball.api.refusal import check_kind

            check_kind(cls)

    def __repr__(self) -> str:
        """Short: which object this is, and which version of it."""
        metadata = self.metadata
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name or "(no name)"
        version = f" at {metadata.resource_version}" if metadata.resource_version else ""
        return f"<{self.kind} {name}{version}>"


class Spec(Model):
    """The base of what users ask for. Fields without a default are required."""

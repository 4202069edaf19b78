"""What an author may say about the cache of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flyball.cache.reflector import PAGE_SIZE
from flyball.cache.shaping import Shape, Transform, by_transform, keep_fields
from flyball.client.selectors import FieldQuery, LabelQuery, field_text, label_text

__all__ = ["AllExcept", "CacheOptions"]


class AllExcept(tuple[str, ...]):
    """Every namespace but these: `CacheOptions(namespaces=AllExcept(["kube-system"]))`. The server leaves them out."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """How the objects of a kind are cached; every option has the default that loses nothing but `managedFields`."""

    namespaces: Sequence[str] | AllExcept | None = None
    """Default None: all (or those of the cache). One stream per namespace, all into one store."""
    labels: LabelQuery | None = None
    """Only objects with these labels; default all. The server selects."""
    fields: FieldQuery | None = None
    """Only objects with these fields; default all. The server selects."""
    metadata_only: bool = False
    """Ask the server for nothing but metadata; such objects are read as `metadata_of(...)`."""
    transform: Transform | None = None
    """Changes each object, as plain JSON, before it is stored; then it cannot be written back whole."""
    fields_to_keep: Sequence[str] | None = None
    """Paths to keep beside `metadata`: `["spec.replicas", "status"]`; then it cannot be written back whole."""
    keep_managed_fields: bool = False
    """Store `metadata.managedFields` too: about half of an object."""
    page_size: int | None = PAGE_SIZE
    """Objects per page of a list; None asks for all in one answer."""
    streaming: bool = False
    """Begin with a watch-list where the server has it; it saves the server memory."""

    @property
    def shape(self) -> Shape | None:
        """What is done to an object's bytes before they are stored."""
        kept = keep_fields(self.fields_to_keep) if self.fields_to_keep is not None else None
        if self.transform is None:
            return kept
        made = by_transform(self.transform)
        return made if kept is None else (lambda raw: kept(made(raw)))

    @property
    def scopes(self) -> tuple[str | None, ...]:
        """The namespaces, one stream each; (None,) is one stream of all."""
        if self.namespaces is None or isinstance(self.namespaces, AllExcept):
            return (None,)
        if isinstance(self.namespaces, str):
            return (self.namespaces,)
        return tuple(dict.fromkeys(self.namespaces))

    @property
    def label_selector(self) -> str:
        """The label selector as text."""
        return label_text(self.labels) or ""

    @property
    def field_selector(self) -> str:
        """The field selector as text, with the namespaces to leave out."""
        terms = [field_text(self.fields) or ""]
        if isinstance(self.namespaces, AllExcept):
            terms += [f"metadata.namespace!={name}" for name in self.namespaces]
        return ",".join(term for term in terms if term)

    def covers(self, namespace: str | None) -> bool:
        """Whether objects of this namespace can be in the cache at all."""
        if self.namespaces is None or namespace is None:
            return True
        return (namespace not in self.namespaces) == isinstance(self.namespaces, AllExcept)

"""The history of a set: each version of its Pod template is kept in a ControllerRevision, under a name of its content.

Names, numbers and contents are those that kube-controller-manager gives, byte by byte: a cluster whose objects come
from elsewhere goes on with the history that it has, and `kubectl rollout history` and `undo` read it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from flyball.api import from_dict
from flyball.client import MergePatch
from flyball.controller import Context, controller_of, set_controller
from flyball.errors import AlreadyExists
from flyball.k8s.apps.v1 import ControllerRevision
from flyball.k8s.core.v1 import PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta

__all__ = ["REVISION_LABEL", "History", "data_of", "hash_of", "template_of"]

REVISION_LABEL: Final = "controller-revision-hash"
"""Tells at a Pod which revision it was made from."""

_HASH: Final = "controller.kubernetes.io/hash"
_LONGEST_PREFIX: Final = 223
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_FNV_START: Final = 2166136261
_FNV_PRIME: Final = 16777619
_ESCAPED: Final = str.maketrans({one: f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"})


def data_of(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a revision keeps: a strategic merge patch that brings this template back."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """Return the Pod template that a revision keeps."""
    kept = (revision.data or {}).get("spec", {}).get("template", {})
    return from_dict(PodTemplateSpec, {name: value for name, value in kept.items() if name != "$patch"})


def hash_of(data: Any, collisions: int = 0) -> str:
    """Return the name of a content: ten harmless characters at most.

    >>> hash_of({"spec": {"template": {"$patch": "replace"}}})
    '589f85db5b'
    """
    number = _FNV_START
    for byte in _written(data) + str(collisions).encode():
        number = (number * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def _written(data: Any) -> bytes:
    """Write JSON as Go's encoder does: sorted, compact, and safe to be put into HTML."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.translate(_ESCAPED).encode()


@dataclass
class History:
    """The revisions of one set: those that it owns, and those without an owner that its selector finds."""

    owner: Any
    """The set; its name, labels of the template, and annotations go into new revisions."""
    revisions: list[ControllerRevision]
    """In the order of their numbers."""
    collisions: int
    """How often a name was taken by another content."""
    ctx: Context

    @classmethod
    async def read(cls, owner: Any, selector: LabelSelector, collisions: int, ctx: Context) -> History:
        """Collect the revisions of a set, and take over those that nobody owns."""
        found: list[ControllerRevision] = []
        for one in await ctx.list(ControllerRevision, labels=selector):
            controller = controller_of(one)
            if controller is None:
                set_controller(owner, one)
                found.append(await ctx.patch(one))
            elif controller.uid == owner.metadata.uid:
                found.append(one)
        return cls(owner, sorted(found, key=_age), collisions, ctx)

    def named(self, name: str | None) -> ControllerRevision | None:
        """Return the revision of this name, if it is there."""
        return next((one for one in self.revisions if one.metadata.name == name), None)

    async def take_up(self, template: Mapping[str, Any]) -> ControllerRevision:
        """Return the newest revision, which is the one of this template: found, brought forward again, or made."""
        data = data_of(template)
        number = self.revisions[-1].revision + 1 if self.revisions else 1
        written = _written(data)
        equal = [one for one in self.revisions if _written(one.data) == written]
        if not equal:
            made = await self._make(data, template, number)
        elif equal[-1] is self.revisions[-1]:
            return equal[-1]
        else:
            made = await self.ctx.patch(equal[-1], MergePatch({"revision": number}), guard=True)
        others = [one for one in self.revisions if one.metadata.uid != made.metadata.uid]
        self.revisions = [*others, made]
        return made

    async def _make(self, data: dict[str, Any], template: Mapping[str, Any], number: int) -> ControllerRevision:
        metadata = self.owner.metadata
        labels = dict((template.get("metadata") or {}).get("labels") or {})
        labels[_HASH] = hash_of(data, self.collisions)
        while True:
            name = f"{metadata.name[:_LONGEST_PREFIX]}-{hash_of(data, self.collisions)}"
            revision = ControllerRevision(
                metadata=ObjectMeta(
                    name=name, namespace=metadata.namespace, labels=labels, annotations=dict(metadata.annotations)
                ),
                data=data,
                revision=number,
            )
            set_controller(self.owner, revision)
            present = await self.ctx.live.get(ControllerRevision, name)
            if present is None:
                try:
                    return await self.ctx.create(revision)
                except AlreadyExists:
                    continue  # somebody else was quicker: look at what it is
            if _written(present.data) == _written(data):
                return present
            self.collisions += 1

    async def forget(self, limit: int | None, living: Collection[str]) -> None:
        """Delete the oldest revisions that nobody uses, so that not more than `limit` of those are left."""
        if limit is None or limit < 0:
            return
        unused = [one for one in self.revisions if one.metadata.name not in living]
        for one in unused[: max(len(unused) - limit, 0)]:
            await self.ctx.delete(one)
            self.revisions.remove(one)


def _age(revision: ControllerRevision) -> tuple[int, float, str]:
    created = revision.metadata.creation_timestamp
    return revision.revision, created.timestamp() if created is not None else 0.0, revision.metadata.name

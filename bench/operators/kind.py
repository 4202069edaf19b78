"""The kind that all contenders reconcile."""

from __future__ import annotations

from flyball import Model, Resource, Spec


class ThingSpec(Spec):
    a: int = 0
    b: int = 0
    text: str = ""


class ThingStatus(Model):
    """Without conditions and `observedGeneration`, which the peers would not write by themselves either."""

    seen: int = 0


class Thing(Resource, group="bench.example.org", version="v1"):
    """Two numbers and a text."""

    spec: ThingSpec
    status: ThingStatus

"""A kind of the tests' own."""

from __future__ import annotations

from flyball.api import Resource, Spec, Status

__all__ = ["Plain", "Widget", "WidgetSpec", "WidgetStatus"]


class WidgetSpec(Spec):
    size: int = 1
    color: str | None = None


class WidgetStatus(Status):
    ready: int | None = None


class Widget(Resource, group="example.org", version="v1"):
    """A thing with a size."""

    spec: WidgetSpec
    status: WidgetStatus


class Plain(Resource):
    """A class that stands for no kind: it has no group and no version."""

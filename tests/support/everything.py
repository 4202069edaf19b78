"""A kind that uses every marker there is: what it says is checked against real servers."""

from __future__ import annotations

from datetime import date, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Literal

import msgspec

from flyball.api import (
    AtLeastOneOf,
    AtMostOneOf,
    Default,
    Description,
    DescriptionLimit,
    Discriminator,
    Duration,
    EmbeddedResource,
    Enum,
    ExactlyOneOf,
    Example,
    Format,
    Ge,
    Gt,
    Immutable,
    Int32,
    IntOrString,
    Le,
    ListMapKeys,
    ListType,
    Lt,
    MapType,
    MaxItems,
    MaxLength,
    MaxProperties,
    MicroTime,
    MinItems,
    MinLength,
    MinProperties,
    Model,
    MultipleOf,
    NotRequired,
    Nullable,
    ObjectMeta,
    Pattern,
    PreserveUnknown,
    PrintColumn,
    Quantity,
    Resource,
    Rule,
    Scale,
    Schema,
    SelectableField,
    SetOnce,
    Spec,
    Status,
    StructType,
    Title,
    UniqueItems,
    field,
)
from flyball.k8s.core.v1 import PodTemplateSpec, ResourceRequirements

__all__ = ["Box", "Color", "Everything", "EverythingOld", "EverythingSpec", "EverythingStatus", "Port"]


class Color(StrEnum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Port(Model):
    """One door of a box."""

    number: Annotated[Int32, Ge(1), Le(65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"
    target: IntOrString | None = None


class Source(Model, rules=[ExactlyOneOf("git", "http")]):
    """Where it comes from."""

    git: str | None = None
    http: str | None = None


class Rolling(Model):
    surge: IntOrString = "25%"


class Strategy(Model, rules=[Discriminator("type", {"Recreate": None, "Rolling": "rolling"})]):
    type: Literal["Recreate", "Rolling"] = "Recreate"
    rolling: Rolling | None = None


class Box(Model, rules=[Rule("self.low <= self.high", message="low must not be above high", field_path=".low")]):
    low: int = 0
    high: int = 10


class Choices(Model, rules=[AtMostOneOf("a", "b"), AtLeastOneOf("b", "c")]):
    a: str | None = None
    b: str | None = None
    c: str | None = None


class Fixed(Model, rules=[Immutable(message="the whole is immutable")]):
    a: int = 1


class EverythingSpec(Spec):
    size: Annotated[int, Ge(0), Le(100), MultipleOf(2), PrintColumn(description="How many")] = 2
    """How many of them."""
    ratio: Annotated[float, Gt(0), Lt(1), Title("Ratio")] = 0.5
    name: Annotated[str, MinLength(1), MaxLength(20), Pattern("^[a-z]+$"), Example("abc")]
    color: Annotated[Color, SelectableField, PrintColumn("Colour", priority=1)] = Color.RED
    level: Level = Level.LOW
    mode: Annotated[str, Enum("x", "y")] = "x"
    on: bool = True
    data: bytes | None = None
    since: datetime | None = None
    tick: MicroTime | None = None
    day: date | None = None
    address: Annotated[str, Format("ipv4")] | None = None
    memory: Quantity = Quantity("64Mi")
    timeout: Duration = Duration("1m30s")
    port: IntOrString = 80
    tags: Annotated[list[str], ListType("set"), MaxItems(5), MinItems(0)] = field(default_factory=list)
    unique: Annotated[list[int], UniqueItems] | None = None
    ports: Annotated[list[Port], ListMapKeys("number", "protocol"), MaxItems(10)] | None = None
    lines: Annotated[list[Annotated[str, MaxLength(8)]], ListType("atomic")] | None = None
    labels: Annotated[dict[str, Annotated[str, MaxLength(8)]], MinProperties(1), MaxProperties(3)] | None = None
    whole: Annotated[dict[str, str], MapType("atomic")] | None = None
    box: Box = field(default_factory=Box)
    atomic: Annotated[Box, StructType("atomic")] | None = None
    source: Source | None = None
    strategy: Strategy | None = None
    choices: Choices | None = None
    fixed: Fixed | None = None
    maybe: Annotated[str, Nullable] | None = None
    anything: Annotated[Any, PreserveUnknown] = None
    opaque: Annotated[msgspec.Raw, PreserveUnknown] | msgspec.UnsetType = msgspec.UNSET
    free: Annotated[dict[str, Any], PreserveUnknown] | None = None
    half: Annotated[Box, PreserveUnknown] | None = None
    manifest: Annotated[dict[str, Any], EmbeddedResource] | None = None
    template: Annotated[PodTemplateSpec, NotRequired("spec.containers"), DescriptionLimit(0)] | None = None
    resources: ResourceRequirements | None = None
    class_name: Annotated[str, Immutable, MaxLength(10)] | None = None
    host: Annotated[str, SetOnce, MaxLength(10)] | None = None
    selector: Annotated[str, Default("all"), Description("Which ones.")] | None = None
    growing: Annotated[int, Rule("self >= oldSelf", message_expression="self < 0 ? 'below 0' : 'it may only grow'")] = 0
    raw: Annotated[str, Schema({"maxLength": 3})] | None = None
    drawn: Annotated[Any, Schema({"type": "string", "format": "uri"}, replace=True)] = None
    first: Annotated[str, Rule("!oldSelf.hasValue() || self == oldSelf.value()", optional_old_self=True)] = "a"


class EverythingStatus(Status):
    ready: Annotated[int, PrintColumn] = 0
    selector: str | None = None
    phase: Literal["Pending", "Ready"] | None = None


class Everything(
    Resource,
    group="flyball.example.org",
    version="v1",
    short_names=["evy"],
    categories=["flyball"],
    scale=Scale(spec=".spec.size", status=".status.ready", selector=".status.selector"),
    columns=[PrintColumn("Ready", '.status.conditions[?(@.type=="Ready")].status', type="string")],
    selectable_fields=[".spec.mode"],
    storage=True,
    labels={"made-by": "flyball"},
    annotations={"flyball.example.org/note": "a test"},
    rules=[Rule("size(self.metadata.name) <= 20", reason="FieldValueForbidden", message="the name is too long")],
):
    """A kind that says everything that can be said."""

    metadata: Annotated[ObjectMeta, Schema({"properties": {"name": {"type": "string", "maxLength": 30}}})] = field(
        default_factory=ObjectMeta
    )
    spec: EverythingSpec
    status: EverythingStatus


class EverythingOldSpec(Spec, preserve_unknown=True):
    size: int = 2


class EverythingOld(
    Resource,
    group="flyball.example.org",
    version="v1beta1",
    kind="Everything",
    storage=False,
    deprecated="flyball.example.org/v1beta1 Everything goes; use v1",
):
    spec: EverythingOldSpec

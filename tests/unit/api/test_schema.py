"""What a class says is what its schema says."""

from __future__ import annotations

from datetime import date, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import msgspec
import pytest

from flyball.api import (
    AtMostOneOf,
    Default,
    DescriptionLimit,
    Discriminator,
    Duration,
    EmbeddedResource,
    Ge,
    Immutable,
    Int32,
    IntOrString,
    Le,
    ListMapKeys,
    ListType,
    MicroTime,
    Model,
    MultipleOf,
    NotRequired,
    Nullable,
    ObjectMeta,
    PreserveUnknown,
    Quantity,
    QuantityLike,
    Resource,
    Rule,
    Schema,
    SetOnce,
    Spec,
    Status,
    UniqueItems,
    UnsetType,
    field,
    schema_of,
)
from flyball.k8s.core.v1 import PersistentVolumeClaim, PodTemplateSpec

Name = NewType("Name", str)


class Color(StrEnum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1


def of(hint: Any, **namespace: Any) -> dict[str, Any]:
    """The schema of one field with this type."""
    meta: Any = type(Model)
    cls = meta("One", (Model,), {"__annotations__": {"x": hint}, "__module__": __name__, **namespace})
    schema: dict[str, Any] = schema_of(cls)["properties"]["x"]
    return schema


@pytest.mark.capability("C68")
@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (Name, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int, {"type": "integer", "format": "int64"}),
        (Int32, {"type": "integer", "format": "int32"}),
        (float, {"type": "number", "format": "double"}),
        (bytes, {"type": "string", "format": "byte"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (MicroTime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Duration, {"type": "string", "format": "duration"}),
        (Color, {"type": "string", "enum": ["red", "green"]}),
        (Level, {"type": "integer", "enum": [1]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}}),
        (list[str | None], {"type": "array", "items": {"type": "string", "nullable": True}}),
        (int | None, {"type": "integer", "format": "int64", "nullable": True}),
        (Annotated[Any, PreserveUnknown], {"x-kubernetes-preserve-unknown-fields": True}),
        (Annotated[msgspec.Raw, PreserveUnknown()], {"x-kubernetes-preserve-unknown-fields": True}),
        (
            Annotated[dict[str, Any], PreserveUnknown],
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            Annotated[dict[str, Any], EmbeddedResource],
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-embedded-resource": True},
        ),
        (
            IntOrString,
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
        ),
        (
            Annotated[list[Annotated[int, Ge(0)]], ListType("set")],
            {
                "type": "array",
                "items": {"type": "integer", "format": "int64", "minimum": 0},
                "x-kubernetes-list-type": "set",
            },
        ),
        (
            Annotated[list[str], UniqueItems],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        ),
        (
            Annotated[int, Ge(0), Le(10), MultipleOf(5)],
            {"type": "integer", "format": "int64", "minimum": 0, "maximum": 10, "multipleOf": 5},
        ),
        (Annotated[Any, Schema({"type": "string"}, replace=True)], {"type": "string"}),
    ],
)
def test_types(hint: Any, schema: dict[str, Any]) -> None:
    assert of(hint) == schema


def test_quantities() -> None:
    schema = of(Quantity)
    assert schema["x-kubernetes-int-or-string"] is True
    assert schema["pattern"].startswith("^[+-]?")
    assert of(QuantityLike) == schema


class Box(Model, rules=[Rule("self.a < 3", message="too much"), AtMostOneOf("b", "c_d")]):
    """A box."""

    a: int
    """How much.

    Or how many.
    """
    b: str | None = None
    c_d: str | None = None
    e: str | UnsetType = msgspec.UNSET


class BoxedSpec(Spec):
    """What is wanted."""

    first: Box
    """The first box."""
    second: Box | None = None
    third: Box = field(default_factory=lambda: Box(a=1))
    size: int = 1
    on: bool = False
    text: str = ""
    tags: list[str] = field(default_factory=list)
    memory: Quantity = Quantity("1Gi")
    color: Color = Color.RED
    server_side: Annotated[int | None, Default(7)] = None
    maybe: Annotated[str, Nullable] | None = None


class BoxedStatus(Status):
    ready: int = 0
    box: Box = field(default_factory=lambda: Box(a=1))


class Boxed(Resource, group="example.org", version="v1", rules=[Rule("size(self.metadata.name) < 9")]):
    """Boxes."""

    spec: BoxedSpec
    status: BoxedStatus


def test_required_optional_and_default() -> None:
    spec = schema_of(BoxedSpec)
    assert spec["required"] == ["first"]
    defaults = {name: each["default"] for name, each in spec["properties"].items() if "default" in each}
    assert defaults == {
        "third": {"a": 1},
        "size": 1,
        "on": False,
        "text": "",
        "tags": [],
        "memory": "1Gi",
        "color": "red",
        "serverSide": 7,
    }
    assert spec["properties"]["maybe"] == {"type": "string", "nullable": True}
    assert "nullable" not in spec["properties"]["second"]


def test_descriptions_come_from_docstrings() -> None:
    schema = schema_of(Boxed)
    spec = schema["properties"]["spec"]
    assert schema["description"] == "Boxes."
    assert spec["description"] == "What is wanted."
    assert spec["properties"]["first"]["description"] == "The first box."
    assert spec["properties"]["second"]["description"] == "A box."
    assert spec["properties"]["second"]["properties"]["a"]["description"] == "How much.\n\nOr how many."
    assert "description" not in spec["properties"]["size"]


def test_rules_of_groups() -> None:
    assert schema_of(Box)["x-kubernetes-validations"] == [
        {"rule": "self.a < 3", "message": "too much"},
        {
            "rule": "[has(self.b), has(self.cD)].filter(x, x).size() <= 1",
            "message": "at most one of b, cD must be set",
        },
    ]
    assert schema_of(Boxed)["x-kubernetes-validations"] == [{"rule": "size(self.metadata.name) < 9"}]


def test_rules_are_inherited() -> None:
    class Crate(Box, rules=[Rule("true")]):
        pass

    assert [rule["rule"] for rule in schema_of(Crate)["x-kubernetes-validations"]][-1] == "true"
    assert len(schema_of(Crate)["x-kubernetes-validations"]) == 3


def test_a_rule_says_all_that_a_rule_can_say() -> None:
    rule = Rule(
        "self == oldSelf.value()",
        message="m",
        message_expression="'m'",
        reason="FieldValueForbidden",
        field_path=".a",
        optional_old_self=True,
    )
    assert of(Annotated[int, rule])["x-kubernetes-validations"] == [
        {
            "rule": "self == oldSelf.value()",
            "message": "m",
            "messageExpression": "'m'",
            "reason": "FieldValueForbidden",
            "fieldPath": ".a",
            "optionalOldSelf": True,
        }
    ]


@pytest.mark.capability("C68")
def test_immutability_also_forbids_to_come_and_to_go() -> None:
    class Fixed(Model):
        always: Annotated[int, Immutable]
        sometimes: Annotated[int, Immutable] | None = None
        once: Annotated[int, SetOnce(message="it stays")] | None = None
        with_default: Annotated[int, Immutable] = 1

    schema = schema_of(Fixed)
    for name in ("always", "sometimes", "once", "withDefault"):
        assert schema["properties"][name]["x-kubernetes-validations"][0]["rule"] == "self == oldSelf"
    assert schema["x-kubernetes-validations"] == [
        {
            "rule": "has(self.sometimes) == has(oldSelf.sometimes)",
            "message": "sometimes: the field is immutable",
        },
        {"rule": "!has(oldSelf.once) || has(self.once)", "message": "once: it stays"},
    ]


def test_a_discriminator_names_the_member() -> None:
    class Strategy(Model, rules=[Discriminator("type", {"None": None, "A": "a_b", "It's": "a_b", "C": "in_"})]):
        type: str = "None"
        a_b: str | None = None
        in_: str | None = None

    assert [rule["rule"] for rule in schema_of(Strategy)["x-kubernetes-validations"]] == [
        "(has(self.type) && self.type in ['A', 'It\\'s']) == has(self.aB)",
        "(has(self.type) && self.type in ['C']) == has(self.__in__)",
    ]


def test_the_status_has_no_defaults_and_its_conditions_are_a_map() -> None:
    status = schema_of(Boxed)["properties"]["status"]
    assert list(status["properties"]) == ["observedGeneration", "conditions", "ready", "box"]
    conditions = status["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["required"] == ["type", "status", "lastTransitionTime", "reason", "message"]
    assert "default" not in repr(status)


def test_a_spec_of_defaults_needs_not_be_written() -> None:
    class EasySpec(Spec):
        size: int = 1

    class Easy(Resource, group="example.org", version="v1"):
        spec: EasySpec

    class Ruled(Resource, group="example.org", version="v1"):
        spec: Annotated[EasySpec, Rule("self.size > 1")]

    assert schema_of(Easy)["properties"]["spec"]["default"] == {}
    assert schema_of(Boxed)["required"] == ["spec"]
    assert schema_of(Ruled)["required"] == ["spec"]


def test_the_metadata_of_the_object_is_the_servers_and_inside_it_is_named() -> None:
    class Templates(Model):
        pod: PodTemplateSpec
        meta: ObjectMeta | None = None

    assert schema_of(Boxed)["properties"]["metadata"] == {"type": "object"}
    schema = schema_of(Templates)
    expected = ["name", "namespace", "labels", "annotations", "finalizers"]
    assert list(schema["properties"]["pod"]["properties"]["metadata"]["properties"]) == expected
    assert list(schema["properties"]["meta"]["properties"]) == expected


@pytest.mark.capability("C68")
def test_an_embedded_pod_template_needs_no_containers_where_the_class_says_so() -> None:
    pods = of(Annotated[PodTemplateSpec, NotRequired("spec.containers")])["properties"]["spec"]
    assert "required" not in pods
    assert pods["properties"]["containers"]["items"]["required"] == ["name"]
    assert of(PodTemplateSpec)["properties"]["spec"]["required"] == ["containers"]


def test_a_kind_inside_a_kind_keeps_its_names() -> None:
    claim = of(PersistentVolumeClaim)
    assert {"apiVersion", "kind", "metadata", "spec"} <= claim["properties"].keys()
    assert "labels" in claim["properties"]["metadata"]["properties"]


@pytest.mark.capability("C71")
def test_descriptions_can_be_cut_for_the_whole_kind_and_for_each_field() -> None:
    class Short(Resource, group="example.org", version="v1", description_limit=10):
        spec: BoxedSpec

    class Longer(Model):
        none: Annotated[Box, DescriptionLimit(0)]
        few: Annotated[Box, DescriptionLimit(6)]

    from flyball.api.crd import version_of

    spec = version_of(Short)["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["description"] == "What is..."
    assert spec["properties"]["second"]["properties"]["a"]["description"] == "How muc..."
    schema = schema_of(Longer)["properties"]
    assert "description" not in repr(schema["none"])
    assert schema["few"]["description"] == "A box."
    assert schema["few"]["properties"]["a"]["description"] == "How..."


def test_a_whole_part_can_keep_unknown_fields() -> None:
    class Loose(Model, preserve_unknown=True):
        a: int = 1

    assert schema_of(Loose)["x-kubernetes-preserve-unknown-fields"] is True
    assert schema_of(Loose)["properties"]["a"]["default"] == 1


def test_list_map_keys_are_json_names() -> None:
    class Port(Model):
        port_number: int
        protocol: str = "TCP"

    schema = of(Annotated[list[Port], ListMapKeys("port_number", "protocol")])
    assert schema["x-kubernetes-list-map-keys"] == ["portNumber", "protocol"]
    assert schema["x-kubernetes-list-type"] == "map"

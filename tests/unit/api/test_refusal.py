"""A class that no server would take is refused when it is made: path, cause, remedy."""

from __future__ import annotations

from decimal import Decimal
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec
import pytest

from flyball.api import (
    EmbeddedResource,
    Enum,
    Ge,
    Gt,
    ListMapKeys,
    ListType,
    Lt,
    MaxItems,
    MaxLength,
    Model,
    NotRequired,
    Pattern,
    PreserveUnknown,
    PrintColumn,
    Resource,
    SchemaError,
    SelectableField,
    Spec,
    UniqueItems,
    crd_of,
)
from flyball.errors import FlyballError
from flyball.k8s.core.v1 import PodTemplateSpec


class A(Model):
    x: str | None = None
    y: list[str] | None = None


class B(Model):
    x: str


class Foreign(msgspec.Struct):
    x: int = 1


class NotAModel:
    x: int


def refuse(hint: Any, default: Any = None) -> str:
    """Make a kind with such a field two levels deep, and return why it is refused."""
    meta: Any = type(Model)
    body = {"__annotations__": {"field": hint}, "__module__": __name__, "field": default}
    inner = meta("Inner", (Model,), body)
    spec = meta(
        "WrongSpec", (Spec,), {"__annotations__": {"inners": GenericAlias(list, (inner,))}, "__module__": __name__}
    )
    with pytest.raises(SchemaError) as caught:
        meta(
            "Wrong", (Resource,), {"__annotations__": {"spec": spec}, "__module__": __name__}, group="a.b", version="v1"
        )
    text = str(caught.value)
    assert text.startswith("Wrong.spec.inners[].field"), text
    assert caught.value.path in text
    return text


@pytest.mark.capability("C68")
@pytest.mark.parametrize(
    ("hint", "cause", "remedy"),
    [
        (A | B, "one of A, B", "rules=[ExactlyOneOf(...)] or a Discriminator"),
        (str | list[str], "one of str, list", "make a Model"),
        (int | float, "one of int, float", "make a Model"),
        (tuple[int, int], "tuple[int, int]", "use list[...]"),
        (set[str], "JSON has no sets", 'ListType("set")'),
        (frozenset[str], "JSON has no sets", 'ListType("set")'),
        (Any, "Any says nothing", "Annotated[Any, PreserveUnknown]"),
        (object, "object says nothing", "PreserveUnknown"),
        (msgspec.Raw, "Raw says nothing", "PreserveUnknown"),
        (dict, "the values of the map have no type", "dict[str, ...]"),
        (dict[str, Any], "Any says nothing", "PreserveUnknown"),
        (dict[int, str], "JSON has only texts as keys", "dict[str, ...]"),
        (list, "the items of the list have no type", "list[str]"),
        (Decimal, "Decimal has no structural schema", "use a type that JSON has"),
        (Foreign, "Foreign is not a Model", "class Foreign(Model)"),
        (NotAModel, "NotAModel is not a Model", "class NotAModel(Model)"),
        (Literal["a", 1], "an enumeration of int, str", "use texts only"),
        (Annotated[str, Ge(0)], "Ge does not fit a value of type string", "put it at a integer or number"),
        (Annotated[int, MaxLength(3)], "MaxLength does not fit", "string"),
        (Annotated[str, MaxItems(3)], "MaxItems does not fit", "array"),
        (Annotated[int, PreserveUnknown], "PreserveUnknown does not fit", "object"),
        (Annotated[str, EmbeddedResource], "EmbeddedResource does not fit", "object"),
        (Annotated[int, Ge], "Ge needs a value", "write Ge(...)"),
        (Annotated[int, msgspec.Meta(ge=0)], "msgspec.Meta", "Ge(0)"),
        (Annotated[list[A], ListType("map")], "does not say by which fields", 'ListMapKeys("name")'),
        (Annotated[list[A], ListMapKeys("z")], "have no field 'z'", "name fields of the items"),
        (Annotated[list[A], ListMapKeys("y")], "'y' is not a scalar", "use a text"),
        (Annotated[list[A], ListMapKeys("x")], "'x' may be missing", "give the field a default"),
        (Annotated[list[str], ListMapKeys("x")], "have no field 'x'", "name fields"),
        (Annotated[list[B], ListMapKeys("x"), ListType("set")], "has no keys", "remove ListType or ListMapKeys"),
        (Annotated[list[A], ListType("set")], "scalars only", "make them atomic"),
        (Annotated[list[A], UniqueItems], "scalars only", "ListMapKeys"),
        (Annotated[int, PrintColumn], "PrintColumn cannot look into a list", "outside"),
        (Annotated[int, SelectableField], "SelectableField cannot look into a list", "outside"),
        (Annotated[PodTemplateSpec, NotRequired("spec.container")], "no field 'spec.container'", "attribute names"),
    ],
)
def test_types_and_markers(hint: Any, cause: str, remedy: str) -> None:
    text = refuse(hint)
    assert cause in text
    assert remedy in text


@pytest.mark.parametrize(
    ("hint", "default", "cause"),
    [
        (Annotated[int, Ge(2)], 1, "the default 1 is below the minimum 2"),
        (Annotated[int, Gt(1)], 1, "is below the minimum 1"),
        (Annotated[int, Lt(1)], 1, "is above the maximum 1"),
        (Annotated[str, Enum("a")], "b", "is none of a"),
        (Annotated[str, MaxLength(1)], "ab", "which minLength or maxLength forbids"),
        (Annotated[str, Pattern("^a$")], "b", "does not match ^a$"),
        (Annotated[list[str], MaxItems(1)], ["a", "b"], "minItems or maxItems"),
    ],
)
def test_defaults_must_be_allowed(hint: Any, default: Any, cause: str) -> None:
    assert cause in refuse(hint, default)


class Node(Model):
    children: list[Node] | None = None


class Left(Model):
    right: Right | None = None


class Right(Model):
    left: Left | None = None


def test_types_that_contain_themselves() -> None:
    assert "field.children[]: Node contains itself" in refuse(Node)
    assert "field.right.left: Left contains itself" in refuse(Left)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"group": "nodots"}, "the group 'nodots' is not a domain name"),
        ({"group": "Upper.org"}, "is not a domain name"),
        ({"version": "V1"}, "the version 'V1' is not one"),
        ({"kind": "my-kind"}, "the kind 'my-kind' is not a name"),
        ({"plural": "Things"}, "the plural 'Things' is not a name"),
        ({"short_names": "sh"}, "short_names is a text"),
        ({"short_names": ["S"]}, "the short name 'S' is not a name"),
        ({"categories": ["All"]}, "the category 'All' is not a name"),
        ({"scope": "Global"}, "the scope 'Global' does not exist"),
        ({"group": "apps.k8s.io"}, "the group 'apps.k8s.io' belongs to Kubernetes"),
    ],
)
def test_names(options: dict[str, Any], cause: str) -> None:
    meta: Any = type(Model)
    with pytest.raises(SchemaError, match=r"class Thing: .*; ") as caught:
        meta("Thing", (Resource,), {"__module__": __name__}, **{"group": "a.b", "version": "v1", **options})
    assert cause in str(caught.value)


def test_a_name_that_comes_later_is_checked_when_the_crd_is_made() -> None:
    class Early(Resource, group="a.b", version="v1"):
        spec: LateSpec  # type: ignore[name-defined] # noqa: F821 # pyright: ignore

    with pytest.raises(NameError, match="LateSpec"):
        crd_of(Early)


def test_it_is_one_of_our_errors_and_a_type_error() -> None:
    assert issubclass(SchemaError, FlyballError)
    assert issubclass(SchemaError, TypeError)

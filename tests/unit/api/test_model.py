"""What a class body says about its fields."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import pytest

from flyball.api import REQUIRED, UNSET, Model, UnsetType, decode, encode, field
from flyball.api.model import defaults_of, json_names


class Part(Model):
    a: int = 1


class Thing(Model):
    kinds: ClassVar[int] = 3
    must: str
    also: str = REQUIRED
    size: int = 1
    on: bool = False
    text: str = ""
    maybe: int | None = None
    unset: int | UnsetType | None = UNSET
    tags: list[str] = []  # noqa: RUF012 - each object gets its own
    filled: list[str] = ["a"]  # noqa: RUF012
    part: Part = Part(a=2)
    from_: str | None = None
    named: int = field(default=3, name="other-name")


def test_a_value_is_sent_also_when_it_equals_the_default_and_none_is_not() -> None:
    assert encode(Thing(must="x")) == (
        b'{"must":"x","size":1,"on":false,"text":"","filled":["a"],"part":{"a":2},"other-name":3}'
    )


def test_a_null_can_be_sent_where_unset_is_the_default() -> None:
    assert b'"unset":null' in encode(Thing(must="x", unset=None))


def test_objects_can_be_partial() -> None:
    partial: Any = Thing
    thing = partial()
    assert thing.must is UNSET
    assert b"must" not in encode(thing)
    assert b"also" not in encode(thing)


def test_defaults_that_can_change_are_not_shared() -> None:
    one, two = Thing(must="x"), Thing(must="x")
    one.tags.append("x")
    one.filled.append("x")
    one.part.a = 9
    assert (two.tags, two.filled, two.part.a) == ([], ["a"], 2)


def test_positional_arguments_and_unknown_names_are_refused() -> None:
    with pytest.raises(TypeError):
        Thing("x")  # type: ignore[call-arg] # pyright: ignore
    with pytest.raises(TypeError, match="sise"):
        Thing(must="x", sise=1)  # type: ignore[call-arg] # pyright: ignore


def test_keywords_lose_their_underscore_and_names_can_be_given() -> None:
    assert json_names(Thing)["from_"] == "from"
    assert json_names(Thing)["named"] == "other-name"
    assert decode(Thing, b'{"from":"x","other-name":4}').named == 4


def test_repr_shows_what_is_set() -> None:
    assert repr(Part()) == "Part(a=1)"
    assert repr(Thing(must="x", maybe=3)) == (
        "Thing(must='x', size=1, on=False, maybe=3, filled=['a'], part=Part(a=2), named=3)"
    )
    assert dict(Thing(must="x").__rich_repr__())["must"] == "x"


def test_defaults_are_known_and_fresh() -> None:
    first, second = defaults_of(Thing), defaults_of(Thing)
    assert first["size"] == 1
    assert first["must"] is UNSET
    assert first["filled"] == ["a"]
    assert first["filled"] is not second["filled"]


def test_an_unknown_class_option_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"class Wrong: unknown option 'sise'; known are: rules"):

        class Wrong(Model, sise=3):  # pyright: ignore[reportUnusedClass]
            a: int = 1


def test_classes_of_a_function_may_name_each_other() -> None:
    class Inner(Model):
        a: int = 1

    class Outer(Model):
        inners: list[Inner] = []  # noqa: RUF012

    assert decode(Outer, b'{"inners":[{"a":3}]}') == Outer(inners=[Inner(a=3)])


def test_copies_are_equal() -> None:
    thing = Thing(must="x", tags=["a"])
    assert copy.deepcopy(thing) == thing
    assert Thing(must="x") != Thing(must="y")

"""Quantities: exact, canonical as the API server writes them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flyball.api import Quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("-1.5", "-1500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("0.1", "100m"),
        (".5", "500m"),
        ("5.", "5"),
        ("1000", "1k"),
        ("1001", "1001"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e-4", "1200e-6"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.3Ki", "307200m"),
        ("1.0000000001Ki", "1024000000103n"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("100k", "100k"),
        ("5E", "5E"),
        ("1000E", "1000E"),
        ("9999999Pi", "9223372036854775807"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    assert Quantity(text).canonical() == canonical


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "a", "1ki", "1K", "1mi", "1e", "--1", "1.2.3", "1Kib", "NaN", "0x1", "1_0"]
)
def test_wrong_texts_are_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity: write a number and a suffix"):
        Quantity(text)


@pytest.mark.parametrize("value", [True, None, [], b"1"])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="a quantity is made from text or a number"):
        Quantity(value)  # type: ignore[arg-type] # pyright: ignore


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Quantity(value)


def test_arithmetic_is_exact_and_keeps_the_style_of_the_left() -> None:
    assert str(Quantity("1Gi") + "512Mi") == "1536Mi"
    assert str(Quantity("100m") + Quantity("200m")) == "300m"
    assert str(Quantity("0") + "1Gi") == "1Gi"
    assert str(Quantity("1") - "100m") == "900m"
    assert str(1 - Quantity("100m")) == "900m"
    assert str(Quantity("250m") * 4) == "1"
    assert str(2 * Quantity("1Gi")) == "2Gi"
    assert str(Quantity("1") / 3) == "333333334n"
    assert str(-Quantity("1")) == "-1"
    assert str(abs(Quantity("-1"))) == "1"
    assert sum([Quantity("1"), Quantity("2")], Quantity()) == 3


def test_comparison_is_by_value() -> None:
    assert Quantity("1000m") == Quantity("1") == 1 == Quantity(Decimal(1))
    assert Quantity("1Ki") == "1024"
    assert Quantity("1") != "one"
    assert Quantity("1") != object()
    assert hash(Quantity("1000m")) == hash(Quantity("1"))
    assert Quantity("1Gi") > "1G"
    assert sorted([Quantity("1"), Quantity("1m"), Quantity("1k")]) == [Quantity("1m"), 1, 1000]
    assert not Quantity("0")


def test_numbers_are_rounded_up_as_the_server_does() -> None:
    assert int(Quantity("1500m")) == 2
    assert int(Quantity("-1500m")) == -2
    assert Quantity("1.0001").milli() == 1001
    assert float(Quantity("1500m")) == 1.5


def test_the_text_stays_as_it_was_written() -> None:
    assert str(Quantity("1024Mi")) == "1024Mi"
    assert repr(Quantity("1024Mi")) == "Quantity('1024Mi')"
    assert str(Quantity(Quantity("1024Mi"))) == "1024Mi"


numbers = st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**15), max_value=10**15)


@settings(deadline=None)
@given(numbers, st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "e3", "e-3"]))
def test_the_canonical_text_has_the_same_value(number: Decimal, suffix: str) -> None:
    quantity = Quantity(f"{number:f}{suffix}")
    assert Quantity(quantity.canonical()) == quantity
    assert Quantity(quantity.canonical()).canonical() == quantity.canonical()


@settings(deadline=None)
@given(numbers, numbers)
def test_adding_and_taking_away_ends_where_it_began(left: Decimal, right: Decimal) -> None:
    assert Quantity(left) + Quantity(right) - Quantity(right) == Quantity(left)

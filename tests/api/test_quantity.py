from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.quantity import (
    FORMAT_WRONG,
    NUMBER_WRONG,
    SUFFIX_WRONG,
    ZERO,
    Format,
    Quantity,
    QuantityError,
    parse_quantity,
)

POWERS = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("num", start=-3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
    "": Fraction(1),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}

quantities = st.builds(
    Quantity,
    st.integers(-(2**63 - 1) * 10**9, (2**63 - 1) * 10**9),
    st.sampled_from(sorted(Format, key=str)),
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1", "1"),
        ("010", "10"),
        ("+5", "5"),
        ("-5", "-5"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1234567", "1234567"),
        ("1000000k", "1G"),
        ("12E", "12E"),
        ("1000E", "1000E"),
        ("1024", "1024"),
        ("1Ki", "1Ki"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("-1.5Gi", "-1536Mi"),
        ("0.5Ki", "512"),
        ("0.5Mi", "512Ki"),
        ("0.0001Ki", "102400u"),
        ("1.0001Gi", "1073849198182400u"),
        ("9Ei", "9223372036854775807"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("10e-1", "1"),
        ("1e+16", "10e15"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1u", "1u"),
        ("100000n", "100u"),
    ],
)
def test_quantities_are_written_as_kubernetes_writes_them(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", FORMAT_WRONG),
        ("x", FORMAT_WRONG),
        ("1 Gi", FORMAT_WRONG),
        ("1.2.3", FORMAT_WRONG),
        ("--1", SUFFIX_WRONG),
        ("1_000", FORMAT_WRONG),
        ("١", FORMAT_WRONG),
        ("1e1.5", FORMAT_WRONG),
        ("1Gi\n", FORMAT_WRONG),
        ("nan", FORMAT_WRONG),
        ("1K", SUFFIX_WRONG),
        ("1e", SUFFIX_WRONG),
        ("1mm", SUFFIX_WRONG),
        ("1e999999999", SUFFIX_WRONG),
        ("1" * 401, NUMBER_WRONG),
    ],
)
def test_a_bad_quantity_is_refused_with_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("number", "text"),
    [(2, "2"), (0, "0"), (-3, "-3"), (0.1, "100m"), (1.5, "1500m"), (1e16, "10e15")],
)
def test_json_numbers_are_quantities_too(number: float, text: str) -> None:
    assert str(parse_quantity(number)) == text


@given(
    st.integers(-(10**12), 10**12),
    st.text("0123456789", max_size=6),
    st.sampled_from(sorted(POWERS)),
)
def test_a_quantity_is_worth_its_number_times_its_suffix(
    whole: int, fraction: str, suffix: str
) -> None:
    sign = "-" if whole < 0 else ""
    number = Fraction(f"{abs(whole)}.{fraction or '0'}")
    exact = number * POWERS[suffix] * 10**9
    if suffix.endswith("i"):
        exact = min(exact, Fraction((2**63 - 1) * 10**9))
    rounded_up = -(-exact.numerator // exact.denominator)
    found = parse_quantity(f"{sign}{abs(whole)}.{fraction}{suffix}")
    assert found.nanos == (-rounded_up if sign else rounded_up)


@given(quantities)
def test_a_quantity_survives_being_written(quantity: Quantity) -> None:
    assert parse_quantity(str(quantity)) == quantity


@given(quantities)
def test_what_is_written_is_already_canonical(quantity: Quantity) -> None:
    assert str(parse_quantity(str(quantity))) == str(quantity)


@given(quantities, quantities)
def test_arithmetic_and_order_are_those_of_fractions(one: Quantity, other: Quantity) -> None:
    a, b = Fraction(one.nanos, 10**9), Fraction(other.nanos, 10**9)
    assert Fraction((one + other).nanos, 10**9) == a + b
    assert Fraction((one - other).nanos, 10**9) == a - b
    assert (one < other, one <= other, one == other) == (a < b, a <= b, a == b)
    assert (one > other, one >= other) == (a > b, a >= b)
    if one == other:
        assert hash(one) == hash(other)


def test_a_sum_is_written_as_its_first_part_was_unless_that_was_nothing() -> None:
    gibi, kilo = parse_quantity("1Gi"), parse_quantity("24k")
    assert str(gibi + gibi) == "2Gi"
    assert (ZERO + gibi).format is Format.BINARY
    assert (ZERO - gibi).format is Format.BINARY
    assert (kilo - gibi).format is Format.DECIMAL


def test_a_quantity_equals_no_other_thing() -> None:
    assert parse_quantity("1") != 1


@pytest.mark.parametrize(
    ("text", "milli", "units"),
    [("1", 1000, 1), ("1n", 1, 1), ("-1n", -1, -1), ("1500u", 2, 1), ("2.5", 2500, 3)],
)
def test_fractions_are_rounded_away_from_zero(text: str, milli: int, units: int) -> None:
    quantity = parse_quantity(text)
    assert (quantity.milli, quantity.units) == (milli, units)
    assert quantity.at_milli() == parse_quantity(f"{milli}m")

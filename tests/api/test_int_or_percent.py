from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.daemonset import IntOrPercent
from everynode.api.int_or_percent import (
    NEGATIVE,
    NOT_A_PERCENTAGE,
    OVER_100,
    TOO_LARGE,
    WRONG_TYPE,
    parse_int_or_percent,
    scaled_value,
)

amounts = st.builds(IntOrPercent, st.integers(0, 2**31 - 1), st.booleans())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, IntOrPercent(0)),
        (5, IntOrPercent(5)),
        (2**31 - 1, IntOrPercent(2**31 - 1)),
        ("0%", IntOrPercent(0, percent=True)),
        ("10%", IntOrPercent(10, percent=True)),
        ("007%", IntOrPercent(7, percent=True)),
        ("150%", IntOrPercent(150, percent=True)),
    ],
)
def test_numbers_and_percentages_are_amounts(value: object, expected: IntOrPercent) -> None:
    assert parse_int_or_percent(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("5", NOT_A_PERCENTAGE),
        ("abc", NOT_A_PERCENTAGE),
        ("", NOT_A_PERCENTAGE),
        ("-5%", NOT_A_PERCENTAGE),
        ("5 %", NOT_A_PERCENTAGE),
        ("5%\n", NOT_A_PERCENTAGE),
        ("٥%", NOT_A_PERCENTAGE),
        (-1, NEGATIVE),
        (2**31, TOO_LARGE),
        (f"{2**31}%", TOO_LARGE),
        ("9" * 5000 + "%", TOO_LARGE),
        (True, WRONG_TYPE),
        (1.5, WRONG_TYPE),
        (None, WRONG_TYPE),
        ({}, WRONG_TYPE),
    ],
)
def test_anything_else_is_refused_with_a_reason(value: object, message: str) -> None:
    assert parse_int_or_percent(value) == message


@pytest.mark.parametrize("value", ["101%", "00101%", "1000%", "9" * 5000 + "%"])
def test_more_than_all_is_refused_where_asked(value: str) -> None:
    assert parse_int_or_percent(value, at_most_all=True) == OVER_100


def test_all_is_not_more_than_all() -> None:
    assert parse_int_or_percent("100%", at_most_all=True) == IntOrPercent(100, percent=True)


@pytest.mark.parametrize(
    ("amount", "total", "up", "down"),
    [
        (IntOrPercent(3), 10, 3, 3),
        (IntOrPercent(30), 10, 30, 30),
        (IntOrPercent(10, percent=True), 0, 0, 0),
        (IntOrPercent(10, percent=True), 20, 2, 2),
        (IntOrPercent(10, percent=True), 21, 3, 2),
        (IntOrPercent(1, percent=True), 3, 1, 0),
        (IntOrPercent(100, percent=True), 7, 7, 7),
    ],
)
def test_percentages_are_rounded_as_asked(
    amount: IntOrPercent, total: int, up: int, down: int
) -> None:
    assert scaled_value(amount, total, round_up=True) == up
    assert scaled_value(amount, total, round_up=False) == down


@given(amounts, st.integers(0, 10**6))
def test_rounding_up_adds_at_most_one(amount: IntOrPercent, total: int) -> None:
    up, down = (
        scaled_value(amount, total, round_up=True),
        scaled_value(amount, total, round_up=False),
    )
    assert down <= up <= down + 1
    if amount.percent:
        assert down * 100 <= amount.value * total <= up * 100


@given(amounts)
def test_an_amount_is_read_as_it_was_written(amount: IntOrPercent) -> None:
    written = f"{amount.value}%" if amount.percent else amount.value
    assert parse_int_or_percent(written) == amount

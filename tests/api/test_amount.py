from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.amount import (
    NEGATIVE,
    NOT_A_PERCENTAGE,
    OVER_100,
    TOO_LARGE,
    WRONG_TYPE,
    parse_amount,
    scale,
)
from everynode.api.daemonset import Amount

amounts = st.builds(Amount, st.integers(0, 2**31 - 1), st.booleans())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, Amount(0)),
        (5, Amount(5)),
        (2**31 - 1, Amount(2**31 - 1)),
        ("0%", Amount(0, percent=True)),
        ("10%", Amount(10, percent=True)),
        ("007%", Amount(7, percent=True)),
        ("150%", Amount(150, percent=True)),
    ],
)
def test_numbers_and_percentages_are_amounts(value: object, expected: Amount) -> None:
    assert parse_amount(value) == expected


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
    assert parse_amount(value) == message


@pytest.mark.parametrize("value", ["101%", "00101%", "1000%", "9" * 5000 + "%"])
def test_more_than_all_is_refused_where_asked(value: str) -> None:
    assert parse_amount(value, at_most_all=True) == OVER_100


def test_all_is_not_more_than_all() -> None:
    assert parse_amount("100%", at_most_all=True) == Amount(100, percent=True)


@pytest.mark.parametrize(
    ("amount", "total", "up", "down"),
    [
        (Amount(3), 10, 3, 3),
        (Amount(30), 10, 30, 30),
        (Amount(10, percent=True), 0, 0, 0),
        (Amount(10, percent=True), 20, 2, 2),
        (Amount(10, percent=True), 21, 3, 2),
        (Amount(1, percent=True), 3, 1, 0),
        (Amount(100, percent=True), 7, 7, 7),
    ],
)
def test_percentages_are_rounded_as_asked(amount: Amount, total: int, up: int, down: int) -> None:
    assert scale(amount, total, round_up=True) == up
    assert scale(amount, total, round_up=False) == down


@given(amounts, st.integers(0, 10**6))
def test_rounding_up_adds_at_most_one(amount: Amount, total: int) -> None:
    up, down = scale(amount, total, round_up=True), scale(amount, total, round_up=False)
    assert down <= up <= down + 1
    if amount.percent:
        assert down * 100 <= amount.value * total <= up * 100


@given(amounts)
def test_an_amount_is_read_as_it_was_written(amount: Amount) -> None:
    written = f"{amount.value}%" if amount.percent else amount.value
    assert parse_amount(written) == amount

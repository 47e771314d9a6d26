"""How many nodes an int-or-percent means, and what is wrong with one that means nothing."""

from __future__ import annotations

import re
from typing import Final

from everynode.api.daemonset import Amount

# The words of Kubernetes' own validation, so that a user finds them in its documentation.
NEGATIVE: Final = "must be greater than or equal to 0"
OVER_100: Final = "must not be greater than 100%"
NOT_A_PERCENTAGE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
WRONG_TYPE: Final = "must be an integer or percentage (e.g '5%')"
TOO_LARGE: Final = "must be less than or equal to 2147483647"

_PERCENT = re.compile("[0-9]+%")
_INT32_MAX = 2**31 - 1


def parse_amount(value: object, *, at_most_all: bool = False) -> Amount | str:
    """The amount a JSON value stands for, or the message that says why it is none.

    With `at_most_all`, more than 100% is refused.
    """
    if isinstance(value, str):
        return _parse_percent(value, at_most_all=at_most_all)
    # A bool is an int to Python, but not to the API.
    if not isinstance(value, int) or isinstance(value, bool):
        return WRONG_TYPE
    if value < 0:
        return NEGATIVE
    if value > _INT32_MAX:
        return TOO_LARGE
    return Amount(value)


def _parse_percent(text: str, *, at_most_all: bool) -> Amount | str:
    if not _PERCENT.fullmatch(text):
        return NOT_A_PERCENTAGE
    digits = text[:-1].lstrip("0") or "0"
    if at_most_all and (len(digits) > 3 or int(digits) > 100):
        return OVER_100
    if len(digits) > 10 or int(digits) > _INT32_MAX:
        return TOO_LARGE
    return Amount(int(digits), percent=True)


def scale(amount: Amount, total: int, *, round_up: bool) -> int:
    """The number of nodes an amount means among `total`; absolute amounts are returned as is."""
    if not amount.percent:
        return amount.value
    share = amount.value * total
    return -(-share // 100) if round_up else share // 100

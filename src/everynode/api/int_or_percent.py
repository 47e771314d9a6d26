"""Int-or-percent values such as maxUnavailable: parsing, and scaling to a number of nodes."""

from __future__ import annotations

import re
from typing import Final

from everynode.api.daemonset import IntOrPercent

# The messages of Kubernetes' own validation, which users can search for.
NEGATIVE: Final = "must be greater than or equal to 0"
OVER_100: Final = "must not be greater than 100%"
NOT_A_PERCENTAGE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
WRONG_TYPE: Final = "must be an integer or percentage (e.g '5%')"
TOO_LARGE: Final = "must be less than or equal to 2147483647"

_PERCENT = re.compile("[0-9]+%")
MAX_INT32: Final = 2**31 - 1


def parse_int_or_percent(value: object, *, at_most_all: bool = False) -> IntOrPercent | str:
    """Parse a JSON value; returns an error message where it is neither an integer nor a percentage.

    With `at_most_all`, more than 100% is refused.
    """
    if isinstance(value, str):
        return _parse_percent(value, at_most_all=at_most_all)
    # A bool is an int to Python, but not to the API.
    if not isinstance(value, int) or isinstance(value, bool):
        return WRONG_TYPE
    if value < 0:
        return NEGATIVE
    if value > MAX_INT32:
        return TOO_LARGE
    return IntOrPercent(value)


def _parse_percent(text: str, *, at_most_all: bool) -> IntOrPercent | str:
    if not _PERCENT.fullmatch(text):
        return NOT_A_PERCENTAGE
    digits = text[:-1].lstrip("0") or "0"
    if at_most_all and (len(digits) > 3 or int(digits) > 100):
        return OVER_100
    if len(digits) > 10 or int(digits) > MAX_INT32:
        return TOO_LARGE
    return IntOrPercent(int(digits), percent=True)


def scaled_value(amount: IntOrPercent, total: int, *, round_up: bool) -> int:
    """Return the number of nodes that an int-or-percent means among `total`."""
    if not amount.percent:
        return amount.value
    share = amount.value * total
    return -(-share // 100) if round_up else share // 100

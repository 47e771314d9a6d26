from __future__ import annotations

from typing import Any

import pytest

from everynode.api.validation.advanced import RULES, check_own_fields, is_zero, rolling_type
from everynode.api.validation.field_errors import FORBIDDEN, INVALID, REQUIRED


@pytest.mark.parametrize(
    ("amount", "zero"),
    [(None, True), (0, True), ("0%", True), ("00%", True), (1, False), ("1%", False), ("x", False)],
)
def test_zero_has_many_spellings(amount: object, zero: bool) -> None:
    assert is_zero(amount) is zero


@pytest.mark.parametrize(
    ("rolling", "how"),
    [
        ({}, "Standard"),
        ({"type": "Surging"}, "Surging"),
        ({"rollingUpdateType": "InPlaceIfPossible"}, "InPlaceIfPossible"),
        ({"rollingUpdateType": "Standard", "type": "Surging"}, "Standard"),
        ({"type": 5}, "Standard"),
    ],
)
def test_the_way_to_update_has_two_spellings(rolling: dict[str, Any], how: str) -> None:
    assert rolling_type(rolling) == how


def test_the_api_server_knows_the_reason_of_every_rule() -> None:
    assert {rule.reason for rule in RULES} <= {INVALID, REQUIRED, FORBIDDEN}


def test_an_object_without_a_spec_breaks_no_rule() -> None:
    assert list(check_own_fields({})) == []

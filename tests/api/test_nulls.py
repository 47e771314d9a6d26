from __future__ import annotations

from everynode.api.nulls import drop_nulls


def test_null_fields_are_dropped_at_every_depth() -> None:
    assert drop_nulls({"a": None, "b": {"c": None, "d": 0}}) == {"b": {"d": 0}}
    assert drop_nulls([{"a": None}, {"b": ""}]) == [{}, {"b": ""}]


def test_null_elements_of_a_list_stay() -> None:
    assert drop_nulls({"a": [None, 1]}) == {"a": [None, 1]}


def test_the_value_itself_is_not_changed() -> None:
    value = {"a": None, "b": [{"c": None}]}
    drop_nulls(value)
    assert value == {"a": None, "b": [{"c": None}]}

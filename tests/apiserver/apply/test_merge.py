from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.apiserver.apply.merge import merge, remove_fields, validation_errors
from everynode.apiserver.schema.type_tree import DEDUCED, type_tree_of

POD_SPEC = type_tree_of("io.k8s.api.core.v1.PodSpec")
VOLUMES = POD_SPEC.fields["volumes"]


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def names(items: list[dict[str, Any]]) -> str:
    return "".join(item["name"] for item in items)


@pytest.mark.parametrize(
    ("live", "applied", "result"),
    [
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("abc", "c", "abc"),
        ("abc", "cb", "acb"),
        ("abc", "xb", "axbc"),
        ("abc", "bx", "abcx"),
        ("ab", "xy", "abxy"),
        ("abcd", "cxb", "acdxb"),
    ],
)
def test_lists_keep_the_live_order_except_for_what_is_applied(
    live: str, applied: str, result: str
) -> None:
    assert names(merge(named(*live), named(*applied), VOLUMES)) == result


ORDERS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(ORDERS, ORDERS)
def test_merged_lists_have_every_item_once_and_the_applied_order(
    live: list[str], applied: list[str]
) -> None:
    before = named(*live)
    merged = list(names(merge(before, named(*applied), VOLUMES)))
    assert sorted(merged) == sorted({*live, *applied})
    assert [name for name in merged if name in applied] == applied
    assert before == named(*live)


def test_maps_merge_and_whole_ones_are_replaced() -> None:
    live = {"nodeSelector": {"a": "1"}, "dnsConfig": {"nameservers": ["x"]}, "nodeName": "n"}
    applied = {"nodeSelector": {"b": "2"}, "dnsConfig": {"searches": ["y"]}}
    kept = copy.deepcopy(live)
    assert merge(live, applied, POD_SPEC) == {
        "nodeSelector": {"b": "2"},
        "dnsConfig": {"nameservers": ["x"], "searches": ["y"]},
        "nodeName": "n",
    }
    assert live == kept


def test_a_null_takes_nothing_from_what_is_merged_part_by_part() -> None:
    assert merge({"a": {"b": 1}, "c": 1}, {"a": None, "c": None}, DEDUCED) == {
        "a": {"b": 1},
        "c": None,
    }


def test_fields_and_items_are_removed_and_what_is_left_empty_is_null() -> None:
    spec = {"volumes": named("a", "b"), "dnsConfig": {"nameservers": ["x"]}, "nodeName": "n"}
    tree: Any = {
        "f:volumes": {'k:{"name":"a"}': {}},
        "f:dnsConfig": {"f:nameservers": {}},
    }
    assert remove_fields(spec, tree, POD_SPEC) == {
        "volumes": named("b"),
        "dnsConfig": None,
        "nodeName": "n",
    }
    assert remove_fields({"nodeName": "n"}, {"f:nodeName": {}}, POD_SPEC) is None


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"nodeName": "n", "hostNetwork": True, "priority": 3, "overhead": {"cpu": 1}}, None),
        ({"nodeName": None, "containers": None}, None),
        ({"nope": 1}, ".nope: field not declared in schema"),
        ({"priority": True}, ".priority: expected numeric (int or float), got bool"),
        ({"nodeName": {"a": 1}}, (".nodeName: expected string, got "
         '&value.valueUnstructured{Value:map[string]interface {}{"a":1}}')),
        ({"overhead": {"cpu": []}}, ".overhead.cpu: expected any scalar, got &{[]}"),
        ({"tolerations": [{"key": 1}]}, (".tolerations[0].key: expected string, got "
         "&value.valueUnstructured{Value:1}")),
        ({"containers": [None]}, (".containers: element 0: associative list with keys "
         "may not have a null element")),
    ],
)  # fmt: skip
def test_values_are_checked_against_their_shape(value: Any, fault: str | None) -> None:
    assert validation_errors(value, POD_SPEC) == ([] if fault is None else [fault])

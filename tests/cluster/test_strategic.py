from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.cluster.strategic import FormatError, StrategicError, merge

POD = "io.k8s.api.core.v1.Pod"


def containers(*names: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name} for name in names]}}


def names(obj: dict[str, Any]) -> str:
    return "".join(item["name"] for item in obj["spec"]["containers"])


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([{"name": "b", "image": "x"}], "abc"),
        ([{"name": "d"}], "dabc"),
        ([{"name": "c"}, {"name": "a"}], "bca"),
        ([{"name": "b", "$patch": "delete"}], "ac"),
        ([{"$patch": "replace"}, {"name": "z"}], "z"),
        ([{"$patch": "replace"}], ""),
    ],
)
def test_keyed_lists_merge_by_their_key(patch: list[Any], result: str) -> None:
    merged = merge(containers("a", "b", "c"), {"spec": {"containers": patch}}, POD)
    assert names(merged) == result


ORDERS = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1)


@given(ORDERS, ORDERS)
def test_an_order_that_is_asked_for_is_kept(before: list[str], order: list[str]) -> None:
    wanted = [{"name": name} for name in order]
    new = [{"name": name} for name in order if name not in before]
    live = containers(*before)
    kept = copy.deepcopy(live)
    patch = {"spec": {"$setElementOrder/containers": wanted, "containers": new}}
    merged = list(names(merge(live, patch, POD)))
    assert [name for name in merged if name in order] == order
    assert sorted(merged) == sorted({*before, *order})
    assert live == kept


def test_what_is_untyped_merges_as_a_map() -> None:
    live = {"metadata": {"annotations": {"a": "1", "b": "2"}}}
    patch = {"metadata": {"annotations": {"a": None, "c": "3"}}}
    assert merge(live, patch, POD) == {"metadata": {"annotations": {"b": "2", "c": "3"}}}


def test_a_map_can_be_replaced_and_emptied() -> None:
    live = {"spec": {"nodeName": "n", "dnsPolicy": "Default"}}
    assert merge(live, {"spec": {"$patch": "replace", "nodeName": "m"}}, POD) == {
        "spec": {"nodeName": "m"}
    }
    assert merge(live, {"spec": {"$patch": "delete"}}, POD) == {"spec": {}}


@pytest.mark.parametrize(
    ("patch", "error"),
    [
        ({"spec": {"$retainKeys": "x"}}, FormatError),
        ({"spec": {"$retainKeys": ["a"], "nodeName": "n"}}, FormatError),
        ({"metadata": {"$deleteFromPrimitiveListfinalizers": []}}, FormatError),
        ({"metadata": {"$setElementOrderfinalizers": []}}, FormatError),
        ({"spec": {"$patch": "grow"}}, StrategicError),
        ({"spec": {"containers": [{"image": "x"}]}}, StrategicError),
        ({"spec": {"containers": ["x"]}}, StrategicError),
        ({"spec": {"containers": [["x"]]}}, StrategicError),
        ({"spec": {"containers": [{"$patch": "delete"}]}}, StrategicError),
        ({"spec": {"$setElementOrder/containers": [{"image": "x"}]}}, StrategicError),
        ({"spec": {"$setElementOrder/containers": {}}}, StrategicError),
    ],
)
def test_directives_that_make_no_sense_are_refused(
    patch: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        merge({"metadata": {}, **containers("a")}, patch, POD)

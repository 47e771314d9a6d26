from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.apiserver.patches import strategic
from everynode.apiserver.patches.strategic import FormatError, StrategicError, merge

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


ITEMS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")},
        optional={"image": st.sampled_from(["x", "y", None]), "env": st.just([])},
    ),
    max_size=5,
)


@given(ITEMS, ITEMS)
def test_short_way_merges_items_as_the_long_way_does(
    before: list[dict[str, Any]], sent: list[dict[str, Any]]
) -> None:
    field = strategic.TypePatchMeta("io.k8s.api.core.v1.PodSpec").field("containers")
    short = strategic._try_fast_list_merge(before, sent, field)
    assert short is None or short == strategic._merge_list_items(before, sent, field)


@pytest.mark.parametrize(
    ("sent", "result"), [("b", "abc"), ("ac", "abc"), ("de", "deabc"), ("cdab", "cdab")]
)
def test_usual_patches_of_lists_go_the_short_way(sent: str, result: str) -> None:
    field = strategic.TypePatchMeta("io.k8s.api.core.v1.PodSpec").field("containers")
    before, patch = ([{"name": name} for name in text] for text in ("abc", sent))
    merged = strategic._try_fast_list_merge(before, patch, field)
    assert merged is not None
    assert "".join(item["name"] for item in merged) == result


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

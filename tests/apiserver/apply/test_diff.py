from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.apply.diff import compare, to_field_set
from everynode.apiserver.schema.type_tree import DEDUCED, type_tree_of

Object = dict[str, Any]
POD = type_tree_of("io.k8s.api.core.v1.Pod")


def pod(**spec: Any) -> Object:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        (pod(), pod(nodeName="n"), {"f:nodeName": {}}, {}),
        (pod(nodeName="n"), pod(nodeName="m"), {"f:nodeName": {}}, {}),
        (pod(nodeName="n"), pod(), {}, {"f:nodeName": {}}),
        (pod(nodeSelector={"a": "b"}), pod(nodeSelector={"a": "c"}), {"f:nodeSelector": {}}, {}),
        (pod(), pod(dnsConfig={"nameservers": ["x"]}),
         {"f:dnsConfig": {".": {}, "f:nameservers": {}}}, {}),
        # A list that is always there is not itself new when its first item comes.
        (pod(), pod(containers=[{"name": "c", "image": "i"}]),
         {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}}}}, {}),
        (pod(), pod(volumes=[{"name": "v"}]),
         {"f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:name": {}}}}, {}),
        (pod(volumes=[{"name": "v"}, {"name": "w"}]), pod(volumes=[{"name": "w"}]),
         {}, {"f:volumes": {'k:{"name":"v"}': {".": {}, "f:name": {}}}}),
        (pod(unknown=1), pod(unknown=2), {}, {}),
    ],
)  # fmt: skip
def test_changes_are_found_field_by_field(
    old: Object, new: Object, changed: Object, removed: Object
) -> None:
    change = compare(old, new, POD)
    assert change.changed == ({"f:spec": changed} if changed else {})
    assert change.removed == ({"f:spec": removed} if removed else {})


def test_a_part_that_is_always_there_is_no_change() -> None:
    assert compare({}, {"status": {}, "spec": {}}, POD).changed == {}


def test_items_that_share_a_name_count_as_one_value() -> None:
    one, two = [{"name": "v"}], [{"name": "v"}, {"name": "v", "emptyDir": {}}]
    change = compare(pod(volumes=one), pod(volumes=two), POD)
    key = 'k:{"name":"v"}'
    assert change.changed == {"f:spec": {"f:volumes": {key: {}}}}
    assert change.removed == {"f:spec": {"f:volumes": {key: {".": {}, "f:name": {}}}}}
    back = compare(pod(volumes=two), pod(volumes=one), POD)
    assert back.changed == {"f:spec": {"f:volumes": {key: {".": {}, "f:name": {}}}}}
    assert back.removed == {"f:spec": {"f:volumes": {key: {}}}}
    same = compare(pod(volumes=two), pod(volumes=[*two[::-1]]), POD)
    assert same.changed == {"f:spec": {"f:volumes": {key: {}}}}


def test_a_value_that_changes_its_sort_is_touched_itself() -> None:
    change = compare({"a": 1}, {"a": {"x": 1}}, DEDUCED)
    assert change.changed == {"f:a": {".": {}, "f:x": {}}}
    back = compare({"a": {"x": 1}}, {"a": 1}, DEDUCED)
    assert (back.changed, back.removed) == ({"f:a": {}}, {"f:a": {"f:x": {}}})


def test_a_null_becomes_what_the_other_side_is() -> None:
    assert compare({"a": None}, {"a": {"x": 1}}, DEDUCED).changed == {"f:a": {"f:x": {}}}
    assert compare({"a": {"x": 1}}, {"a": None}, DEDUCED).removed == {"f:a": {"f:x": {}}}
    assert compare({"a": None}, {"a": 1}, DEDUCED).changed == {"f:a": {}}
    assert compare({"a": 1}, {"a": None}, DEDUCED).changed == {"f:a": {}}


def test_an_applied_object_mentions_leaves_and_items() -> None:
    applied = {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "env": []}],
            "nodeSelector": {"x": "y"},
            "securityContext": {},
            "hostNetwork": None,
        },
    }
    assert to_field_set(applied, POD) == {
        "f:metadata": {"f:name": {}, "f:labels": {"f:a": {}}},
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}}},
            "f:nodeSelector": {},
            "f:securityContext": {},
            "f:hostNetwork": {},
        },
    }

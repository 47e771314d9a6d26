"""Edits of a DaemonSet: what each puts into the patch."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.apiserver.patches.json_patch import apply_merge_patch
from everynode.change import edits
from everynode.errors import UserError

Object = dict[str, Any]


def stored(**rolling: Any) -> Object:
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "metadata": {"name": "agent"},
        "spec": {
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "initContainers": [{"name": "init", "image": "i:1"}],
                    "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
                    "hostNetwork": True,
                },
            },
        },
    }


def native(**spec: Any) -> Object:
    found = stored()
    return {**found, "apiVersion": "apps/v1", "spec": {**found["spec"], **spec}}


def images_after(edit: edits.Edit) -> list[str]:
    pod = apply_merge_patch(stored(), edit.patch)["spec"]["template"]["spec"]
    return [each["image"] for each in (*pod["initContainers"], *pod["containers"])]


@pytest.mark.parametrize(
    ("images", "after"),
    [
        ({"a": "a:2"}, ["i:1", "a:2", "b:1"]),
        ({"a": "a:2", "init": "i:2"}, ["i:2", "a:2", "b:1"]),
        ({"*": "x:2"}, ["i:1", "x:2", "x:2"]),
        ({"*": "x:2", "b": "b:1"}, ["i:1", "x:2", "b:1"]),
    ],
)
def test_images_are_set_by_the_names_of_containers(
    images: dict[str, str], after: list[str]
) -> None:
    edit = edits.set_images(stored(), images)
    assert images_after(edit) == after
    assert edit.new_template


def test_images_that_are_there_change_nothing() -> None:
    assert edits.set_images(stored(), {"a": "a:1"}).patch == {}


def test_a_container_that_is_not_there_is_named_beside_those_that_are() -> None:
    with pytest.raises(UserError, match="no container c; there are: init, a, b"):
        edits.set_images(stored(), {"c": "c:1"})


def test_a_restart_sets_the_annotation_that_kubectl_sets() -> None:
    edit = edits.restart(stored(), "2026-11-18T10:00:00Z")
    annotations = {"kubectl.kubernetes.io/restartedAt": "2026-11-18T10:00:00Z"}
    assert edit.patch == {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    assert edit.new_template


@pytest.mark.parametrize(
    ("before", "paused", "done", "changed"),
    [
        ({}, True, "paused", True),
        ({"paused": True}, True, "is paused already", False),
        ({"paused": True}, False, "resumed", True),
        ({}, False, "is not paused", False),
    ],
)
def test_pausing_and_resuming(before: Object, paused: bool, done: str, changed: bool) -> None:
    edit = edits.set_paused(stored(**before), paused=paused)
    assert (edit.done, bool(edit.patch), edit.new_template) == (done, changed, False)


def test_a_partition_is_a_number_or_a_percentage() -> None:
    edit = edits.set_partition(stored(partition=3), "30%")
    assert edit.done == "partition 3 → 30%"
    assert edit.patch == {"spec": {"updateStrategy": {"rollingUpdate": {"partition": "30%"}}}}
    assert edits.set_partition(stored(), 0).patch == {}


def test_a_partition_by_number_warns_that_its_canary_grows() -> None:
    assert "every node that joins" in edits.set_partition(stored(), 3).warning
    for partition in (0, "30%"):
        assert not edits.set_partition(stored(partition=3), partition).warning


def test_the_native_kind_has_neither_pause_nor_partition() -> None:
    with pytest.raises(UserError, match="ds/agent is a native DaemonSet, which has no `paused`"):
        edits.set_paused(native(), paused=True)
    with pytest.raises(UserError, match="no `partition`"):
        edits.set_partition(native(), 3)


def test_nothing_rolls_out_by_itself_with_on_delete() -> None:
    found = stored()
    found["spec"]["updateStrategy"] = {"type": "OnDelete"}
    with pytest.raises(UserError, match=r"OnDelete.*nothing to pause"):
        edits.set_paused(found, paused=True)


def test_going_back_replaces_the_whole_template_and_drops_directives() -> None:
    template = {
        "$patch": "replace",
        "metadata": {"labels": {"app": "agent"}, "creationTimestamp": None},
        "spec": {"containers": [{"name": "a", "image": "a:0"}]},
    }
    edit = edits.go_back(stored(), json.dumps(template).encode(), number=3, cause="first")
    after = apply_merge_patch(stored(), edit.patch)["spec"]["template"]
    assert after == {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "a", "image": "a:0"}]},
    }
    assert (edit.done, edit.cause) == ("rolled back to revision 3", "first")


def test_going_back_to_what_is_there_changes_nothing() -> None:
    template = json.dumps(stored()["spec"]["template"]).encode()
    assert edits.go_back(stored(), template, number=1, cause="").patch == {}


values = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=2), values), st.dictionaries(st.text(max_size=2), values))
def test_a_difference_makes_the_one_object_equal_to_the_other(
    before: Object, after: Object
) -> None:
    assert apply_merge_patch(before, edits.merge_difference(before, after)) == after

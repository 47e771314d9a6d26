"""managedFields, compared with what a real API server wrote."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from everynode.apiserver.apply.managed_fields import Writer, track_update
from everynode.apiserver.schema.object_type import ObjectType
from tests.support.recorded_answers import GENERATION, TIME, steps

POD = "io.k8s.api.core.v1.Pod"

Object = dict[str, Any]


def is_no_apply(step: Object) -> bool:
    return step["op"] != "apply" and "after" in step


def as_sent(step: Object, before: Object | None) -> Object:
    """The object as it was when the server noted who changed what."""
    new: Object = copy.deepcopy(step["after"])
    for name in step.get("late", ()):
        del new["spec"][name]
    metadata = new["metadata"]
    body = step["body"]
    sent = body.get("metadata", {}).get("managedFields") if isinstance(body, dict) else None
    metadata.pop("managedFields", None)
    if sent is not None:
        metadata["managedFields"] = sent
    elif before is not None and "managedFields" in before["metadata"]:
        metadata["managedFields"] = before["metadata"]["managedFields"]
    if before is not None and GENERATION in metadata.get("annotations", {}):
        metadata["annotations"][GENERATION] = before["metadata"]["annotations"][GENERATION]
    return new


@pytest.mark.parametrize(("scenario", "step", "before"), steps(is_no_apply))
def test_writes_are_noted_as_by_the_real_server(
    scenario: Object, step: Object, before: Object | None
) -> None:
    result = track_update(
        before,
        as_sent(step, before),
        ObjectType(scenario["type"], scenario.get("schema")),
        Writer(step["manager"], scenario["apiVersion"], TIME, step.get("subresource", "")),
    )
    assert result["metadata"].get("managedFields") == step["after"]["metadata"].get("managedFields")


def pod(**spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "a:1"}], **spec},
    }


def tracked(old: Object | None, new: Object, *, manager: str = "m", time: str = TIME) -> Object:
    return track_update(old, new, ObjectType(POD), Writer(manager, "v1", time))


def entries(obj: Object) -> list[tuple[str, str]]:
    return [(e["manager"], e.get("time", "")) for e in obj["metadata"].get("managedFields", [])]


def test_a_write_that_changes_nothing_leaves_the_object_as_it_is() -> None:
    before = tracked(None, pod())
    assert tracked(before, before, manager="other", time="2027-01-01T00:00:00Z") is before


def test_time_moves_only_for_the_manager_that_changed_something() -> None:
    before = tracked(None, pod())
    later = {**before, "spec": {**before["spec"], "activeDeadlineSeconds": 5}}
    after = tracked(before, later, manager="other", time="2027-01-01T00:00:00Z")
    assert entries(after) == [("m", TIME), ("other", "2027-01-01T00:00:00Z")]


def test_neither_object_is_changed() -> None:
    old = tracked(None, pod())
    new = pod(nodeName="n")
    kept = copy.deepcopy((old, new))
    tracked(old, new)
    assert (old, new) == kept


def test_the_manager_that_empties_the_rules_of_a_role_owns_them() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    object_type = ObjectType("io.k8s.api.rbac.v1.Role")
    writer = Writer("first", "rbac.authorization.k8s.io/v1", TIME)
    before = track_update(None, {**role, "rules": rules}, object_type, writer)
    left = {key: value for key, value in before.items() if key != "rules"}
    after = track_update(before, left, object_type, writer._replace(manager="second"))
    assert entries(after) == [("second", TIME)]
    assert after["metadata"]["managedFields"][0]["fieldsV1"] == {"f:rules": {}}


def test_a_writer_without_a_name_is_called_unknown() -> None:
    assert entries(tracked(None, pod(), manager="")) == [("unknown", TIME)]


@pytest.mark.parametrize(
    "nonsense",
    [
        [{"operation": "Guess", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
        [{"operation": "Update", "fieldsType": "FieldsV1"}],
        [{"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV9"}],
        ["text"],
    ],
)
def test_managed_fields_that_make_no_sense_are_not_taken_over(nonsense: list[Any]) -> None:
    before = tracked(None, pod())
    sent = {**before, "metadata": {**before["metadata"], "managedFields": nonsense}}
    assert entries(tracked(before, sent)) == [("m", TIME)]

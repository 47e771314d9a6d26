from __future__ import annotations

import json

from everynode.api.daemonset import FieldError
from everynode.apiserver import errors


class Sets:
    group = "apps"
    kind = "DaemonSet"
    plural = "daemonsets"


def test_messages_name_the_resource_with_its_group() -> None:
    assert errors.not_found(Sets(), "x").message == 'daemonsets.apps "x" not found'
    taken = errors.already_exists(Sets(), "x", deleting=True)
    assert taken.message == 'object is being deleted: daemonsets.apps "x" already exists'
    assert errors.stale_resource_version(Sets(), "x").message.startswith(
        'Operation cannot be fulfilled on daemonsets.apps "x": the object has been modified'
    )


def test_every_fault_is_a_cause_and_equal_messages_are_reported_once() -> None:
    faults = [
        FieldError("spec.a", "Required value"),
        FieldError("spec.b", "Invalid value: 1: no"),
        FieldError("spec.b", "Invalid value: 1: no"),
    ]
    refusal = errors.invalid(Sets(), "x", faults)
    assert refusal.message == (
        'DaemonSet.apps "x" is invalid: [spec.a: Required value, spec.b: Invalid value: 1: no]'
    )
    assert refusal.details is not None
    assert [cause["reason"] for cause in refusal.details["causes"]] == [
        "FieldValueRequired",
        "FieldValueInvalid",
        "FieldValueInvalid",
    ]


def test_status_has_all_that_clients_read() -> None:
    response = errors.too_many_requests("later", seconds=3).response()
    assert response.headers["retry-after"] == "3"
    assert json.loads(response.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "later",
        "reason": "TooManyRequests",
        "details": {"retryAfterSeconds": 3},
        "code": 429,
    }

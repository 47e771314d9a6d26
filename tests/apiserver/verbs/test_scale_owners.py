from __future__ import annotations

from typing import Any

from everynode.apiserver.verbs.scale_owners import (
    REPLICAS_FIELD,
    transfer_replica_owners,
    with_replica_owners,
)

SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}}
MORE: dict[str, Any] = {"f:spec": {"f:minReadySeconds": {}, "f:replicas": {}}}
LESS: dict[str, Any] = {"f:spec": {"f:minReadySeconds": {}}}


def entry(manager: str, fields: Any, operation: str = "Apply", **more: str) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def scaler(manager: str, fields: Any = REPLICAS_FIELD, **more: str) -> dict[str, Any]:
    return entry(manager, fields, **{"apiVersion": "autoscaling/v1", **more})


def workload(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"managedFields": entries}}


def scale(*entries: dict[str, Any]) -> dict[str, Any]:
    return {**SCALE, "metadata": {"name": "d", "managedFields": entries}}


def owners(obj: dict[str, Any]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = obj["metadata"].get("managedFields", [])
    return listed


def test_scale_shows_only_owners_of_the_number_and_nothing_else_of_theirs() -> None:
    shown = with_replica_owners(
        workload(entry("a", MORE), entry("b", LESS), entry("c", MORE, "Update")), SCALE
    )
    assert owners(shown) == [scaler("a"), scaler("c", operation="Update")]


def test_scale_of_a_workload_without_owners_has_none() -> None:
    assert with_replica_owners({"apiVersion": "apps/v1", "metadata": {}}, SCALE) == SCALE


def test_owner_that_lost_the_number_keeps_the_rest() -> None:
    changed = transfer_replica_owners(
        workload(entry("a", MORE), entry("b", REPLICAS_FIELD)), scale(scaler("one"))
    )
    assert owners(changed) == [entry("a", LESS), entry("one", REPLICAS_FIELD)]


def test_owners_that_agree_on_the_number_share_it() -> None:
    changed = transfer_replica_owners(
        workload(entry("a", MORE), entry("c", MORE, "Update")),
        scale(scaler("a"), scaler("c", operation="Update"), scaler("one", subresource="scale")),
    )
    assert owners(changed) == [
        entry("a", MORE),
        entry("one", REPLICAS_FIELD, subresource="scale"),
        entry("c", MORE, "Update"),
    ]


def test_owner_is_as_old_as_its_latest_change() -> None:
    later = scaler("one", subresource="scale", time="2026-01-02T00:00:00Z")
    changed = transfer_replica_owners(
        workload(entry("one", REPLICAS_FIELD, subresource="scale")), scale(later)
    )
    assert [each["time"] for each in owners(changed)] == ["2026-01-02T00:00:00Z"]


def test_owner_of_anything_but_the_number_of_a_scale_owns_nothing_of_the_workload() -> None:
    named = scaler("one", {"f:metadata": {"f:labels": {"f:a": {}}}}, subresource="scale")
    assert owners(transfer_replica_owners(workload(entry("a", LESS)), scale(named))) == [
        entry("a", LESS)
    ]

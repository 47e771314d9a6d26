"""managedFields of the scale subresource: who owns spec.replicas, in a Scale and in its workload.

The workload stores the owners under its own API version; a Scale shows them under autoscaling/v1.
"""

from __future__ import annotations

from typing import Any, Final

from everynode.apiserver.apply import field_set, managed_fields
from everynode.apiserver.apply.field_set import EMPTY, FieldSet
from everynode.apiserver.apply.managed_fields import Entries, ManagedFieldsEntry

Object = dict[str, Any]

REPLICAS_FIELD: Final[FieldSet] = {"f:spec": {"f:replicas": EMPTY}}


def with_replica_owners(workload: Object, scale: Object) -> Object:
    """Return the scale with the managers that own spec.replicas of its workload."""
    owners = [
        entry._replace(
            owner=entry.owner._replace(api_version=scale["apiVersion"]), fields=REPLICAS_FIELD
        )
        for entry in _read_entries(workload).values()
        if _owns_replicas(entry)
    ]
    return managed_fields.set_entries(scale, {each.owner.identity: each for each in owners})


def keep_times(shown: Object, applied: Object) -> Object:
    """Return the applied scale, with the times of the shown one if nothing is written for it.

    What changes a Scale need not change its workload: labels, or a number of 0, which is left out.
    """
    before, after = _read_entries(shown), _read_entries(applied)
    owners = {key for key, entry in after.items() if _owns_replicas(entry)}
    if _replicas(shown) != _replicas(applied) or owners != {*before}:
        return applied
    return managed_fields.set_entries(applied, before)


def transfer_replica_owners(workload: Object, scale: Object) -> Object:
    """Return the workload with spec.replicas owned by the managers that own it in the scale."""
    left = {_owner_key(entry): entry for entry in _read_entries(scale).values()}
    out: Entries = {}
    for identity, entry in _read_entries(workload).items():
        if not _owns_replicas(entry):
            out[identity] = entry
            continue
        still = left.pop(_owner_key(entry), None)
        fields = entry.fields if still else field_set.difference(entry.fields, REPLICAS_FIELD)
        if fields:
            time = max(entry.time or "", still.time or "") if still else entry.time
            out[identity] = entry._replace(fields=fields, time=time or None)
    for entry in left.values():
        if _owns_replicas(entry):
            owner = entry.owner._replace(api_version=workload["apiVersion"])
            out[owner.identity] = ManagedFieldsEntry(owner, REPLICAS_FIELD, entry.time)
    return managed_fields.set_entries(workload, out)


def _replicas(scale: Object) -> Any:
    return (scale.get("spec") or {}).get("replicas", 0)


def _read_entries(obj: Object) -> Entries:
    return managed_fields.parse_entries(managed_fields.metadata_of(obj).get("managedFields")) or {}


def _owns_replicas(entry: ManagedFieldsEntry) -> bool:
    return bool(field_set.intersection(entry.fields, REPLICAS_FIELD))


def _owner_key(entry: ManagedFieldsEntry) -> tuple[str, str, str]:
    """Return what identifies a manager in both objects: all but the apiVersion."""
    return entry.owner.manager, entry.owner.operation, entry.owner.subresource

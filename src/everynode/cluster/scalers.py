"""Who says how many pods a workload wants: the owners of that number, as its scale has them."""

from __future__ import annotations

from typing import Any, Final

from everynode.cluster import field_set, managed_fields
from everynode.cluster.field_set import EMPTY, Tree
from everynode.cluster.managed_fields import Entries, Entry

Object = dict[str, Any]

NUMBER: Final[Tree] = {"f:spec": {"f:replicas": EMPTY}}


def show(workload: Object, scale: Object) -> Object:
    """The scale of a workload with those who own the number, and nothing else that they own."""
    owners = [
        entry._replace(owner=entry.owner._replace(api_version=scale["apiVersion"]), fields=NUMBER)
        for entry in _read(workload).values()
        if _has_number(entry)
    ]
    return managed_fields.with_entries(scale, {each.owner.identity: each for each in owners})


def take_over(workload: Object, scale: Object) -> Object:
    """The workload, its number owned by those who own that of the changed scale."""
    left = {_who(entry): entry for entry in _read(scale).values()}
    out: Entries = {}
    for identity, entry in _read(workload).items():
        if not _has_number(entry):
            out[identity] = entry
            continue
        still = left.pop(_who(entry), None)
        fields = entry.fields if still else field_set.difference(entry.fields, NUMBER)
        if fields:
            time = max(entry.time or "", still.time or "") if still else entry.time
            out[identity] = entry._replace(fields=fields, time=time or None)
    for entry in left.values():
        if _has_number(entry):
            owner = entry.owner._replace(api_version=workload["apiVersion"])
            out[owner.identity] = Entry(owner, NUMBER, entry.time)
    return managed_fields.with_entries(workload, out)


def _read(obj: Object) -> Entries:
    return managed_fields.read(managed_fields.metadata_of(obj).get("managedFields")) or {}


def _has_number(entry: Entry) -> bool:
    return bool(field_set.intersection(entry.fields, NUMBER))


def _who(entry: Entry) -> tuple[str, str, str]:
    """The owner, whose entry is of one version here and of another there."""
    return entry.owner.manager, entry.owner.operation, entry.owner.subresource

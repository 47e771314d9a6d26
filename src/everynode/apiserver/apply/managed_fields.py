"""managedFields: which manager owns which fields of an object, and how a write changes that."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from everynode.apiserver.apply import field_set
from everynode.apiserver.apply.diff import compare
from everynode.apiserver.apply.field_set import EMPTY, FieldSet
from everynode.apiserver.schema.field_validation import convert_object
from everynode.apiserver.schema.object_type import ObjectType
from everynode.apiserver.schema.type_tree import TypeNode

Object = dict[str, Any]

APPLY: Final = "Apply"
UPDATE: Final = "Update"

# Update entries beyond this number are merged into one, the oldest first.
MAX_UPDATERS: Final = 10
ANCIENT_CHANGES: Final = "ancient-changes"
_UNKNOWN_MANAGER: Final = "unknown"  # of a client that names neither itself nor a manager

# Fields that no manager owns: the system sets them. The node `metadata` itself is not owned, too.
_SYSTEM_FIELDS: Final[FieldSet] = {
    "f:apiVersion": EMPTY,
    "f:kind": EMPTY,
    "f:metadata": {
        ".": EMPTY,
        **{
            f"f:{name}": EMPTY
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        },
    },
}

# What a write at the other endpoint cannot change, and so cannot own.
_STATUS_FIELDS: Final[FieldSet] = {"f:status": EMPTY}
_SPEC_FIELDS: Final[FieldSet] = {"f:spec": EMPTY}


class ManagerIdentifier(NamedTuple):
    """The manager of an entry; for Apply entries the apiVersion does not tell managers apart."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identity(self) -> str:
        """A string that is equal for equal managers and sorts as Kubernetes sorts them."""
        parts = [("manager", self.manager), ("operation", self.operation)]
        if self.operation == UPDATE:
            parts.append(("apiVersion", self.api_version))
        if self.subresource:
            parts.append(("subresource", self.subresource))
        return msgspec.json.encode(dict(parts)).decode()


class Writer(NamedTuple):
    """The client of a write, the endpoint at which it writes, and when."""

    manager: str  # its field manager
    api_version: str
    time: str  # as in objects
    subresource: str = ""

    def identifier(self, operation: str) -> ManagerIdentifier:
        """The manager that an entry of this write names."""
        return ManagerIdentifier(self.manager, operation, self.api_version, self.subresource)


class ManagedFieldsEntry(NamedTuple):
    """One entry: a manager, the fields it owns, and when it last changed one of them."""

    owner: ManagerIdentifier
    fields: FieldSet
    time: str | None

    @property
    def applied(self) -> bool:
        """Whether this is an Apply entry, not an Update entry."""
        return self.owner.operation == APPLY


Entries = dict[str, ManagedFieldsEntry]  # by ManagerIdentifier.identity


def parse_entries(objects: Any) -> Entries | None:
    """Parse a managedFields list; None if one of its entries is invalid."""
    entries: Entries = {}
    for raw in objects or ():
        if not isinstance(raw, dict) or raw.get("operation") not in (APPLY, UPDATE):
            return None
        version = raw.get("apiVersion")
        fields = raw.get("fieldsV1", EMPTY)
        if not version or raw.get("fieldsType") != "FieldsV1":
            return None
        if not field_set.is_field_set(fields):
            return None
        owner = ManagerIdentifier(
            raw.get("manager", ""), raw["operation"], version, raw.get("subresource", "")
        )
        entries[owner.identity] = ManagedFieldsEntry(owner, fields, raw.get("time"))
    return entries


def format_entries(entries: Entries) -> list[Object]:
    """Format the entries as metadata.managedFields: Apply first, then by time and manager."""
    listed = sorted(
        entries.values(), key=lambda entry: (entry.owner.operation, entry.time or "", entry.owner)
    )
    return [_format_entry(entry) for entry in listed]


def _format_entry(entry: ManagedFieldsEntry) -> Object:
    owner = entry.owner
    out: Object = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owner.api_version,
    }
    if entry.time is not None:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = entry.fields
    if owner.subresource:
        out["subresource"] = owner.subresource
    return out


def metadata_of(obj: Object | None) -> Object:
    """Return the metadata of an object, empty if it has none."""
    return (obj.get("metadata") or EMPTY) if obj else EMPTY


def set_entries(obj: Object, entries: Entries) -> Object:
    """Return a shallow copy of the object with these managedFields."""
    metadata = {**metadata_of(obj)}
    if entries:
        metadata["managedFields"] = format_entries(entries)
    else:
        metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}


def drop_managed_fields(obj: Object) -> Object:
    """Return a shallow copy of the object without managedFields."""
    metadata = metadata_of(obj)
    if "managedFields" not in metadata:
        return obj
    return {
        **obj,
        "metadata": {key: value for key, value in metadata.items() if key != "managedFields"},
    }


def drop_system_fields(tree: FieldSet) -> FieldSet:
    """Return the field set without the fields that the system sets."""
    return field_set.difference(tree, _SYSTEM_FIELDS)


def reset_fields(type_node: TypeNode, subresource: str) -> FieldSet:
    """Return the fields that a write at this endpoint cannot change, and so cannot own.

    Types with a status have it written at the status endpoint only.
    """
    if "status" not in type_node.fields:
        return EMPTY
    return _SPEC_FIELDS if subresource == "status" else _STATUS_FIELDS


def track_update(
    old: Object | None,
    new: Object,
    object_type: ObjectType,
    writer: Writer,
) -> Object:
    """Return the new object with managedFields that record who changed what from old to new.

    Changes of the status count at the status endpoint only. Clients may rewrite managedFields,
    omit them, or clear them with an empty list; a cleared object is not tracked any more.
    """
    entries = _initial_entries(old, new, writer.subresource)
    if not entries and old is not None:
        return set_entries(new, {})
    if not writer.manager:
        writer = writer._replace(manager=_UNKNOWN_MANAGER)
    before = drop_managed_fields(old) if old is not None else _zero_object(object_type.name)
    after = drop_managed_fields(new)
    changed = update_entries(before, after, entries, object_type.tree, writer)
    if changed is None and _same_entries(old, new):
        return new
    return set_entries(new, entries if changed is None else changed)


@cache
def _zero_object(type_name: str | None) -> Object:
    """Return an object of the type with nothing set; the caller must not change it."""
    return {} if type_name is None else convert_object({}, ObjectType(type_name))[0]


def _same_entries(old: Object | None, new: Object) -> bool:
    before = metadata_of(old).get("managedFields")
    return before is not None and metadata_of(new).get("managedFields") == before


def _initial_entries(old: Object | None, new: Object, subresource: str) -> Entries:
    live = metadata_of(old).get("managedFields")
    if not subresource:
        sent = metadata_of(new).get("managedFields")
        if sent == [] or sent == [{}]:
            return {}
        if sent and sent is not live:
            entries = parse_entries(sent)
            if entries:
                return entries
    return parse_entries(live) or {}


def update_entries(
    old: Object,
    new: Object,
    entries: Entries,
    type_node: TypeNode,
    writer: Writer,
) -> Entries | None:
    """Return the entries after a write, or None if the write changed no field that can be owned."""
    change = compare(old, new, type_node)
    if not change.changed and not change.removed:
        return None
    reset = reset_fields(type_node, writer.subresource)
    changed = field_set.recursive_difference(change.changed, reset) if reset else change.changed
    removed = field_set.recursive_difference(change.removed, reset) if reset else change.removed
    lost_fields = field_set.union(changed, removed)
    out: Entries = {}
    for identity, entry in entries.items():
        left = field_set.difference(entry.fields, lost_fields)
        if left:
            out[identity] = entry._replace(fields=left)
    own = drop_system_fields(changed)
    if own:
        owner = writer.identifier(UPDATE)
        identity = owner.identity
        previous = out.get(identity)
        fields = own if previous is None else field_set.union(own, previous.fields)
        out[identity] = ManagedFieldsEntry(owner, fields, writer.time)
    return _cap_updaters(out)


def _cap_updaters(entries: Entries) -> Entries:
    """Merge the oldest Update entries, per version, until at most MAX_UPDATERS are left."""
    updaters = [identity for identity, entry in entries.items() if not entry.applied]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return entries
    updaters.sort(key=lambda identity: (entries[identity].time or "", identity))
    out = dict(entries)
    first: dict[str, str] = {}
    for identity in updaters:
        entry = out[identity]
        version = entry.owner.api_version
        if version not in first:
            first[version] = identity
            continue
        bucket = ManagerIdentifier(ANCIENT_CHANGES, UPDATE, version, "")
        merged = out.get(bucket.identity) or out.pop(first[version])
        out.pop(identity)
        fields = field_set.union(entry.fields, merged.fields)
        out[bucket.identity] = ManagedFieldsEntry(bucket, fields, entry.time)
        surplus -= 1
        if surplus == 0:
            break
    return out

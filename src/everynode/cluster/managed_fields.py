"""Who manages which fields of an object: the entries of metadata.managedFields and their upkeep."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from everynode.cluster import field_set, strict
from everynode.cluster.comparison import compare
from everynode.cluster.field_set import EMPTY, Tree
from everynode.cluster.shape import Shape, custom_shape, shape_of

Object = dict[str, Any]

APPLY: Final = "Apply"
UPDATE: Final = "Update"

# More updaters than this are folded into one, the longest unseen first.
MAX_UPDATERS: Final = 10
OLD_UPDATES: Final = "ancient-changes"

# What belongs to the system and to nobody else; the node `metadata` itself is nobody's either.
_SYSTEM: Final[Tree] = {
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

# What a write at each endpoint cannot change, and so cannot come to own.
_STATUS: Final[Tree] = {"f:status": EMPTY}
_ALL_BUT_STATUS: Final[Tree] = {"f:spec": EMPTY}


class Owner(NamedTuple):
    """Who an entry belongs to; appliers are one owner whatever version they speak."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identity(self) -> str:
        """A text that is the same for the same owner, and sorts as Kubernetes sorts owners."""
        parts = [("manager", self.manager), ("operation", self.operation)]
        if self.operation == UPDATE:
            parts.append(("apiVersion", self.api_version))
        if self.subresource:
            parts.append(("subresource", self.subresource))
        return msgspec.json.encode(dict(parts)).decode()


class Entry(NamedTuple):
    """One owner, the fields it owns, and when it last changed any."""

    owner: Owner
    fields: Tree
    time: str | None

    @property
    def applied(self) -> bool:
        """Whether the fields were applied rather than updated."""
        return self.owner.operation == APPLY


Entries = dict[str, Entry]  # by identity of the owner


def shape_for(type_name: str | None, schema: Mapping[str, Any] | None) -> Shape:
    """The shape of a kind of the table, of a custom kind, or of anything."""
    return custom_shape(schema) if type_name is None else shape_of(type_name)


def read(objects: Any) -> Entries | None:
    """The entries of a managedFields list, or None if one of them makes no sense."""
    entries: Entries = {}
    for raw in objects or ():
        if not isinstance(raw, dict) or raw.get("operation") not in (APPLY, UPDATE):
            return None
        version = raw.get("apiVersion")
        fields = raw.get("fieldsV1", EMPTY)
        if not version or raw.get("fieldsType") != "FieldsV1" or not isinstance(fields, dict):
            return None
        owner = Owner(raw.get("manager", ""), raw["operation"], version, raw.get("subresource", ""))
        entries[owner.identity] = Entry(owner, fields, raw.get("time"))
    return entries


def write(entries: Entries) -> list[Object]:
    """The entries as metadata.managedFields: appliers first, then by time and name."""
    listed = sorted(
        entries.values(), key=lambda entry: (entry.owner.operation, entry.time or "", entry.owner)
    )
    return [_written(entry) for entry in listed]


def _written(entry: Entry) -> Object:
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
    """The metadata of an object; empty where there is none."""
    return (obj.get("metadata") or EMPTY) if obj else EMPTY


def with_entries(obj: Object, entries: Entries) -> Object:
    """A shallow copy of the object that carries these entries."""
    metadata = {**metadata_of(obj)}
    if entries:
        metadata["managedFields"] = write(entries)
    else:
        metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}


def bare(obj: Object) -> Object:
    """A shallow copy of the object without managedFields."""
    metadata = metadata_of(obj)
    if "managedFields" not in metadata:
        return obj
    return {
        **obj,
        "metadata": {key: value for key, value in metadata.items() if key != "managedFields"},
    }


def strip(tree: Tree) -> Tree:
    """The set without what belongs to the system."""
    return field_set.difference(tree, _SYSTEM)


def reset_fields(shape: Shape, subresource: str, *, status_apart: bool | None = None) -> Tree:
    """What a write at this endpoint leaves as it was.

    Whether the status is written apart from the rest is guessed from the type, unless told.
    """
    apart = "status" in shape.fields if status_apart is None else status_apart
    if not apart:
        return EMPTY
    return _ALL_BUT_STATUS if subresource == "status" else _STATUS


def track(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    api_version: str,
    subresource: str = "",
    time: str,
    type_name: str | None,
    schema: Mapping[str, Any] | None = None,
    status_apart: bool | None = None,
) -> Object:
    """The new object with managedFields that say who changed what from old to new.

    The status counts as changed only at its own endpoint. Clients may rewrite managedFields, leave
    them out, or clear them with an empty list; an object once cleared stays untracked.
    """
    entries = _starting_entries(old, new, subresource)
    if not entries and old is not None:
        return with_entries(new, {})
    owner = Owner(manager or "unknown", UPDATE, api_version, subresource)
    shape = shape_for(type_name, schema)
    reset = reset_fields(shape, subresource, status_apart=status_apart)
    before = bare(old) if old is not None else _empty(type_name)
    changed = update(before, bare(new), entries, owner, shape=shape, reset=reset, time=time)
    if changed is None and _same_entries(old, new):
        return new
    return with_entries(new, entries if changed is None else changed)


@cache
def _empty(type_name: str | None) -> Object:
    """What an object of a kind is before anybody has said anything; it must not be changed."""
    return {} if type_name is None else strict.check({}, type_name=type_name)[0]


def _same_entries(old: Object | None, new: Object) -> bool:
    before = metadata_of(old).get("managedFields")
    return before is not None and metadata_of(new).get("managedFields") == before


def _starting_entries(old: Object | None, new: Object, subresource: str) -> Entries:
    live = metadata_of(old).get("managedFields")
    if not subresource:
        sent = metadata_of(new).get("managedFields")
        if sent == [] or sent == [{}]:
            return {}
        if sent and sent is not live:
            entries = read(sent)
            if entries:
                return entries
    return read(live) or {}


def update(
    old: Object,
    new: Object,
    entries: Entries,
    owner: Owner,
    *,
    shape: Shape,
    reset: Tree,
    time: str,
) -> Entries | None:
    """The entries after a write, or None if the write changed no field that anyone can own."""
    change = compare(old, new, shape)
    if not change.touched and not change.removed:
        return None
    touched = field_set.without(change.touched, reset) if reset else change.touched
    removed = field_set.without(change.removed, reset) if reset else change.removed
    gone = field_set.union(touched, removed)
    out: Entries = {}
    for identity, entry in entries.items():
        left = field_set.difference(entry.fields, gone)
        if left:
            out[identity] = entry._replace(fields=left)
    own = strip(touched)
    if own:
        identity = owner.identity
        previous = out.get(identity)
        fields = own if previous is None else field_set.union(own, previous.fields)
        out[identity] = Entry(owner, fields, time)
    return _fold(out)


def _fold(entries: Entries) -> Entries:
    """At most MAX_UPDATERS updaters: the oldest are merged into one entry per version."""
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
        bucket = Owner(OLD_UPDATES, UPDATE, version, "")
        merged = out.get(bucket.identity) or out.pop(first[version])
        out.pop(identity)
        fields = field_set.union(entry.fields, merged.fields)
        out[bucket.identity] = Entry(bucket, fields, entry.time)
        surplus -= 1
        if surplus == 0:
            break
    return out

"""Server-side apply: merge an applied configuration into the live object, with field ownership."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.api.keys import LAST_APPLIED
from everynode.apiserver.apply import field_set, managed_fields
from everynode.apiserver.apply import merge as merging
from everynode.apiserver.apply.diff import compare
from everynode.apiserver.apply.diff import to_field_set as mentioned
from everynode.apiserver.apply.field_set import EMPTY, FieldSet
from everynode.apiserver.apply.managed_fields import (
    APPLY,
    UPDATE,
    Entries,
    ManagedFieldsEntry,
    ManagerIdentifier,
    Writer,
)
from everynode.apiserver.errors import StatusError
from everynode.apiserver.schema import field_validation
from everynode.apiserver.schema.go_format import quote
from everynode.apiserver.schema.object_type import CUSTOM, ObjectType
from everynode.apiserver.schema.type_tree import TypeNode

Object = dict[str, Any]

# The manager that may take over the fields of its own earlier client-side applies.
KUBECTL: Final = "kubectl"
BEFORE_FIRST_APPLY: Final = "before-first-apply"


class ApplyError(StatusError):
    """An applied configuration that is not an object of its type."""


class ApplyConflict(StatusError):
    """The apply would change fields of other managers; `causes` names each field and manager."""

    def __init__(self, conflicts: list[tuple[ManagedFieldsEntry, str]]) -> None:
        self.conflicts = conflicts
        self.causes = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {_describe_manager(entry)}",
                "field": path,
            }
            for entry, path in conflicts
        ]
        message = _conflict_message(conflicts)
        super().__init__(409, "Conflict", message, details={"causes": self.causes})


def _describe_manager(entry: ManagedFieldsEntry) -> str:
    owner = entry.owner
    text = quote(owner.manager)
    if owner.subresource:
        text += f" with subresource {quote(owner.subresource)}"
    if owner.operation == UPDATE:
        text += f" using {owner.api_version}"
    return text


def _conflict_message(conflicts: list[tuple[ManagedFieldsEntry, str]]) -> str:
    if len(conflicts) == 1:
        entry, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {_describe_manager(entry)}: {path}"
    lines: list[str] = []
    last: ManagerIdentifier | None = None
    for entry, path in conflicts:
        if entry.owner != last:
            lines.append(f"conflicts with {_describe_manager(entry)}:")
            last = entry.owner
        lines.append(f"- {path}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def apply(
    current: Object | None,
    applied: Object,
    object_type: ObjectType,
    writer: Writer,
    *,
    force: bool = False,
) -> Object:
    """Return the object after the apply, with managedFields; neither argument is changed.

    Raises ApplyConflict if other managers own fields that would change, unless `force` is set, and
    ApplyError if the applied configuration is not an object of its type.
    """
    type_node = object_type.tree
    _check(applied, type_node, api_version=writer.api_version, type_name=object_type.name)
    live = current or {}
    entries = (
        managed_fields.parse_entries(managed_fields.metadata_of(live).get("managedFields")) or {}
    )
    live = managed_fields.drop_managed_fields(live)
    if not entries and current is not None:
        earlier = writer._replace(manager=BEFORE_FIRST_APPLY)
        entries = managed_fields.update_entries({}, live, {}, type_node, earlier) or {}
    step = _ApplyOperation(live, applied, entries, type_node, writer)
    merged = step.run(force=force)
    result = _update_last_applied(merged, applied) if writer.manager == KUBECTL else merged
    if object_type != CUSTOM:
        result = _convert_to_type(result, applied, object_type)
    return managed_fields.set_entries(result, step.entries_with_time(merged, writer.time))


class _ApplyOperation:
    """One apply: merges the objects and updates the managedFields entries."""

    def __init__(
        self,
        live: Object,
        applied: Object,
        entries: Entries,
        type_node: TypeNode,
        writer: Writer,
    ) -> None:
        self.live = live
        self.applied = applied
        self.entries = entries
        self.owner = writer.identifier(APPLY)
        self.type_node = type_node
        self.reset = managed_fields.reset_fields(type_node, writer.subresource)

    def run(self, *, force: bool) -> Object:
        """Return the merged object, and leave the new entries in `entries`."""
        type_node, identity = self.type_node, self.owner.identity
        last = self.entries.get(identity)
        fields = field_set.recursive_difference(mentioned(self.applied, type_node), self.reset)
        merged: Object = merging.merge(self.live, self.applied, type_node)
        entries = {
            **self.entries,
            identity: ManagedFieldsEntry(self.owner, fields, last and last.time),
        }
        if last is not None and last.fields:
            merged = _prune(merged, last.fields, entries, type_node)
        self.entries = self._release_fields(merged, entries, force=force)
        return merged

    def _release_fields(self, merged: Object, entries: Entries, *, force: bool) -> Entries:
        """Take the changed fields from the other managers' entries; raises ApplyConflict."""
        reset = self.reset
        change = compare(self.live, merged, self.type_node)
        changed = field_set.recursive_difference(change.changed, reset)
        lost_fields = field_set.union(
            changed, field_set.recursive_difference(change.removed, reset)
        )
        identity = self.owner.identity
        conflicts: list[tuple[ManagedFieldsEntry, str]] = []
        out: Entries = {}
        for key in sorted(entries):
            entry = entries[key]
            fields = (
                managed_fields.drop_system_fields(entry.fields) if key == identity else entry.fields
            )
            if key != identity:
                lost = field_set.intersection(fields, changed)
                conflicts += [(entry, path) for path in field_set.paths(lost)]
                fields = field_set.difference(fields, lost_fields)
            if fields:
                out[key] = entry._replace(fields=fields)
        if conflicts and not force:
            conflicts = self._drop_own_client_side_conflicts(conflicts)
            if conflicts:
                raise ApplyConflict(conflicts)
        return out

    def _drop_own_client_side_conflicts(
        self, conflicts: list[tuple[ManagedFieldsEntry, str]]
    ) -> list[tuple[ManagedFieldsEntry, str]]:
        """Drop kubectl's conflicts with the fields of its own earlier client-side apply."""
        if self.owner.manager != KUBECTL:
            return conflicts
        allowed = _last_applied_paths(self.live, self.owner.api_version, self.type_node)
        return [conflict for conflict in conflicts if conflict[1] not in allowed]

    def entries_with_time(self, merged: Object, time: str) -> Entries:
        """Return the entries, with a new time for the applier if the object changed."""
        identity = self.owner.identity
        own = self.entries.get(identity)
        if own is None or merged == self.live:
            return self.entries
        return {**self.entries, identity: own._replace(time=time)}


def _prune(merged: Object, last: FieldSet, entries: Entries, type_node: TypeNode) -> Object:
    """Remove what the manager applied last time, not this time, and no other manager owns."""

    def full(tree: FieldSet) -> FieldSet:
        return field_set.ensure_named_fields(tree, type_node)

    last = full(last)
    pruned = merging.remove_fields(merged, last, type_node) or {}
    owned: FieldSet = {}
    for key in sorted(entries):
        owned = field_set.union(owned, entries[key].fields)
    everything = full(mentioned(merged, type_node))
    kept = field_set.union(full(mentioned(pruned, type_node)), full(owned))
    pruned = merging.remove_fields(merged, field_set.difference(everything, kept), type_node) or {}
    dropped = field_set.difference(everything, full(mentioned(pruned, type_node)))
    final = merging.remove_fields(merged, field_set.intersection(dropped, last), type_node)
    return _drop_emptied(final or {}, merged)


def _drop_emptied(pruned: Object, merged: Object) -> Object:
    """Drop the maps and lists that pruning has emptied."""
    out: Object = {}
    for key, value in pruned.items():
        before = merged[key]
        if value is None and before is not None:
            continue
        inside = isinstance(value, dict) and value is not before
        out[key] = _drop_emptied(value, before) if inside else value
    return out


def _last_applied_paths(live: Object, api_version: str, type_node: TypeNode) -> frozenset[str]:
    """Return the paths of the last-applied annotation whose values are still the live ones."""
    text = (managed_fields.metadata_of(live).get("annotations") or EMPTY).get(LAST_APPLIED)
    if not text:
        return frozenset()
    try:
        past = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return frozenset()
    if past.get("apiVersion") != api_version or merging.validation_errors(past, type_node):
        return frozenset()
    change = compare(past, live, type_node)
    lost_fields = field_set.union(change.changed, change.removed)
    return frozenset(field_set.paths(field_set.difference(mentioned(past, type_node), lost_fields)))


def _update_last_applied(result: Object, applied: Object) -> Object:
    """Update the last-applied annotation, if an earlier client-side apply left one."""
    metadata = managed_fields.metadata_of(result)
    annotations = metadata.get("annotations") or EMPTY
    if not annotations.get(LAST_APPLIED):
        return result
    text = msgspec.json.encode(_drop_last_applied(applied), order="sorted").decode() + "\n"
    annotations = {**annotations, LAST_APPLIED: text}
    return {**result, "metadata": {**metadata, "annotations": annotations}}


def _drop_last_applied(applied: Object) -> Object:
    metadata = managed_fields.metadata_of(applied)
    annotations = metadata.get("annotations") or EMPTY
    if LAST_APPLIED not in annotations:
        return applied
    kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**applied, "metadata": {**metadata, "annotations": kept}}


def _convert_to_type(result: Object, applied: Object, object_type: ObjectType) -> Object:
    """Convert the result to its type: drops nulls and adds fields that are always present.

    A custom resource is pruned: apply merges objects without properties as untyped maps, but they
    are stored empty.
    """
    try:
        return field_validation.convert_object(result, object_type)[0]
    except field_validation.BodyTypeError as error:
        kind = _format_gvk(applied)
        why = f"unable to convert unstructured object to {kind}: {error}"
        about = f"failed to convert new object ({_describe_object(applied)}) to proper version"
        raise ApplyError(500, "", f"{about}: {why}") from None


def _describe_object(applied: Object) -> str:
    metadata = applied.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    return f"{names.get('namespace', '')}/{names.get('name', '')}; {_format_gvk(applied)}"


def _format_gvk(applied: Object) -> str:
    """Format group, version and kind as kube-apiserver does."""
    version = str(applied.get("apiVersion", ""))
    return f"{version if '/' in version else f'/{version}'}, Kind={applied.get('kind', '')}"


def _check(
    applied: Object, type_node: TypeNode, *, api_version: str, type_name: str | None
) -> None:
    version, kind = applied.get("apiVersion", ""), applied.get("kind", "")
    kinds = [known.kind for known in types.load()[type_name].kinds] if type_name else [kind]
    if version != api_version or kind not in kinds:
        raise ApplyError(400, "BadRequest", f"invalid object type: {_format_gvk(applied)}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise ApplyError(400, "BadRequest", "metadata.managedFields must be nil")
    faults = merging.validation_errors(applied, type_node)
    if faults:
        text = faults[0] if len(faults) == 1 else "errors:\n  " + "\n  ".join(faults)
        message = f"failed to create typed patch object ({_describe_object(applied)}): {text}"
        raise ApplyError(500, "", message)

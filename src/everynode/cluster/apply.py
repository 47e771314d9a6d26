"""Server-side apply: what an object becomes when a manager states the fields it cares for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.cluster import field_set, managed_fields, strict
from everynode.cluster import merge as merging
from everynode.cluster.comparison import compare
from everynode.cluster.comparison import field_set as mentioned
from everynode.cluster.errors import Refusal
from everynode.cluster.field_set import EMPTY, Tree
from everynode.cluster.gotext import quote
from everynode.cluster.managed_fields import APPLY, UPDATE, Entries, Entry, Owner
from everynode.cluster.shape import Shape

Object = dict[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# The manager whose client-side past is taken into account.
KUBECTL: Final = "kubectl"
BEFORE_FIRST_APPLY: Final = "before-first-apply"


class ApplyError(Refusal):
    """An applied object that makes no sense for its kind."""


class ApplyConflict(Refusal):
    """Fields that others own would change; `causes` names each field and its owner."""

    def __init__(self, conflicts: list[tuple[Entry, str]]) -> None:
        self.conflicts = conflicts
        self.causes = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {_shown(entry)}",
                "field": path,
            }
            for entry, path in conflicts
        ]
        message = _conflict_message(conflicts)
        super().__init__(409, "Conflict", message, details={"causes": self.causes})


def _shown(entry: Entry) -> str:
    owner = entry.owner
    text = quote(owner.manager)
    if owner.subresource:
        text += f" with subresource {quote(owner.subresource)}"
    if owner.operation == UPDATE:
        text += f" using {owner.api_version}"
    return text


def _conflict_message(conflicts: list[tuple[Entry, str]]) -> str:
    if len(conflicts) == 1:
        entry, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {_shown(entry)}: {path}"
    lines: list[str] = []
    last: Owner | None = None
    for entry, path in conflicts:
        if entry.owner != last:
            lines.append(f"conflicts with {_shown(entry)}:")
            last = entry.owner
        lines.append(f"- {path}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def apply(
    current: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool = False,
    api_version: str,
    type_name: str | None,
    subresource: str = "",
    time: str,
    schema: Mapping[str, Any] | None = None,
    status_apart: bool | None = None,
) -> Object:
    """The object after the apply, with its managedFields; neither argument is changed.

    Raises ApplyConflict if others own what would change, unless forced, and ApplyError if the
    applied object does not fit its kind.
    """
    shape = managed_fields.shape_for(type_name, schema)
    _check(applied, shape, api_version=api_version, type_name=type_name)
    live = current or {}
    entries = managed_fields.read(managed_fields.metadata_of(live).get("managedFields")) or {}
    live = managed_fields.bare(live)
    reset = managed_fields.reset_fields(shape, subresource, status_apart=status_apart)
    if not entries and current is not None:
        first = Owner(BEFORE_FIRST_APPLY, UPDATE, api_version, subresource)
        entries = (
            managed_fields.update({}, live, {}, first, shape=shape, reset=reset, time=time) or {}
        )
    owner = Owner(manager, APPLY, api_version, subresource)
    step = _Step(live, applied, entries, owner, shape, reset)
    merged = step.run(force=force)
    result = _with_last_applied(merged, applied) if manager == KUBECTL else merged
    if type_name is not None:
        result = _as_kind(result, applied, type_name)
    return managed_fields.with_entries(result, step.entries_at(merged, time))


class _Step:
    """One apply on its way: the objects, the owners, and what becomes of both."""

    def __init__(
        self,
        live: Object,
        applied: Object,
        entries: Entries,
        owner: Owner,
        shape: Shape,
        reset: Tree,
    ) -> None:
        self.live = live
        self.applied = applied
        self.entries = entries
        self.owner = owner
        self.shape = shape
        self.reset = reset

    def run(self, *, force: bool) -> Object:
        """The merged object; the entries are left as they are after the apply."""
        shape, identity = self.shape, self.owner.identity
        last = self.entries.get(identity)
        fields = field_set.without(mentioned(self.applied, shape), self.reset)
        merged: Object = merging.merge(self.live, self.applied, shape)
        entries = {**self.entries, identity: Entry(self.owner, fields, last and last.time)}
        if last is not None and last.fields:
            merged = _prune(merged, last.fields, entries, shape)
        self.entries = self._give_way(merged, entries, force=force)
        return merged

    def _give_way(self, merged: Object, entries: Entries, *, force: bool) -> Entries:
        """The entries once the others have lost what changed; raises ApplyConflict."""
        reset = self.reset
        change = compare(self.live, merged, self.shape)
        touched = field_set.without(change.touched, reset)
        gone = field_set.union(touched, field_set.without(change.removed, reset))
        identity = self.owner.identity
        conflicts: list[tuple[Entry, str]] = []
        out: Entries = {}
        for key in sorted(entries):
            entry = entries[key]
            fields = managed_fields.strip(entry.fields) if key == identity else entry.fields
            if key != identity:
                lost = field_set.intersection(fields, touched)
                conflicts += [(entry, path) for path in field_set.paths(lost)]
                fields = field_set.difference(fields, gone)
            if fields:
                out[key] = entry._replace(fields=fields)
        if conflicts and not force:
            conflicts = self._without_own_past(conflicts)
            if conflicts:
                raise ApplyConflict(conflicts)
        return out

    def _without_own_past(self, conflicts: list[tuple[Entry, str]]) -> list[tuple[Entry, str]]:
        """The conflicts that kubectl did not cause itself when it applied on the client's side."""
        if self.owner.manager != KUBECTL:
            return conflicts
        allowed = _last_applied_paths(self.live, self.owner.api_version, self.shape)
        return [conflict for conflict in conflicts if conflict[1] not in allowed]

    def entries_at(self, merged: Object, time: str) -> Entries:
        """The entries, with a new time for the applier if the object changed."""
        identity = self.owner.identity
        own = self.entries.get(identity)
        if own is None or merged == self.live:
            return self.entries
        return {**self.entries, identity: own._replace(time=time)}


def _prune(merged: Object, last: Tree, entries: Entries, shape: Shape) -> Object:
    """Take away what the manager applied last time, not this time, and nobody else owns."""

    def full(tree: Tree) -> Tree:
        return field_set.with_named_fields(tree, shape)

    last = full(last)
    pruned = merging.remove(merged, last, shape) or {}
    owned: Tree = {}
    for key in sorted(entries):
        owned = field_set.union(owned, entries[key].fields)
    everything = full(mentioned(merged, shape))
    kept = field_set.union(full(mentioned(pruned, shape)), full(owned))
    pruned = merging.remove(merged, field_set.difference(everything, kept), shape) or {}
    dropped = field_set.difference(everything, full(mentioned(pruned, shape)))
    final = merging.remove(merged, field_set.intersection(dropped, last), shape)
    return _without_emptied(final or {}, merged)


def _without_emptied(pruned: Object, merged: Object) -> Object:
    """The pruned object without the maps and lists of which nothing is left."""
    out: Object = {}
    for key, value in pruned.items():
        before = merged[key]
        if value is None and before is not None:
            continue
        inside = isinstance(value, dict) and value is not before
        out[key] = _without_emptied(value, before) if inside else value
    return out


def _last_applied_paths(live: Object, api_version: str, shape: Shape) -> frozenset[str]:
    """What the annotation of a client-side apply says that is still so."""
    text = (managed_fields.metadata_of(live).get("annotations") or EMPTY).get(LAST_APPLIED)
    if not text:
        return frozenset()
    try:
        past = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return frozenset()
    if past.get("apiVersion") != api_version or merging.faults(past, shape):
        return frozenset()
    change = compare(past, live, shape)
    gone = field_set.union(change.touched, change.removed)
    return frozenset(field_set.paths(field_set.difference(mentioned(past, shape), gone)))


def _with_last_applied(result: Object, applied: Object) -> Object:
    """Keep the annotation of an earlier client-side apply up to date."""
    metadata = managed_fields.metadata_of(result)
    annotations = metadata.get("annotations") or EMPTY
    if not annotations.get(LAST_APPLIED):
        return result
    text = msgspec.json.encode(_without_annotation(applied), order="sorted").decode() + "\n"
    annotations = {**annotations, LAST_APPLIED: text}
    return {**result, "metadata": {**metadata, "annotations": annotations}}


def _without_annotation(applied: Object) -> Object:
    metadata = managed_fields.metadata_of(applied)
    annotations = metadata.get("annotations") or EMPTY
    if LAST_APPLIED not in annotations:
        return applied
    kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**applied, "metadata": {**metadata, "annotations": kept}}


def _as_kind(result: Object, applied: Object, type_name: str) -> Object:
    """The object as its kind has it: without nulls, and with the parts that are always there."""
    try:
        return strict.check(result, type_name=type_name)[0]
    except strict.DecodeError as error:
        kind = _kind_of(applied)
        why = f"unable to convert unstructured object to {kind}: {error}"
        about = f"failed to convert new object ({_about(applied)}) to proper version"
        raise ApplyError(500, "", f"{about}: {why}") from None


def _about(applied: Object) -> str:
    metadata = applied.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    return f"{names.get('namespace', '')}/{names.get('name', '')}; {_kind_of(applied)}"


def _kind_of(applied: Object) -> str:
    """Group, version and kind, as the real server writes them."""
    version = str(applied.get("apiVersion", ""))
    return f"{version if '/' in version else f'/{version}'}, Kind={applied.get('kind', '')}"


def _check(applied: Object, shape: Shape, *, api_version: str, type_name: str | None) -> None:
    version, kind = applied.get("apiVersion", ""), applied.get("kind", "")
    kinds = [known.kind for known in types.load()[type_name].kinds] if type_name else [kind]
    if version != api_version or kind not in kinds:
        raise ApplyError(400, "BadRequest", f"invalid object type: {_kind_of(applied)}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise ApplyError(400, "BadRequest", "metadata.managedFields must be nil")
    faults = merging.faults(applied, shape)
    if faults:
        text = faults[0] if len(faults) == 1 else "errors:\n  " + "\n  ".join(faults)
        message = f"failed to create typed patch object ({_about(applied)}): {text}"
        raise ApplyError(500, "", message)

"""What `kubectl apply` of a manifest makes of a stored DaemonSet. Pure functions.

Fields and list items that others set stay; those that this manifest had before, and has no more,
are removed. What it had before is in kubectl's record, or else in the managed fields.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import msgspec

from everynode.api import crd, keys
from everynode.api.conversion import convert
from everynode.apiserver.apply.apply import ApplyError, apply
from everynode.apiserver.apply.managed_fields import APPLY, Writer, metadata_of
from everynode.apiserver.patches import strategic
from everynode.apiserver.schema.object_type import ObjectType
from everynode.errors import UserError

Object = dict[str, Any]

_NATIVE_TYPE: Final = "io.k8s.api.apps.v1.DaemonSet"
# Who writes kubectl's record, and who declares whole objects without recording or applying them.
_KUBECTL: Final = "kubectl-client-side-apply"
_HELM: Final = "helm"
_NO_MANAGER: Final = "everynode-plan"


def apply_manifest(live: Object, manifest: Object) -> Object:
    """Return the live DaemonSet after the apply of a manifest; raises UserError.

    It is merged as the tool merges it that applied it before: as kubectl does beside its record,
    or else by server-side apply in the name of the manager that declared it.
    """
    if manifest["apiVersion"] != live["apiVersion"]:
        manifest = convert(manifest, live["apiVersion"]).made
    wanted = _declared(manifest)
    native = live["apiVersion"] == keys.APPS_V1
    object_type = ObjectType(_NATIVE_TYPE) if native else ObjectType(None, crd.schema())
    manager = _manager(live)
    if manager not in (_NO_MANAGER, _KUBECTL):
        return _apply_on_server(live, wanted, object_type, manager)
    last = _last_applied(live)
    if not native:
        return _merge(last, live, wanted)
    patch = _strategic_patch(last, wanted, strategic.patch_meta(_NATIVE_TYPE))
    return strategic.merge(live, patch, _NATIVE_TYPE)


def _declared(manifest: Object) -> Object:
    """Return what a manifest says of a DaemonSet, without what only a server writes."""
    metadata = manifest["metadata"]
    notes = dict(metadata.get("annotations") or {})
    notes.pop(keys.LAST_APPLIED, None)
    kept = {"labels": metadata["labels"]} if metadata.get("labels") else {}
    head = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
    return {**head, "metadata": {**kept, "annotations": notes}, "spec": manifest["spec"]}


def _last_applied(live: Object) -> Object:
    """Return what kubectl recorded of the manifest that it applied before; empty without it."""
    notes = metadata_of(live).get("annotations") or {}
    try:
        found = msgspec.json.decode(notes.get(keys.LAST_APPLIED, ""), type=Object)
    except msgspec.DecodeError:
        return {}
    sound = all(isinstance(found.get(key), dict) for key in ("metadata", "spec"))
    return _declared({**live, **found}) if sound else {}


# --- Server-side apply -------------------------------------------------------------------------


def _manager(live: Object) -> str:
    """Return the field manager that declares the object as a whole; the last one to write it."""
    found = [each for each in _entries(live) if _declares(each)]
    newest = max(found, key=lambda each: each.get("time") or "", default={"manager": _NO_MANAGER})
    return str(newest["manager"])


def _entries(live: Object) -> list[Object]:
    return metadata_of(live).get("managedFields") or []


def _declares(entry: Object) -> bool:
    """Whether an entry of managedFields is that of a tool that declares whole objects.

    Such a tool owns the selector, which every manifest has to name. One that only adds a container
    does not.
    """
    declaring = entry.get("operation") == APPLY or entry.get("manager") in (_KUBECTL, _HELM)
    fields = entry.get("fieldsV1") or {}
    return declaring and "f:selector" in fields.get("f:spec", {})


def _apply_on_server(live: Object, wanted: Object, object_type: ObjectType, manager: str) -> Object:
    entries = [
        {**each, "operation": APPLY} if each.get("manager") == manager and _declares(each) else each
        for each in _entries(live)
    ]
    owned = {**live, "metadata": {**live["metadata"], "managedFields": entries}}
    writer = Writer(manager, live["apiVersion"], time="")
    try:
        return apply(owned, wanted, object_type, writer, force=True)
    except ApplyError as error:
        raise UserError(f"the new version is refused: {error}") from None


# --- kubectl's own apply -----------------------------------------------------------------------


def _merge(last: Object, live: Object, new: Object) -> Object:
    """Merge three versions of an object, as kubectl does for custom resources: lists are whole."""
    merged = {key: value for key, value in live.items() if key in new or key not in last}
    for key, value in new.items():
        old, earlier = live.get(key), last.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            merged[key] = _merge(earlier if isinstance(earlier, dict) else {}, old, value)
        elif value is not None:
            merged[key] = deepcopy(value)
    return merged


def _strategic_patch(last: Object, new: Object, meta: strategic.TypePatchMeta) -> Object:
    """Return the strategic merge patch with which kubectl applies a native object."""
    patch: Object = dict.fromkeys(key for key in last if key not in new)
    for key, value in new.items():
        field, earlier = meta.field(key), last.get(key)
        if isinstance(value, dict):
            before = earlier if isinstance(earlier, dict) else {}
            patch[key] = _strategic_patch(before, value, field.object_type)
        elif isinstance(value, list) and field.merges_list and field.merge_key:
            patch |= _list_patch(key, earlier if isinstance(earlier, list) else [], value, field)
        else:
            patch[key] = value
    return patch


def _list_patch(
    name: str, last: list[Any], new: list[Any], field: strategic.FieldPatchMeta
) -> Object:
    """Return the part of a strategic merge patch for a list whose items are told by a key."""
    key = field.merge_key
    before, after = ({each.get(key): each for each in items} for items in (last, new))
    if len(after) < len(new):  # such as port 53 of UDP and TCP: the key does not tell them apart
        return {name: [*new, {strategic.DIRECTIVE: "replace"}]}
    items = [
        {**_strategic_patch(before.get(value) or {}, item, field.item_type), key: value}
        for value, item in after.items()
    ]
    gone = [{key: value, strategic.DIRECTIVE: "delete"} for value in before if value not in after]
    order = [{key: value} for value in after]
    return {name: [*items, *gone], f"{strategic.ORDER_PREFIX}/{name}": order}

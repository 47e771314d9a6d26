"""Conversion: rewrites a DaemonSet manifest in another API version and lists the fields lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from everynode.api import keys
from everynode.api.daemonset import Flavour
from everynode.api.versions import flavour_of, is_progressive, partitioned

Object = dict[str, Any]

# Fields that only a server writes; a manifest must not contain them.
_SERVERS: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
# Annotations that the server and kubectl write about the stored object.
_NOTES: Final = (keys.TEMPLATE_GENERATION, keys.LAST_APPLIED)

# Fields that the native kind does not have, and what happens without them.
_ROLLING: Final = {
    "rollingUpdateType": "pods are recreated",
    "partition": "no node is held back",
    "selector": "no node is held back",
    "paused": "an update goes on",
}
_SPEC: Final = {
    "lifecycle": "pods are deleted without waiting for their hook",
    "burstReplicas": "250 pods at a time are created",
}
_PROGRESSIVE: Final = "nodes that are held back get a pod at once"
# Values that mean the same as an absent field.
_PLAIN: Final = {
    "rollingUpdateType": ("Standard",),
    "partition": (0, "0%"),
    "burstReplicas": (250, "250"),
}


class LostField(NamedTuple):
    """A field that the other version has no counterpart for, and what happens without it."""

    path: str
    instead: str


class Conversion(NamedTuple):
    """A DaemonSet in another version, and the fields which that version does not have."""

    made: Object
    lost: tuple[LostField, ...]


def convert(daemonset: Object, to_version: str) -> Conversion:
    """Convert a DaemonSet to another version; ValueError if one of them has no DaemonSet.

    Fields that a server wrote are left out, so that the result can be applied.
    """
    flavour_of(to_version)
    native = flavour_of(str(daemonset.get("apiVersion"))) is Flavour.NATIVE
    converted: Object = msgspec.json.decode(msgspec.json.encode(daemonset))
    converted["apiVersion"] = to_version
    converted.pop("status", None)
    _forget_server(converted)
    spec = converted.get("spec")
    if native or not isinstance(spec, dict):
        return Conversion(converted, ())
    _spell_type(spec, surging=to_version == keys.V1ALPHA1)
    _move_progressive(converted, spec, to_version)
    lost = _drop_advanced(converted, spec) if to_version == keys.APPS_V1 else ()
    return Conversion(converted, tuple(lost))


def _forget_server(converted: Object) -> None:
    metadata = _map(converted.get("metadata"))
    for name in _SERVERS:
        metadata.pop(name, None)
    annotations = _map(metadata.get("annotations"))
    for name in _NOTES:
        annotations.pop(name, None)
    if metadata.get("annotations") == {}:
        del metadata["annotations"]


def _spell_type(spec: Object, *, surging: bool) -> None:
    """Rename the old `type` to rollingUpdateType; replace Surging where the version lacks it."""
    rolling = _rolling(spec)
    how = rolling.pop("type", None)
    if how and not rolling.get("rollingUpdateType"):
        rolling["rollingUpdateType"] = how
    if rolling.get("rollingUpdateType") == "Surging" and not surging:
        rolling["rollingUpdateType"] = "Standard"
        for name, value in (("maxSurge", 1), ("maxUnavailable", 0)):
            if rolling.get(name) is None:
                rolling[name] = value


def _move_progressive(converted: Object, spec: Object, to_version: str) -> None:
    """Write progressive creation as an annotation (v1alpha1) or a field (v1beta1).

    Where both are set, the field counts.
    """
    if not isinstance(converted.get("metadata"), dict):
        converted["metadata"] = {}
    metadata = converted["metadata"]
    annotations, field = _map(metadata.get("annotations")), partitioned(spec)
    progressive = is_progressive(field, annotations)
    rest = {name: text for name, text in annotations.items() if name != keys.PROGRESSIVE_CREATE}
    scale = {
        name: value
        for name, value in _map(spec.pop("scaleStrategy", None)).items()
        if name != "partitionedScaling"
    }
    if to_version != keys.V1BETA1 and progressive:
        rest[keys.PROGRESSIVE_CREATE] = "true"
    elif progressive:
        scale["partitionedScaling"] = True
    if scale:
        spec["scaleStrategy"] = scale
    if rest:
        metadata["annotations"] = rest
    else:
        metadata.pop("annotations", None)


def _drop_advanced(converted: Object, spec: Object) -> Iterator[LostField]:
    """Remove the fields that the native kind does not have; list those that had an effect."""
    rolling, annotations = _rolling(spec), _map(_map(converted["metadata"]).get("annotations"))
    for name, instead in _ROLLING.items():
        if _drop(rolling, name):
            yield LostField(f"spec.updateStrategy.rollingUpdate.{name}", instead)
    for name, instead in _SPEC.items():
        if _drop(spec, name):
            yield LostField(f"spec.{name}", instead)
    spec.pop("scaleStrategy", None)
    if annotations.pop(keys.PROGRESSIVE_CREATE, None):
        yield LostField("progressive creation", _PROGRESSIVE)
        if not annotations:
            del converted["metadata"]["annotations"]


def _drop(where: Object, name: str) -> bool:
    """Remove a field; return whether it had an effect."""
    value = where.pop(name, None)
    return bool(value) and value not in _PLAIN.get(name, ())


def _rolling(spec: Object) -> Object:
    return _map(_map(spec.get("updateStrategy")).get("rollingUpdate"))


def _map(value: object) -> Object:
    return value if isinstance(value, dict) else {}

"""A DaemonSet in another version of the API, as one would write it there, and what gets lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from everynode.api import keys
from everynode.api.daemonset import Flavour
from everynode.api.versions import flavour_of, is_progressive, partitioned

Object = dict[str, Any]

# What only a server writes; a manifest that is to be applied elsewhere must not hold it.
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
# What the server and kubectl note about the object as it was there.
_NOTES: Final = (keys.TEMPLATE_GENERATION, keys.LAST_APPLIED)

# What the native kind has no field for, and what happens without it.
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
# Values that say no more than nothing.
_PLAIN: Final = {
    "rollingUpdateType": ("Standard",),
    "partition": (0, "0%"),
    "burstReplicas": (250, "250"),
}


class Loss(NamedTuple):
    """A field that the other version has no counterpart for, and what happens without it."""

    path: str
    instead: str


class Conversion(NamedTuple):
    """A DaemonSet as another version says it, without what that version cannot say."""

    made: Object
    lost: tuple[Loss, ...]


def convert(daemonset: Object, to_version: str) -> Conversion:
    """The same DaemonSet in another version; ValueError if one of them has no DaemonSet.

    What a server wrote is left out, so that the outcome can be applied.
    """
    flavour_of(to_version)
    native = flavour_of(str(daemonset.get("apiVersion"))) is Flavour.NATIVE
    made: Object = msgspec.json.decode(msgspec.json.encode(daemonset))
    made["apiVersion"] = to_version
    made.pop("status", None)
    _forget_server(made)
    spec = made.get("spec")
    if native or not isinstance(spec, dict):
        return Conversion(made, ())
    _spell_type(spec, surging=to_version == keys.V1ALPHA1)
    _move_progressive(made, spec, to_version)
    lost = _drop_advanced(made, spec) if to_version == keys.APPS_V1 else ()
    return Conversion(made, tuple(lost))


def _forget_server(made: Object) -> None:
    metadata = _map(made.get("metadata"))
    for name in _SERVERS:
        metadata.pop(name, None)
    annotations = _map(metadata.get("annotations"))
    for name in _NOTES:
        annotations.pop(name, None)
    if metadata.get("annotations") == {}:
        del metadata["annotations"]


def _spell_type(spec: Object, *, surging: bool) -> None:
    """Use the field's own spelling, and Surging only where Kruise knows it."""
    rolling = _rolling(spec)
    how = rolling.pop("type", None)
    if how and not rolling.get("rollingUpdateType"):
        rolling["rollingUpdateType"] = how
    if rolling.get("rollingUpdateType") == "Surging" and not surging:
        rolling["rollingUpdateType"] = "Standard"
        for name, value in (("maxSurge", 1), ("maxUnavailable", 0)):
            if rolling.get(name) is None:
                rolling[name] = value


def _move_progressive(made: Object, spec: Object, to_version: str) -> None:
    """An annotation in v1alpha1, a field in v1beta1; the field decides where both are set."""
    if not isinstance(made.get("metadata"), dict):
        made["metadata"] = {}
    metadata = made["metadata"]
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


def _drop_advanced(made: Object, spec: Object) -> Iterator[Loss]:
    """Take out what the native kind does not have; say so where it had a meaning."""
    rolling, annotations = _rolling(spec), _map(_map(made["metadata"]).get("annotations"))
    for name, instead in _ROLLING.items():
        if _drop(rolling, name):
            yield Loss(f"spec.updateStrategy.rollingUpdate.{name}", instead)
    for name, instead in _SPEC.items():
        if _drop(spec, name):
            yield Loss(f"spec.{name}", instead)
    spec.pop("scaleStrategy", None)
    if annotations.pop(keys.PROGRESSIVE_CREATE, None):
        yield Loss("progressive creation", _PROGRESSIVE)
        if not annotations:
            del made["metadata"]["annotations"]


def _drop(where: Object, name: str) -> bool:
    """Take a field out; whether it said anything."""
    value = where.pop(name, None)
    return bool(value) and value not in _PLAIN.get(name, ())


def _rolling(spec: Object) -> Object:
    return _map(_map(spec.get("updateStrategy")).get("rollingUpdate"))


def _map(value: object) -> Object:
    return value if isinstance(value, dict) else {}

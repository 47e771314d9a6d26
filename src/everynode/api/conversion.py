"""The same DaemonSet in another version, said as that version says it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import Flavour, RollingType
from everynode.api.versions import flavour_of, is_progressive, partitioned

Object = dict[str, Any]

# What the native kind has no field for; a DaemonSet that uses it cannot become a native one.
_ONLY_ADVANCED: Final = ("rollingUpdateType", "type", "partition", "selector", "paused")


def convert(daemonset: Object, to_version: str) -> Object:
    """The same DaemonSet in another version, said as that version says it.

    ValueError if the version has no DaemonSet, or if the native kind cannot say it.
    """
    flavour_of(to_version)
    made: Object = msgspec.json.decode(msgspec.json.encode(daemonset))
    made["apiVersion"] = to_version
    if flavour_of(str(daemonset.get("apiVersion"))) is Flavour.NATIVE:
        return made if to_version == keys.APPS_V1 else _leave_native(made)
    spec = made.get("spec")
    if isinstance(spec, dict):
        _spell_type(spec, surging=to_version == keys.V1ALPHA1)
        _move_progressive(made, spec, to_version)
    _move_hash(made, to_version)
    if to_version == keys.APPS_V1:
        _require_native(made)
    return made


def _leave_native(made: Object) -> Object:
    """Drop what would make Kruise's controller take every pod for an updated one."""
    metadata = made.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        annotations.pop(keys.TEMPLATE_GENERATION, None)
    return made


def _spell_type(spec: Object, *, surging: bool) -> None:
    """Use the field's own spelling, and Surging only where Kruise knows it."""
    strategy = spec.get("updateStrategy")
    rolling = strategy.get("rollingUpdate") if isinstance(strategy, dict) else None
    if not isinstance(rolling, dict):
        return
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
    if rest or annotations:
        metadata["annotations"] = rest


def _map(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _move_hash(made: Object, to_version: str) -> None:
    status = made.get("status")
    if not isinstance(status, dict):
        return
    revision = status.pop("updateRevision", None) or status.get("daemonSetHash")
    status.pop("daemonSetHash", None)
    name = "updateRevision" if to_version == keys.V1BETA1 else "daemonSetHash"
    if revision and to_version != keys.APPS_V1:
        status[name] = revision


def _require_native(made: Object) -> None:
    spec = _map(made.get("spec"))
    rolling = _map(_map(spec.get("updateStrategy")).get("rollingUpdate"))
    if rolling.get("rollingUpdateType") == RollingType.STANDARD.value:
        del rolling["rollingUpdateType"]
    used = [f"spec.updateStrategy.rollingUpdate.{n}" for n in _ONLY_ADVANCED if rolling.get(n)]
    used += [f"spec.{n}" for n in ("lifecycle", "scaleStrategy") if spec.get(n)]
    spec.pop("burstReplicas", None)
    annotations = _map(_map(made.get("metadata")).get("annotations"))
    if annotations.get(keys.PROGRESSIVE_CREATE) == "true":
        used.append(f"metadata.annotations[{keys.PROGRESSIVE_CREATE}]")
    if used:
        raise ValueError(f"the native DaemonSet has no {', '.join(used)}; remove it first")

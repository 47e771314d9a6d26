"""Pod spec cache: defaults and validation are done once for all pods with the same spec.

All pods of a DaemonSet have the same spec except for the node. Doing it for each of them would cost
more than everything else that happens to a new pod.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.defaults import default_pod, default_template
from everynode.api.validation.scheduling import check_affinity
from everynode.api.validation.template import validate_pod

Object = dict[str, Any]

_PER_POD: Final = ("affinity", "nodeName")  # fields that are not part of the cache key
_CACHE_SIZE: Final = 1024  # specs in each of the two caches

_defaulted_specs: dict[bytes, Object] = {}
_valid_specs: dict[bytes, bool] = {}


def default_pod_spec(pod: Object) -> Object:
    """Set the defaults of a pod."""
    spec = pod.get("spec") or {}
    key = _cache_key(spec)
    known = _defaulted_specs.get(key)
    if known is None:
        defaulted = default_pod(pod)
        remembered = {k: v for k, v in defaulted.get("spec", {}).items() if k not in _PER_POD}
        _remember(_defaulted_specs, key, msgspec.to_builtins(remembered))
        # The order of members must be the same as from the cache.
        return {**defaulted, "spec": {**remembered, **_per_pod_fields(defaulted.get("spec", {}))}}
    return default_pod_metadata(
        {**pod, "spec": {**msgspec.to_builtins(known), **_per_pod_fields(spec)}}
    )


def default_pod_metadata(pod: Object) -> Object:
    """Drop obsolete annotations, as the defaults of pods do."""
    if not (pod.get("metadata") or {}).get("annotations"):
        return pod
    return {**pod, "metadata": default_template({"metadata": pod["metadata"]})["metadata"]}


def spec_faults(pod: Object) -> list[FieldError]:
    """Return the faults of a pod's spec."""
    spec = pod["spec"]
    key = _cache_key(spec)
    if key in _valid_specs:
        return list(check_affinity(spec, "spec"))
    faults = [fault for fault in validate_pod(pod) if fault.path.startswith("spec")]
    if not faults:
        _remember(_valid_specs, key, True)
    return faults


def _cache_key(spec: Object) -> bytes:
    return msgspec.json.encode({k: v for k, v in spec.items() if k not in _PER_POD})


def _per_pod_fields(spec: Object) -> Object:
    return {key: spec[key] for key in _PER_POD if key in spec}


def _remember(memory: dict[bytes, Any], key: bytes, value: Any) -> None:
    if len(memory) >= _CACHE_SIZE:
        del memory[next(iter(memory))]
    memory[key] = value

"""Pod specs: filled in and checked once for all that are alike.

All pods of a DaemonSet have the same spec but for the node they are meant for. Looking into each of
them again would cost more than everything else that happens to a new pod.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.daemonset import Fault
from everynode.api.defaults import default_pod, default_template
from everynode.api.validation.scheduling import check_affinity
from everynode.api.validation.template import validate_pod

Object = dict[str, Any]

_OWN: Final = ("affinity", "nodeName")  # what may differ between pods that are alike
_MOST: Final = 1024  # specs to remember of either sort

_filled: dict[bytes, Object] = {}
_right: dict[bytes, bool] = {}


def with_defaults(pod: Object) -> Object:
    """The pod with everything filled in that it leaves out."""
    spec = pod.get("spec") or {}
    key = _shared(spec)
    known = _filled.get(key)
    if known is None:
        made = default_pod(pod)
        remembered = {k: v for k, v in made.get("spec", {}).items() if k not in _OWN}
        _remember(_filled, key, msgspec.to_builtins(remembered))
        # The order of members must not tell whether such a pod was seen before.
        return {**made, "spec": {**remembered, **_own(made.get("spec", {}))}}
    return with_clean_metadata({**pod, "spec": {**msgspec.to_builtins(known), **_own(spec)}})


def with_clean_metadata(pod: Object) -> Object:
    """The pod without some annotations of old."""
    if not (pod.get("metadata") or {}).get("annotations"):
        return pod
    return {**pod, "metadata": default_template({"metadata": pod["metadata"]})["metadata"]}


def spec_faults(pod: Object) -> list[Fault]:
    """Everything wrong with a pod's spec."""
    spec = pod["spec"]
    key = _shared(spec)
    if key in _right:
        return list(check_affinity(spec, "spec"))
    faults = [fault for fault in validate_pod(pod) if fault.path.startswith("spec")]
    if not faults:
        _remember(_right, key, True)
    return faults


def _shared(spec: Object) -> bytes:
    return msgspec.json.encode({k: v for k, v in spec.items() if k not in _OWN})


def _own(spec: Object) -> Object:
    return {key: spec[key] for key in _OWN if key in spec}


def _remember(memory: dict[bytes, Any], key: bytes, value: Any) -> None:
    if len(memory) >= _MOST:
        del memory[next(iter(memory))]
    memory[key] = value

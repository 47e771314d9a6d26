"""API versions: decodes a stored DaemonSet of any kind and version, and encodes its status.

Decoding does not fail on an invalid value: the value is listed in `faults`, and is replaced by the
one that touches the fewest pods.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    FieldError,
    Flavour,
    IntOrPercent,
    LabelSelector,
    LifecycleHook,
    RollingUpdateType,
    UpdateStrategy,
    UpdateStrategyType,
)
from everynode.api.decode import DecodeError
from everynode.api.defaults import default_daemonset
from everynode.api.int_or_percent import MAX_INT32, parse_int_or_percent
from everynode.api.nulls import drop_nulls
from everynode.api.objects import Condition, ObjectMeta
from everynode.api.selector import SelectorError, compile_selector
from everynode.api.times import write_time
from everynode.api.types import ADVANCED_SPEC
from everynode.api.validation.advanced import check_own_fields, rolling_type
from everynode.api.validation.field_errors import invalid, is_int, wrong_type
from everynode.api.validation.field_types import check_advanced_field_types, check_field_types
from everynode.api.validation.native import check_native_fields

Object = dict[str, Any]
Read = TypeVar("Read", bound=msgspec.Struct)

_NATIVE_SPEC: Final = "io.k8s.api.apps.v1.DaemonSetSpec"
_EMPTY_SELECTOR: Final = LabelSelector()
_ALL_NODES: Final = IntOrPercent(100, percent=True)
_NO_NODES: Final = IntOrPercent(0)


class _Envelope(msgspec.Struct, gc=False):
    """The outermost parts; their values are decoded later."""

    api_version: str = msgspec.field(default="", name="apiVersion")
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"null")


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_decode_any: Final = msgspec.json.Decoder().decode
_decode_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


# --- Decoding ----------------------------------------------------------------------------------


def decode_daemonset(raw: bytes | Object, *, flavour: Flavour | None = None) -> DaemonSet:
    """Decode a DaemonSet of either kind; raises DecodeError where it is not a DaemonSet at all.

    The items of a native list have no apiVersion: there, `flavour` is their kind.
    """
    try:
        return _decode(raw if isinstance(raw, bytes) else msgspec.json.encode(raw), flavour)
    except DecodeError:
        raise
    except (ValueError, RecursionError, OverflowError) as error:
        raise DecodeError(f"this is not a DaemonSet: {error}") from error


def _decode(raw: bytes, flavour: Flavour | None) -> DaemonSet:
    envelope = _decode_envelope(raw)
    kind = flavour_of(envelope.api_version, flavour)
    template, stored = _split_spec(bytes(envelope.spec))
    own = _read_own(kind, stored, templated=template is not None)
    faults = list(own.faults)
    metadata = _read(envelope.metadata, ObjectMeta, "metadata", faults)
    return DaemonSet(
        flavour=kind,
        metadata=metadata,
        selector=own.selector,
        template=b"{}" if template is None else template,
        strategy=own.strategy,
        min_ready_seconds=own.min_ready_seconds,
        burst=own.burst,
        history_limit=own.history_limit,
        pre_delete=own.pre_delete,
        progressive=kind is Flavour.ADVANCED
        and is_progressive(own.partitioned, metadata.annotations),
        status=_read_status(envelope.status, faults),
        faults=tuple(faults),
    )


# A DaemonSet is decoded whenever its status changes, and most of the time its spec does not.
@lru_cache(maxsize=128)
def _split_spec(spec: bytes) -> tuple[bytes | None, tuple[tuple[str, bytes], ...]]:
    """Split a spec into copies of the template and of the other fields."""
    try:
        parts = {name: bytes(part) for name, part in _decode_parts(spec).items()}
    except msgspec.DecodeError as error:
        raise DecodeError(f"this is not a DaemonSet: {error} - at `$.spec`") from error
    template = parts.pop("template", None)
    if template is not None and not template.lstrip().startswith(b"{"):
        raise DecodeError("this is not a DaemonSet: spec.template is not an object")
    return template, tuple(parts.items())


class _Own(msgspec.Struct, frozen=True, gc=False):
    """The fields of the spec other than the template, decoded."""

    selector: LabelSelector
    strategy: UpdateStrategy
    min_ready_seconds: int
    burst: IntOrPercent
    history_limit: int
    pre_delete: LifecycleHook | None
    partitioned: object
    faults: tuple[FieldError, ...]


@lru_cache(maxsize=512)
def _read_own(kind: Flavour, stored: tuple[tuple[str, bytes], ...], *, templated: bool) -> _Own:
    spec: Object = drop_nulls({name: _decode_any(value) for name, value in stored})
    return _Own(
        selector=_read_selector(spec.get("selector")) or _EMPTY_SELECTOR,
        strategy=_read_strategy(kind, spec),
        min_ready_seconds=_read_number(spec.get("minReadySeconds"), 0),
        burst=_read_burst(kind, spec.get("burstReplicas")),
        history_limit=_read_number(spec.get("revisionHistoryLimit"), 10),
        pre_delete=_read_hook(kind, spec.get("lifecycle")),
        partitioned=partitioned(spec),
        faults=tuple(_own_faults(kind, spec, templated=templated)),
    )


def flavour_of(api_version: str, default: Flavour | None = None) -> Flavour:
    """Return the kind of DaemonSet of an apiVersion; raises DecodeError where it has none."""
    if api_version == keys.APPS_V1:
        return Flavour.NATIVE
    if api_version in (keys.V1ALPHA1, keys.V1BETA1):
        return Flavour.ADVANCED
    if not api_version and default is not None:
        return default
    known = ", ".join((keys.APPS_V1, keys.V1BETA1, keys.V1ALPHA1))
    raise DecodeError(f"apiVersion {api_version!r} has no DaemonSet; known are {known}")


def _own_faults(kind: Flavour, spec: Object, *, templated: bool) -> list[FieldError]:
    """Validate the fields other than the template."""
    if kind is Flavour.NATIVE:
        wrong = list(check_field_types(spec, _NATIVE_SPEC, "spec"))
        return wrong or list(check_native_fields(_with_defaults(keys.APPS_V1, spec)))
    wrong = list(check_advanced_field_types(spec, ADVANCED_SPEC, "spec"))
    if templated:
        wrong = [fault for fault in wrong if fault.path != "spec.template"]
    return wrong or list(check_own_fields({"spec": spec}))


def _with_defaults(api_version: str, spec: Object) -> Object:
    defaulted = default_daemonset({"apiVersion": api_version, "spec": spec})
    filled: Object = defaulted["spec"]
    return filled


# --- The spec ----------------------------------------------------------------------------------


def _read_strategy(kind: Flavour, spec: Object) -> UpdateStrategy:
    strategy = spec.get("updateStrategy")
    strategy = {} if strategy is None else strategy
    how = strategy.get("type") if isinstance(strategy, dict) else None
    if not isinstance(strategy, dict) or how not in (None, "", "RollingUpdate"):
        return UpdateStrategy(type=UpdateStrategyType.ON_DELETE)
    rolling = strategy.get("rollingUpdate")
    rolling = {} if rolling is None else rolling
    if not isinstance(rolling, dict):
        return UpdateStrategy(paused=True)
    if kind is Flavour.NATIVE:
        unavailable, surge = _read_budget(rolling, one_sided=False)
        return UpdateStrategy(max_unavailable=unavailable, max_surge=surge)
    return _read_advanced(rolling, spec)


def _read_advanced(rolling: Object, spec: Object) -> UpdateStrategy:
    in_place = rolling_type(rolling) == RollingUpdateType.IN_PLACE.value
    unavailable, surge = _read_budget(rolling, one_sided=True, in_place=in_place)
    selector = rolling.get("selector")
    nodes = None if selector is None else _read_selector(selector)
    # An invalid node selector, `paused` or hook stops the rollout.
    stopped = (
        (selector is not None and nodes is None)
        or rolling.get("paused") not in (None, False)
        or not _readable_hook(spec.get("lifecycle"))
    )
    return UpdateStrategy(
        rolling=RollingUpdateType.IN_PLACE if in_place else RollingUpdateType.STANDARD,
        max_unavailable=unavailable,
        max_surge=surge,
        partition=_read_amount(rolling.get("partition"), absent=_NO_NODES, broken=_ALL_NODES),
        selector=nodes,
        paused=stopped,
    )


def _read_budget(
    rolling: Object, *, one_sided: bool, in_place: bool = False
) -> tuple[IntOrPercent, IntOrPercent]:
    """Return maxUnavailable and maxSurge; where both are set, which is invalid, maxSurge counts."""
    down, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    if one_sided and rolling_type(rolling) == "Surging":
        down, surge = (0 if down is None else down), (1 if surge is None else surge)
    alone = down is None and surge is None
    surging = _read_amount(surge, absent=_NO_NODES, broken=_NO_NODES)
    if in_place:
        surging = _NO_NODES
    silent = IntOrPercent(1) if alone or not one_sided else _NO_NODES
    unavailable = _read_amount(down, absent=silent, broken=IntOrPercent(1))
    if unavailable.value and surging.value:
        unavailable = _NO_NODES
    return unavailable, surging


def _read_amount(value: object, *, absent: IntOrPercent, broken: IntOrPercent) -> IntOrPercent:
    if value is None:
        return absent
    amount = parse_int_or_percent(value, at_most_all=True)
    return amount if isinstance(amount, IntOrPercent) else broken


def _read_burst(kind: Flavour, value: object) -> IntOrPercent:
    if value is None or kind is Flavour.NATIVE:
        return IntOrPercent(250)
    amount = parse_int_or_percent(value)
    return amount if isinstance(amount, IntOrPercent) else IntOrPercent(1)


def _read_number(value: Any, absent: int) -> int:
    # A larger number does not fit into the API's int32, nor into a time.
    return min(value, MAX_INT32) if is_int(value) and value >= 0 else absent


def _read_selector(value: object) -> LabelSelector | None:
    """Decode a label selector; None where it is invalid."""
    try:
        selector = msgspec.convert(value, LabelSelector)
        compile_selector(selector)
    except (msgspec.ValidationError, SelectorError):
        return None
    return selector


def _read_hook(kind: Flavour, lifecycle: object) -> LifecycleHook | None:
    if kind is Flavour.NATIVE or not _readable_hook(lifecycle) or not isinstance(lifecycle, dict):
        return None
    hook = lifecycle.get("preDelete")
    if hook is None:
        return None
    return LifecycleHook(
        labels=hook.get("labelsHandler") or {},
        finalizers=tuple(hook.get("finalizersHandler") or ()),
        mark_not_ready=hook.get("markPodNotReady") is True,
    )


def _readable_hook(lifecycle: object) -> bool:
    """Whether the preDelete hook is valid or absent."""
    if lifecycle is None:
        return True
    hook = lifecycle.get("preDelete") if isinstance(lifecycle, dict) else 0
    if hook is None:
        return True
    if not isinstance(hook, dict):
        return False
    labels, finalizers = hook.get("labelsHandler") or {}, hook.get("finalizersHandler") or []
    return (
        isinstance(labels, dict)
        and all(isinstance(value, str) for value in labels.values())
        and isinstance(finalizers, list)
        and all(isinstance(value, str) for value in finalizers)
    )


def partitioned(spec: Object) -> object:
    """Return scaleStrategy.partitionedScaling; None where it is not set."""
    scale = spec.get("scaleStrategy")
    return scale.get("partitionedScaling") if isinstance(scale, dict) else None


def is_progressive(field: object, annotations: dict[str, str]) -> bool:
    """Whether creation is progressive: by the field or, where unset, by the annotation."""
    if field is not None:
        return field is not False
    return annotations.get(keys.PROGRESSIVE_CREATE) == "true"


# --- Metadata and status -----------------------------------------------------------------------


def _read(raw: msgspec.Raw, kind: type[Read], path: str, faults: list[FieldError]) -> Read:
    """Decode a struct; where that fails, decode the fields that are valid and list the others."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        pass
    parts: dict[str, msgspec.Raw] = {}
    try:
        parts = _decode_parts(raw)
    except msgspec.DecodeError:
        faults.append(wrong_type(path, _decode_any(raw), "object"))
    good: Object = {}
    for name, part in parts.items():
        try:
            msgspec.json.decode(b'{"%b":%b}' % (name.encode(), bytes(part)), type=kind)
            good[name] = _decode_any(part)
        except msgspec.DecodeError as error:
            faults.append(invalid(f"{path}.{name}", _decode_any(part), str(error)))
    return msgspec.convert(good, kind)


class _Status(msgspec.Struct, gc=False, rename="camel"):
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    update_revision: str = ""
    daemon_set_hash: str = ""
    collision_count: int | None = None
    conditions: tuple[Condition, ...] | None = None


def _read_status(raw: msgspec.Raw, faults: list[FieldError]) -> DaemonSetStatus:
    if bytes(raw) == b"null":
        return DaemonSetStatus()
    read = _read(raw, _Status, "status", faults)
    return DaemonSetStatus(
        observed_generation=read.observed_generation,
        desired=read.desired_number_scheduled,
        current=read.current_number_scheduled,
        misscheduled=read.number_misscheduled,
        ready=read.number_ready,
        updated=read.updated_number_scheduled,
        available=read.number_available,
        unavailable=read.number_unavailable,
        update_revision=read.update_revision or read.daemon_set_hash,
        collision_count=read.collision_count,
        conditions=read.conditions or (),
    )


def encode_status(flavour: Flavour, status: DaemonSetStatus) -> Object:
    """Encode a status; the Advanced kind has the hash as updateRevision and as daemonSetHash."""
    encoded: Object = {
        "currentNumberScheduled": status.current,
        "desiredNumberScheduled": status.desired,
        "numberMisscheduled": status.misscheduled,
        "numberReady": status.ready,
    }
    optional: Object = {
        "observedGeneration": status.observed_generation,
        "updatedNumberScheduled": status.updated,
        "numberAvailable": status.available,
        "numberUnavailable": status.unavailable,
    }
    if flavour is Flavour.ADVANCED:
        encoded |= optional  # tools take an absent count for something else than 0
        optional |= dict.fromkeys(("updateRevision", "daemonSetHash"), status.update_revision)
    encoded |= {name: value for name, value in optional.items() if value}
    if status.collision_count is not None:
        encoded["collisionCount"] = status.collision_count
    if status.conditions:
        encoded["conditions"] = [_encode_condition(each) for each in status.conditions]
    return encoded


def _encode_condition(condition: Condition) -> Object:
    encoded: Object = {"type": condition.type, "status": condition.status}
    if condition.last_transition_time is not None:
        encoded["lastTransitionTime"] = write_time(condition.last_transition_time)
    encoded |= {
        name: value
        for name, value in (("reason", condition.reason), ("message", condition.message))
        if value
    }
    return encoded

"""What a stored DaemonSet means, whichever kind and version it is.

Decoding never fails on a bad value: the value is named in `faults`, and what is taken in its place
is what touches the fewest pods.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from everynode.api import keys
from everynode.api.amount import parse_amount
from everynode.api.daemonset import (
    Amount,
    DaemonSet,
    DaemonSetStatus,
    Fault,
    Flavour,
    Hook,
    LabelSelector,
    RollingType,
    Strategy,
    UpdateType,
)
from everynode.api.defaults import default_daemonset
from everynode.api.objects import Condition, ObjectMeta
from everynode.api.selector import SelectorError, compile_selector
from everynode.api.times import format_time, seconds
from everynode.api.types import ADVANCED_SPEC
from everynode.api.validation.advanced import check_own_fields, rolling_type, without_nulls
from everynode.api.validation.faults import invalid, is_int, wrong_type
from everynode.api.validation.native import check_native_fields
from everynode.api.validation.shape import check_advanced_shape, check_shape

Object = dict[str, Any]
Read = TypeVar("Read", bound=msgspec.Struct)

_NATIVE_SPEC: Final = "io.k8s.api.apps.v1.DaemonSetSpec"
_NOBODY: Final = LabelSelector()
_ALL: Final = Amount(100, percent=True)
_NONE: Final = Amount(0)


class _Envelope(msgspec.Struct, gc=False):
    """The outermost parts; all values stay as they are stored until they are looked at."""

    api_version: str = msgspec.field(default="", name="apiVersion")
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"null")


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_decode_any: Final = msgspec.json.Decoder().decode
_decode_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


# --- Decoding ----------------------------------------------------------------------------------


def decode_daemonset(raw: bytes | Object, *, flavour: Flavour | None = None) -> DaemonSet:
    """The DaemonSet of either kind in its one internal shape.

    The items of a native list do not say what they are: there, `flavour` does. ValueError if this
    is no DaemonSet at all.
    """
    if not isinstance(raw, bytes):
        raw = msgspec.json.encode(raw)
    try:
        envelope = _decode_envelope(raw)
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no DaemonSet: {error}") from error
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
    """The template, and everything else; views would keep the whole message in memory."""
    try:
        parts = {name: bytes(part) for name, part in _decode_parts(spec).items()}
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no DaemonSet: {error} - at `$.spec`") from error
    return parts.pop("template", None), tuple(parts.items())


class _Own(msgspec.Struct, frozen=True, gc=False):
    """All of the spec but the template."""

    selector: LabelSelector
    strategy: Strategy
    min_ready_seconds: int
    burst: Amount
    history_limit: int
    pre_delete: Hook | None
    partitioned: object
    faults: tuple[Fault, ...]


@lru_cache(maxsize=512)
def _read_own(kind: Flavour, stored: tuple[tuple[str, bytes], ...], *, templated: bool) -> _Own:
    spec: Object = without_nulls({name: _decode_any(value) for name, value in stored})
    return _Own(
        selector=_read_selector(spec.get("selector")) or _NOBODY,
        strategy=_read_strategy(kind, spec),
        min_ready_seconds=_read_number(spec.get("minReadySeconds"), 0),
        burst=_read_burst(kind, spec.get("burstReplicas")),
        history_limit=_read_number(spec.get("revisionHistoryLimit"), 10),
        pre_delete=_read_hook(kind, spec.get("lifecycle")),
        partitioned=partitioned(spec),
        faults=tuple(_own_faults(kind, spec, templated=templated)),
    )


def flavour_of(api_version: str, default: Flavour | None = None) -> Flavour:
    """Which kind an apiVersion stands for; ValueError for one that has no DaemonSet."""
    if api_version == keys.APPS_V1:
        return Flavour.NATIVE
    if api_version in (keys.V1ALPHA1, keys.V1BETA1):
        return Flavour.ADVANCED
    if not api_version and default is not None:
        return default
    known = ", ".join((keys.APPS_V1, keys.V1BETA1, keys.V1ALPHA1))
    raise ValueError(f"apiVersion {api_version!r} has no DaemonSet; known are {known}")


def _own_faults(kind: Flavour, spec: Object, *, templated: bool) -> list[Fault]:
    """What is wrong with the fields that are not the template's."""
    if kind is Flavour.NATIVE:
        wrong = list(check_shape(spec, _NATIVE_SPEC, "spec"))
        return wrong or list(check_native_fields(_with_defaults(keys.APPS_V1, spec)))
    wrong = list(check_advanced_shape(spec, ADVANCED_SPEC, "spec"))
    if templated:
        wrong = [fault for fault in wrong if fault.path != "spec.template"]
    return wrong or list(check_own_fields({"spec": spec}))


def _with_defaults(api_version: str, spec: Object) -> Object:
    made = default_daemonset({"apiVersion": api_version, "spec": spec})
    filled: Object = made["spec"]
    return filled


# --- The spec ----------------------------------------------------------------------------------


def _read_strategy(kind: Flavour, spec: Object) -> Strategy:
    strategy = spec.get("updateStrategy")
    strategy = {} if strategy is None else strategy
    how = strategy.get("type") if isinstance(strategy, dict) else None
    if not isinstance(strategy, dict) or how not in (None, "", "RollingUpdate"):
        return Strategy(type=UpdateType.ON_DELETE)
    rolling = strategy.get("rollingUpdate")
    rolling = {} if rolling is None else rolling
    if not isinstance(rolling, dict):
        return Strategy(paused=True)
    if kind is Flavour.NATIVE:
        unavailable, surge = _read_budget(rolling, one_sided=False)
        return Strategy(max_unavailable=unavailable, max_surge=surge)
    return _read_advanced(rolling, spec)


def _read_advanced(rolling: Object, spec: Object) -> Strategy:
    in_place = rolling_type(rolling) == RollingType.IN_PLACE.value
    unavailable, surge = _read_budget(rolling, one_sided=True, in_place=in_place)
    selector = rolling.get("selector")
    nodes = None if selector is None else _read_selector(selector)
    # What cannot be read stops the rollout: which nodes, whether to go on, which hook.
    stopped = (
        (selector is not None and nodes is None)
        or rolling.get("paused") not in (None, False)
        or not _readable_hook(spec.get("lifecycle"))
    )
    return Strategy(
        rolling=RollingType.IN_PLACE if in_place else RollingType.STANDARD,
        max_unavailable=unavailable,
        max_surge=surge,
        partition=_read_amount(rolling.get("partition"), absent=_NONE, broken=_ALL),
        selector=nodes,
        paused=stopped,
    )


def _read_budget(
    rolling: Object, *, one_sided: bool, in_place: bool = False
) -> tuple[Amount, Amount]:
    """maxUnavailable and maxSurge; of two that exclude each other the surge is kept."""
    down, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    if one_sided and rolling_type(rolling) == "Surging":
        down, surge = (0 if down is None else down), (1 if surge is None else surge)
    alone = down is None and surge is None
    surging = _read_amount(surge, absent=_NONE, broken=_NONE)
    if in_place:
        surging = _NONE
    silent = Amount(1) if alone or not one_sided else _NONE
    unavailable = _read_amount(down, absent=silent, broken=Amount(1))
    if unavailable.value and surging.value:
        unavailable = _NONE
    return unavailable, surging


def _read_amount(value: object, *, absent: Amount, broken: Amount) -> Amount:
    if value is None:
        return absent
    amount = parse_amount(value, at_most_all=True)
    return amount if isinstance(amount, Amount) else broken


def _read_burst(kind: Flavour, value: object) -> Amount:
    if value is None or kind is Flavour.NATIVE:
        return Amount(250)
    amount = parse_amount(value)
    return amount if isinstance(amount, Amount) else Amount(1)


def _read_number(value: Any, absent: int) -> int:
    return value if is_int(value) and value >= 0 else absent


def _read_selector(value: object) -> LabelSelector | None:
    """A label selector that can be used; None if there is none such."""
    try:
        selector = msgspec.convert(value, LabelSelector)
        compile_selector(selector)
    except (msgspec.ValidationError, SelectorError):
        return None
    return selector


def _read_hook(kind: Flavour, lifecycle: object) -> Hook | None:
    if kind is Flavour.NATIVE or not _readable_hook(lifecycle) or not isinstance(lifecycle, dict):
        return None
    hook = lifecycle.get("preDelete")
    if hook is None:
        return None
    return Hook(
        labels=hook.get("labelsHandler") or {},
        finalizers=tuple(hook.get("finalizersHandler") or ()),
        mark_not_ready=hook.get("markPodNotReady") is True,
    )


def _readable_hook(lifecycle: object) -> bool:
    """Whether the preDelete hook is understood, or there is none."""
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
    """The field that tells whether creation is progressive; None where nothing is said."""
    scale = spec.get("scaleStrategy")
    return scale.get("partitionedScaling") if isinstance(scale, dict) else None


def is_progressive(field: object, annotations: dict[str, str]) -> bool:
    """The field decides where it is set; else the annotation of the older version."""
    if field is not None:
        return field is not False
    return annotations.get(keys.PROGRESSIVE_CREATE) == "true"


# --- Metadata and status -----------------------------------------------------------------------


def _read(raw: msgspec.Raw, kind: type[Read], path: str, faults: list[Fault]) -> Read:
    """A struct; where that fails, as much of it as can be read."""
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


def _read_status(raw: msgspec.Raw, faults: list[Fault]) -> DaemonSetStatus:
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
    """The status as it is written; the Advanced kind carries the hash under both its names."""
    made: Object = {
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
        made["updatedNumberScheduled"] = status.updated
        optional |= dict.fromkeys(("updateRevision", "daemonSetHash"), status.update_revision)
    made |= {name: value for name, value in optional.items() if value}
    if status.collision_count is not None:
        made["collisionCount"] = status.collision_count
    if status.conditions:
        made["conditions"] = [_encode_condition(each) for each in status.conditions]
    return made


def _encode_condition(condition: Condition) -> Object:
    made: Object = {"type": condition.type, "status": condition.status}
    if condition.last_transition_time is not None:
        made["lastTransitionTime"] = format_time(seconds(condition.last_transition_time))
    made |= {
        name: value
        for name, value in (("reason", condition.reason), ("message", condition.message))
        if value
    }
    return made

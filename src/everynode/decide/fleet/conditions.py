"""Conditions of a DaemonSet: whether it is complete, progresses, or waits, and for what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.objects import Condition

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
COMPLETE: Final = "Complete"
PAUSED: Final = "Paused"
SURGE_CANNOT_FIT: Final = "SurgeCannotFit"
FAULTY: Final = "Faulty"
REFUSED: Final = "Refused"  # reason of a fault that is no bad value: a write that was refused
# Conditions that are left out until they are True for the first time.
EXCEPTIONAL: Final = (SURGE_CANNOT_FIT, FAULTY)

_NAMED_NODES = 3
_NAMED_CODES = 20


class FleetSummary(msgspec.Struct, frozen=True):
    """The input of the conditions: counts of nodes, and the names of waiting nodes by reason code.

    Progressing nodes are only counted, not named: otherwise a rollout that goes well would write
    the status at every step of every pod.
    """

    desired: int
    updated: int
    available: int
    available_any: int  # differs while a surge ends: the older of two pods may be unavailable
    max_unavailable: int
    held: int = 0
    not_started: int = 0
    progressing: int = 0  # nodes with a reason code in PROGRESSING, updated or not
    waiting: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    paused: bool = False
    on_delete: bool = False
    port_conflict: int = 0  # nodes where the surge pod would need a host port that is taken
    faults: tuple[FieldError, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every node that should have a pod has an available one of the target."""
        return self.updated >= self.desired and self.available >= self.desired

    @property
    def under_way(self) -> int:
        """How many nodes have begun their update and not finished it."""
        return self.desired - self.updated - self.not_started - self.held


def build_conditions(summary: FleetSummary) -> tuple[Condition, ...]:
    """Return our conditions for this summary, without times; `merge_conditions` adds them."""
    return (
        _progressing(summary),
        _available(summary),
        _complete(summary),
        _paused(summary),
        _surge_cannot_fit(summary),
        _faulty(summary),
    )


def merge_conditions(
    said: Iterable[Condition], observed: Sequence[Condition], now: float
) -> tuple[Condition, ...]:
    """Return the conditions to store: ours updated, those of other clients unchanged, in order.

    A condition with the same status, reason and message is kept as observed. lastTransitionTime
    changes only with the status.
    """
    ours = {each.type: each for each in said}
    written = []
    for old in observed:
        renewed = ours.pop(old.type, None)
        written.append(old if renewed is None else _merge_condition(old, renewed, now))
    fresh = [new for new in ours.values() if new.status == "True" or new.type not in EXCEPTIONAL]
    return (*written, *(_merge_condition(None, new, now) for new in fresh))


def _merge_condition(old: Condition | None, new: Condition, now: float) -> Condition:
    if old is None or old.status != new.status:
        moment = datetime.fromtimestamp(int(now), UTC)
        return msgspec.structs.replace(new, last_transition_time=moment)
    if old.reason == new.reason and old.message == new.message:
        return old
    return msgspec.structs.replace(new, last_transition_time=old.last_transition_time)


def _condition(kind: str, status: bool, reason: str, message: str) -> Condition:
    return Condition(kind, "True" if status else "False", reason, message)


_NOT_PAUSED: Final = _condition(PAUSED, False, "NotPaused", "")
_FITS: Final = _condition(SURGE_CANNOT_FIT, False, "Fits", "")
_NO_FAULTS: Final = _condition(FAULTY, False, "NoFaults", "")


def _progressing(summary: FleetSummary) -> Condition:
    if summary.complete:
        return _condition(PROGRESSING, False, "Complete", _updated(summary))
    if summary.progressing:
        return _condition(PROGRESSING, True, "RollingOut", _summary(summary))
    return _condition(PROGRESSING, False, _blocking_reason(summary), _summary(summary))


def _complete(summary: FleetSummary) -> Condition:
    if summary.complete:
        return _condition(COMPLETE, True, "AllNodesUpdated", _updated(summary))
    reason = "RollingOut" if summary.progressing else _blocking_reason(summary)
    return _condition(COMPLETE, False, reason, _updated(summary))


def _available(summary: FleetSummary) -> Condition:
    enough = summary.desired - summary.available_any <= summary.max_unavailable
    message = f"{summary.available_any} of {summary.desired} nodes have an available pod"
    return _condition(
        AVAILABLE, enough, "EnoughAvailable" if enough else "TooFewAvailable", message
    )


def _paused(summary: FleetSummary) -> Condition:
    if not summary.paused:
        return _NOT_PAUSED
    message = f"{_updated(summary)}; the others stay as they are until the update is resumed"
    return _condition(PAUSED, True, "Paused", message)


def _surge_cannot_fit(summary: FleetSummary) -> Condition:
    if not summary.port_conflict:
        return _FITS
    message = (
        f"on {summary.port_conflict} nodes the new pod needs a host port that the old one holds:"
        " nothing is started there; set maxUnavailable instead of maxSurge"
    )
    return _condition(SURGE_CANNOT_FIT, True, "HostPortShared", message)


def _faulty(summary: FleetSummary) -> Condition:
    if not summary.faults:
        return _NO_FAULTS
    message = "; ".join(str(fault) for fault in summary.faults)
    refused = all(fault.reason == REFUSED for fault in summary.faults)
    return _condition(FAULTY, True, REFUSED if refused else "BadValues", message)


def _blocking_reason(summary: FleetSummary) -> str:
    """Return the reason why no node progresses: paused, or what most nodes wait for, or held."""
    if summary.paused:
        return "Paused"
    if summary.waiting:
        return _by_frequency(summary)[0]
    if summary.on_delete:
        return "OnDelete"
    return "Held" if summary.held else "Waiting"


def _updated(summary: FleetSummary) -> str:
    return f"{summary.updated} of {summary.desired} nodes are updated"


def _summary(summary: FleetSummary) -> str:
    # A waiting node may be updated already, or may be one that should have no pod.
    waiting = sum(len(names) for names in summary.waiting.values())
    wait = "1 node waits" if waiting == 1 else f"{waiting} nodes wait"
    parts = [f"{wait}: {format_waiting(summary)}"] if waiting else []
    return "; ".join([*parts, _count(summary)])


def _count(summary: FleetSummary) -> str:
    """Return the counts of nodes that should have a pod; each node is in one count."""
    numbers = {
        "updated": summary.updated,
        "under way": summary.under_way,
        "left until their pods are deleted"
        if summary.on_delete
        else "to come": summary.not_started,
        "held": summary.held,
    }
    said = [f"{number} {what}" for what, number in numbers.items() if number or what == "updated"]
    return f"of {summary.desired} nodes {', '.join(said)}"


def format_waiting(summary: FleetSummary) -> str:
    """Return the reason codes of waiting nodes, the most frequent first, with a few node names."""
    codes = _by_frequency(summary)
    named = [_name_nodes(code, summary.waiting[code]) for code in codes[:_NAMED_CODES]]
    more = ["…"] if len(codes) > _NAMED_CODES else []
    return ", ".join(named + more)


def _by_frequency(summary: FleetSummary) -> list[str]:
    return sorted(summary.waiting, key=lambda code: (-len(summary.waiting[code]), code))


def _name_nodes(code: str, names: Sequence[str]) -> str:
    first = ", ".join(names[:_NAMED_NODES])
    more = "" if len(names) <= _NAMED_NODES else ", …"
    return f"{len(names)} {code} ({first}{more})"

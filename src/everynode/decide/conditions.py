"""What the conditions of a DaemonSet say: is it done, does it move, what does it wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from everynode.api.daemonset import Fault
from everynode.api.objects import Condition

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
COMPLETE: Final = "Complete"
PAUSED: Final = "Paused"
SURGE_CANNOT_FIT: Final = "SurgeCannotFit"
FAULTY: Final = "Faulty"
# Conditions that only appear once there is something to say.
EXCEPTIONAL: Final = (SURGE_CANNOT_FIT, FAULTY)

_NAMED_NODES = 3
_NAMED_CODES = 20


class Picture(msgspec.Struct, frozen=True):
    """What the conditions are told of: the fleet in numbers, and the nodes that wait, by code.

    Nodes where something moves by itself are only counted, so that a rollout which goes well does
    not write another status with every step of every pod.
    """

    desired: int
    updated: int
    available: int
    served: int  # while a surge ends, a node may be served and its senior pod not available
    max_unavailable: int
    held: int = 0
    to_come: int = 0
    moving: int = 0  # where something happens by itself, updated or not
    waiting: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    paused: bool = False
    on_delete: bool = False
    clashing: int = 0  # nodes where the surge pod would need a host port that is taken
    faults: tuple[Fault, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every node that should have a pod has an available one of the target."""
        return self.updated >= self.desired and self.available >= self.desired

    @property
    def under_way(self) -> int:
        """How many nodes are not updated yet, though it has begun there."""
        return self.desired - self.updated - self.to_come - self.held


def describe(picture: Picture) -> tuple[Condition, ...]:
    """What our conditions say of the fleet, whatever was said before; they carry no times yet."""
    return (
        _progressing(picture),
        _available(picture),
        _complete(picture),
        _paused(picture),
        _surge_cannot_fit(picture),
        _faulty(picture),
    )


def write_conditions(
    said: Iterable[Condition], observed: Sequence[Condition], now: float
) -> tuple[Condition, ...]:
    """The conditions to be stored: ours renewed, those of others untouched and in their place.

    A condition that says the same as before is kept as it was observed; its time moves only when
    its status does.
    """
    ours = {each.type: each for each in said}
    written = []
    for old in observed:
        renewed = ours.pop(old.type, None)
        written.append(old if renewed is None else _renew(old, renewed, now))
    fresh = [new for new in ours.values() if new.status == "True" or new.type not in EXCEPTIONAL]
    return (*written, *(_renew(None, new, now) for new in fresh))


def _renew(old: Condition | None, new: Condition, now: float) -> Condition:
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


def _progressing(picture: Picture) -> Condition:
    if picture.complete:
        return _condition(PROGRESSING, False, "Complete", _updated(picture))
    if picture.moving:
        return _condition(PROGRESSING, True, "RollingOut", _summary(picture))
    return _condition(PROGRESSING, False, _hindrance(picture), _summary(picture))


def _complete(picture: Picture) -> Condition:
    if picture.complete:
        return _condition(COMPLETE, True, "AllNodesUpdated", _updated(picture))
    reason = "RollingOut" if picture.moving else _hindrance(picture)
    return _condition(COMPLETE, False, reason, _updated(picture))


def _available(picture: Picture) -> Condition:
    enough = picture.desired - picture.served <= picture.max_unavailable
    message = f"{picture.served} of {picture.desired} nodes have an available pod"
    return _condition(
        AVAILABLE, enough, "EnoughAvailable" if enough else "TooFewAvailable", message
    )


def _paused(picture: Picture) -> Condition:
    if not picture.paused:
        return _NOT_PAUSED
    message = f"{_updated(picture)}; the others stay as they are until the update is resumed"
    return _condition(PAUSED, True, "Paused", message)


def _surge_cannot_fit(picture: Picture) -> Condition:
    if not picture.clashing:
        return _FITS
    message = (
        f"on {picture.clashing} nodes the new pod needs a host port that the old one holds: nothing"
        " is started there; set maxUnavailable instead of maxSurge"
    )
    return _condition(SURGE_CANNOT_FIT, True, "HostPortShared", message)


def _faulty(picture: Picture) -> Condition:
    if not picture.faults:
        return _NO_FAULTS
    message = "; ".join(str(fault) for fault in picture.faults)
    return _condition(FAULTY, True, "BadValues", message)


def _hindrance(picture: Picture) -> str:
    """Why nothing moves although not all is done: who holds it, or what most nodes wait for."""
    if picture.paused:
        return "Paused"
    if picture.waiting:
        return _by_frequency(picture)[0]
    if picture.on_delete:
        return "OnDelete"
    return "Held" if picture.held else "Waiting"


def _updated(picture: Picture) -> str:
    return f"{picture.updated} of {picture.desired} nodes are updated"


def _summary(picture: Picture) -> str:
    # Nodes that wait may be updated, and may be such that should have no pod at all.
    waiting = sum(len(names) for names in picture.waiting.values())
    wait = "1 node waits" if waiting == 1 else f"{waiting} nodes wait"
    parts = [f"{wait}: {list_waiting(picture)}"] if waiting else []
    return "; ".join([*parts, _count(picture)])


def _count(picture: Picture) -> str:
    """Every node that should have a pod, counted once."""
    numbers = {
        "updated": picture.updated,
        "under way": picture.under_way,
        "left until their pods are deleted" if picture.on_delete else "to come": picture.to_come,
        "held": picture.held,
    }
    said = [f"{number} {what}" for what, number in numbers.items() if number or what == "updated"]
    return f"of {picture.desired} nodes {', '.join(said)}"


def list_waiting(picture: Picture) -> str:
    """What nodes wait for, the commonest first, with the first few of the nodes."""
    codes = _by_frequency(picture)
    named = [_name_nodes(code, picture.waiting[code]) for code in codes[:_NAMED_CODES]]
    more = ["…"] if len(codes) > _NAMED_CODES else []
    return ", ".join(named + more)


def _by_frequency(picture: Picture) -> list[str]:
    return sorted(picture.waiting, key=lambda code: (-len(picture.waiting[code]), code))


def _name_nodes(code: str, names: Sequence[str]) -> str:
    first = ", ".join(names[:_NAMED_NODES])
    more = "" if len(names) <= _NAMED_NODES else ", …"
    return f"{len(names)} {code} ({first}{more})"

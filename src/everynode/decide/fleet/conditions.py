"""Conditions of a DaemonSet: whether it is complete, progresses, or waits, and for what.

Ready, Reconciling and Stalled are those that deployment tools read (kstatus). At most one of them
is True: all is as the spec declares, something moves, or nothing has moved for a while although
nothing in the spec asks for that. The native kind gets none of the three: its tools count pods, and
what we leave there would mislead them once kube-controller-manager serves it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.objects import Condition
from everynode.api.times import seconds
from everynode.decide.node.reasons import RESTARTED, shorten

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
COMPLETE: Final = "Complete"
PAUSED: Final = "Paused"
READY: Final = "Ready"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"
SURGE_CANNOT_FIT: Final = "SurgeCannotFit"
FAULTY: Final = "Faulty"
REFUSED: Final = "Refused"  # reason of a fault that is no bad value: a write that was refused
TARGET_REFUSED: Final = "TargetRefused"  # its message has the API server's words and no others
# Conditions that are left out until they are True for the first time.
EXCEPTIONAL: Final = (SURGE_CANNOT_FIT, FAULTY, TARGET_REFUSED)
CONDITION_TYPES: Final = frozenset(
    (PROGRESSING, AVAILABLE, COMPLETE, PAUSED, READY, RECONCILING, STALLED, *EXCEPTIONAL)
)

# After this many seconds more than minReadySeconds in which nothing moved, an update is stalled.
STALL_SECONDS: Final = 300.0

_NAMED_NODES = 3
_NAMED_CODES = 20
_MAX_REFUSAL_CHARACTERS = 600  # policies explain themselves at length
_HOOK = "Hook"
_WAITING = "Waiting"
_DONE = "updated and available"


class FleetSummary(msgspec.Struct, frozen=True):
    """The input of the conditions: counts of nodes, and the names of waiting nodes by reason code.

    Progressing nodes are only counted, not named: otherwise a rollout that goes well would write
    the status at every step of every pod.
    """

    desired: int
    done: int  # nodes with an available pod of the target
    available_any: int  # differs while a surge ends: the older of two pods may be unavailable
    max_unavailable: int
    held: int = 0
    not_started: int = 0
    progressing: int = 0  # nodes with a reason code in PROGRESSING_CODES, updated or not
    moving: int = 0  # those of them that do not merely try again what failed
    as_declared: int = 0  # nodes that have what selector, partition, pause and OnDelete ask for
    # Silent nodes that have not: held ones, and others that the target has not reached.
    silent_held: int = 0
    silent_unreached: int = 0
    silent_excused: bool = True  # whether they are few enough to be left out (R4)
    waiting: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    paused: bool = False
    on_delete: bool = False
    port_conflict: int = 0  # nodes where the surge pod would need a host port that is taken
    removing: int = 0  # nodes that may not keep their pod
    reverted: bool = False  # the target is the version before the last, taken back
    faults: tuple[FieldError, ...] = ()
    refusal: str = ""  # the API server's words, where it refuses the target's pods
    min_ready_seconds: int = 0
    advanced: bool = True

    @property
    def complete(self) -> bool:
        """Whether every node that should have a pod has an available one of the target."""
        return self.done >= self.desired

    @property
    def under_way(self) -> int:
        """How many nodes have begun their update and not finished it."""
        return self.desired - self.done - self.not_started - self.held

    @property
    def ready(self) -> bool:
        """Whether all is as declared: in scope updated and available, elsewhere available.

        A few silent nodes are excused, but never one that the target has reached, and none in the
        scope of a canary: a gate that waits for Ready must not pass one that was not tried.
        """
        if self.complete:
            return True
        if self.spec_faults:
            return False
        missing = self.desired - self.as_declared
        if self.silent_excused and self.as_declared:
            missing -= self.silent_held + (0 if self.held else self.silent_unreached)
        return missing <= 0

    @property
    def spec_faults(self) -> bool:
        """Whether values of the spec mean nothing: then nothing is as declared."""
        return any(fault.path.startswith("spec.") for fault in self.faults)


def waiting_nodes(
    by_code: Mapping[str, Sequence[str]], *, updating: bool
) -> Mapping[str, Sequence[str]]:
    """Return the nodes that the conditions name.

    A pod that restarted and is available again holds up the update of other nodes. Where none is
    to come it holds up nothing, and the node needs no attention.
    """
    if updating or RESTARTED not in by_code:
        return by_code
    return {code: names for code, names in by_code.items() if code != RESTARTED}


def describe_fleet(summary: FleetSummary) -> str:
    """Return the text that most conditions carry: the nodes that wait, and the counts."""
    return _complete_text(summary) if summary.complete else _summary(summary)


def build_conditions(summary: FleetSummary, text: str) -> tuple[Condition, ...]:
    """Return our conditions for this summary, without times; `merge_conditions` adds them.

    `text` is that of `describe_fleet`. Whether the update is stalled depends on the times, and is
    added by `add_stalled`.
    """
    return (
        _progressing(summary, text),
        _available(summary),
        _complete(summary, text),
        _paused_condition(summary),
        *((_ready(summary, text), _reconciling(summary, text)) if summary.advanced else ()),
        _surge_cannot_fit(summary),
        _faulty(summary),
        _target_refused(summary),
    )


class StallCheck(msgspec.Struct, frozen=True):
    """When an update counts as stalled: the limit for a fleet that is neither ready nor moving."""

    after: float  # seconds without a movement; infinite where the spec asks for the wait
    reason: str
    message: str


def stall_check(summary: FleetSummary, text: str) -> StallCheck | None:
    """Return when this fleet counts as stalled; None while it is ready or moves.

    `text` is that of `describe_fleet`.
    """
    if summary.ready or summary.moving:
        return None
    if summary.spec_faults:
        return StallCheck(0.0, "BadValues", _faulty(summary).message)
    after = math.inf if _HOOK in summary.waiting else summary.min_ready_seconds + STALL_SECONDS
    return StallCheck(after, _blocking_reason(summary), text)


def add_stalled(
    stored: tuple[Condition, ...], check: StallCheck | None, now: float
) -> tuple[tuple[Condition, ...], float | None]:
    """Return the conditions with Stalled up to date, and when it becomes True without an event.

    Ready and Reconciling remember since when neither is True, so that nothing is kept in memory and
    a movement, however short, begins the wait anew.
    """
    stalls_at = None if check is None else _quiet_since(stored) + check.after
    if check is None or stalls_at is None or stalls_at > now:
        stalled, wake_at = _NOT_STALLED, None if stalls_at == math.inf else stalls_at
    else:
        stalled, wake_at = _condition(STALLED, True, check.reason, check.message), None
        stored = tuple(_as_stalled(each) if each.type == READY else each for each in stored)
    return merge_conditions((stalled,), stored, now), wake_at


def _quiet_since(stored: Iterable[Condition]) -> float:
    """Return since when the fleet is neither ready nor moving; infinite if that is not known."""
    times = [each.last_transition_time for each in stored if each.type in (READY, RECONCILING)]
    return max([math.inf if time is None else seconds(time) for time in times], default=math.inf)


def _as_stalled(ready: Condition) -> Condition:
    return msgspec.structs.replace(ready, reason=STALLED) if ready.reason == _WAITING else ready


def merge_conditions(
    current: Iterable[Condition], observed: Sequence[Condition], now: float
) -> tuple[Condition, ...]:
    """Return the conditions to store: ours updated, those of other clients unchanged, in order.

    A condition with the same status, reason and message is kept as observed. lastTransitionTime
    changes only with the status.
    """
    ours = {each.type: each for each in current}
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


_STILL: Final = _condition(RECONCILING, False, "NothingMoves", "")
_NOT_STALLED: Final = _condition(STALLED, False, "NotStalled", "")
_NOT_PAUSED: Final = _condition(PAUSED, False, "NotPaused", "")
_FITS: Final = _condition(SURGE_CANNOT_FIT, False, "Fits", "")
_NO_FAULTS: Final = _condition(FAULTY, False, "NoFaults", "")
_NOT_REFUSED: Final = _condition(TARGET_REFUSED, False, "NotRefused", "")


def _progressing(summary: FleetSummary, text: str) -> Condition:
    if summary.complete:
        # As a Deployment's, which stays True when its newest revision is available.
        return _condition(PROGRESSING, True, "NewRevisionAvailable", text)
    if summary.progressing:
        return _condition(PROGRESSING, True, "RollingOut", text)
    return _condition(PROGRESSING, False, _blocking_reason(summary), text)


def _complete(summary: FleetSummary, text: str) -> Condition:
    if summary.complete:
        return _condition(COMPLETE, True, "AllNodesUpdated", text)
    reason = "RollingOut" if summary.progressing else _blocking_reason(summary)
    return _condition(COMPLETE, False, reason, _describe_updated(summary))


def _ready(summary: FleetSummary, text: str) -> Condition:
    if summary.complete:
        return _condition(READY, True, COMPLETE, text)
    if summary.ready:
        return _condition(READY, True, _declared_reason(summary), text)
    if summary.moving:
        return _condition(READY, False, "RollingOut", text)
    if summary.spec_faults:
        return _condition(READY, False, FAULTY, _faulty(summary).message)
    return _condition(READY, False, _WAITING, text)


def _declared_reason(summary: FleetSummary) -> str:
    """Return what keeps a fleet from being complete that is as declared."""
    if summary.held:
        return PAUSED if summary.paused else "Held"
    return "OnDelete" if summary.on_delete else "AllButSilent"


def _reconciling(summary: FleetSummary, text: str) -> Condition:
    if summary.moving and not summary.ready:
        return _condition(RECONCILING, True, "RollingOut", text)
    return _STILL


def _available(summary: FleetSummary) -> Condition:
    enough = summary.desired - summary.available_any <= summary.max_unavailable
    message = f"{summary.available_any} of {summary.desired} nodes have an available pod"
    return _condition(
        AVAILABLE, enough, "EnoughAvailable" if enough else "TooFewAvailable", message
    )


def _paused_condition(summary: FleetSummary) -> Condition:
    if not summary.paused:
        return _NOT_PAUSED
    message = (
        f"{_describe_updated(summary)}; the others stay as they are until the update is resumed"
    )
    return _condition(PAUSED, True, "Paused", message)


def _surge_cannot_fit(summary: FleetSummary) -> Condition:
    if not summary.port_conflict:
        return _FITS
    message = (
        f"on {_count_nodes(summary.port_conflict)} the new pod needs a host port that the old one"
        " holds: nothing is started there; set maxUnavailable instead of maxSurge"
    )
    return _condition(SURGE_CANNOT_FIT, True, "HostPortShared", message)


def _faulty(summary: FleetSummary) -> Condition:
    if not summary.faults:
        return _NO_FAULTS
    message = "; ".join(str(fault) for fault in summary.faults)
    refused = all(fault.reason == REFUSED for fault in summary.faults)
    return _condition(FAULTY, True, REFUSED if refused else "BadValues", message)


def _target_refused(summary: FleetSummary) -> Condition:
    if not summary.refusal:
        return _NOT_REFUSED
    return _condition(TARGET_REFUSED, True, "DryRun", _refusal_words(summary))


def _blocking_reason(summary: FleetSummary) -> str:
    """Return the reason why no node progresses: paused, or what most nodes wait for, or held."""
    if summary.paused:
        return "Paused"
    if summary.refusal:
        return REFUSED
    if summary.waiting:
        return _by_frequency(summary)[0]
    if summary.on_delete:
        return "OnDelete"
    return "Held" if summary.held else _WAITING


def _describe_updated(summary: FleetSummary) -> str:
    return f"{summary.done} of {summary.desired} nodes are updated and available"


def _complete_text(summary: FleetSummary) -> str:
    """Return the text of a complete fleet; nodes that should have no pod may still wait."""
    parts = [
        _describe_updated(summary),
        *(f"besides them {part}" for part in _waiting_part(summary)),
    ]
    return "; ".join([*parts, *_removing_part(summary)])


def _summary(summary: FleetSummary) -> str:
    parts = [*_refusal_part(summary), *_waiting_part(summary), _count(summary)]
    return "; ".join([*parts, *_reverted_part(summary), *_removing_part(summary)])


def _reverted_part(summary: FleetSummary) -> list[str]:
    """Return the warning that a revert leaves the canaries where they are."""
    if not summary.reverted or not summary.held or summary.paused:
        return []
    return ["held nodes keep the version that was taken back until partition or selector allow it"]


def _removing_part(summary: FleetSummary) -> list[str]:
    """Return how many pods go because the template does not want them, without a budget."""
    if not summary.removing:
        return []
    why = "nodeSelector, affinity or taints"
    nodes = _count_nodes(summary.removing)
    return [f"pods are being removed from {nodes} that may not keep them ({why})"]


def _refusal_part(summary: FleetSummary) -> list[str]:
    if not summary.refusal:
        return []
    why = "no pod is taken, because the API server would refuse its successor"
    return [f"{why}: {_refusal_words(summary)}"]


def _refusal_words(summary: FleetSummary) -> str:
    return shorten(summary.refusal, _MAX_REFUSAL_CHARACTERS)


def _waiting_part(summary: FleetSummary) -> list[str]:
    # A waiting node may be updated already, or may be one that should have no pod.
    waiting = sum(len(names) for names in summary.waiting.values())
    wait = "1 node waits" if waiting == 1 else f"{waiting} nodes wait"
    return [f"{wait}: {format_waiting(summary)}"] if waiting else []


def _count(summary: FleetSummary) -> str:
    """Return the counts of nodes that should have a pod; each node is in one count."""
    later = "left until their pods are deleted" if summary.on_delete else "to come"
    numbers = {
        _DONE: summary.done,
        "under way": summary.under_way,
        later: summary.not_started,
        "held": summary.held,
    }
    parts = [f"{number} {what}" for what, number in numbers.items() if number or what == _DONE]
    return f"of {_count_nodes(summary.desired)} {', '.join(parts)}"


def _count_nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


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

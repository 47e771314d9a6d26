"""FleetView: how the rollout of one DaemonSet stands, node by node. Values only, no rendering."""

from __future__ import annotations

import enum

import msgspec

from everynode.api.daemonset import DaemonSet, DaemonSetStatus


class NodeStanding(enum.StrEnum):
    """How a node stands in the rollout."""

    UPDATED = "updated"  # its pod has the target revision and is available
    UPDATING = "updating"  # progresses, by the controller's writes or by the kubelet
    WAITING = "waiting"  # something outside of the controller has to change
    QUEUED = "queued"  # its turn has not come
    HELD = "held"  # partition, selector or a pause keep it at its revision
    NOT_ELIGIBLE = "not-eligible"  # should have no pod


class RolloutState(enum.StrEnum):
    """How a rollout stands."""

    COMPLETE = "complete"
    PROGRESSING = "progressing"
    WAITING = "waiting"  # nothing progresses at the moment, and nodes wait for something
    STALLED = "stalled"  # the same for so long that the condition Stalled says it
    PAUSED = "paused"
    HELD = "held"  # done as far as partition and selector release nodes
    ALL_BUT_SILENT = "all-but-silent"  # done but for a few nodes whose kubelet does not report
    ON_DELETE = "on-delete"  # old pods are updated when they are deleted
    UNOBSERVED = "unobserved"  # the controller has not seen the newest spec

    @property
    def ends_watch(self) -> bool:
        """Whether nothing more happens by itself: the rollout has got as far as was declared."""
        return self not in (
            RolloutState.PROGRESSING,
            RolloutState.WAITING,
            RolloutState.UNOBSERVED,
        )


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node in the rollout of one DaemonSet."""

    node: str
    standing: NodeStanding
    reason: str = ""  # a code such as ImagePullBackOff, Turn or Held
    message: str = ""
    revision: str = ""  # hash of its pod's revision; empty without a pod
    wanted: str = ""  # hash of the revision that its pod should have
    pod: str = ""
    ready: bool = False
    since: float | None = None  # when it came to stand like this, in seconds since the epoch
    place: int | None = None  # in the queue; 1 is next
    in_scope: bool = False  # whether partition, selector and pause let the target onto it
    labels: dict[str, str] = {}


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What the strategy promises, and how much of it is used."""

    field: str  # maxUnavailable or maxSurge
    written: str  # as in the manifest: 2 or 10%
    promised: int
    used: int


class RevisionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A revision of the history."""

    number: int
    hash: str
    name: str = ""
    created: float | None = None
    cause: str = ""  # the annotation kubernetes.io/change-cause
    images: tuple[str, ...] = ()
    template: bytes = b""
    pods: int = 0
    target: bool = False


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes there are of each kind."""

    desired: int = 0
    updated: int = 0  # and available, as the standing says
    ready: int = 0
    available: int = 0
    updating: int = 0
    waiting: int = 0
    queued: int = 0
    held: int = 0
    not_eligible: int = 0


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """How the rollout of one DaemonSet stands."""

    ds: DaemonSet
    state: RolloutState
    counts: Counts
    budget: Budget
    status: DaemonSetStatus  # as the controller would write it now
    rows: tuple[NodeRow, ...] = ()  # by node name
    revisions: tuple[RevisionInfo, ...] = ()  # oldest first
    target: str = ""  # hash
    images: tuple[str, ...] = ()  # of the target's template
    started: float | None = None  # when the rollout began, or when it was complete
    per_minute: float | None = None  # nodes updated per minute, of late
    seconds_left: float | None = None  # at that pace
    refusal: str = ""  # the API server's words, where it refuses the target's pods
    faults: str = ""  # values of the spec that mean nothing, and writes that were refused
    missing: tuple[str, ...] = ()  # permissions that the reader lacks

    @property
    def waiting(self) -> dict[str, tuple[str, ...]]:
        """Names of waiting nodes by reason code, the most frequent first."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            if row.standing is NodeStanding.WAITING:
                found.setdefault(row.reason, []).append(row.node)
        order = sorted(found, key=lambda code: (-len(found[code]), code))
        return {code: tuple(found[code]) for code in order}

    def revision_number(self, hash: str) -> int | None:
        """Return the number of a revision; None if it is not in the history."""
        return next((each.number for each in reversed(self.revisions) if each.hash == hash), None)

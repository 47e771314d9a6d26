"""StatusWriter: writes a status when it changed, at most twice a second, and backs off (R9) when
another manager writes it too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Final

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Flavour
from everynode.api.keys import FIELD_MANAGER
from everynode.api.versions import encode_status
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.controller.reporter import Reporter
from everynode.controller.requests import decode_write_response
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.kube import verbs
from everynode.kube.client import Client, NotLeader
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import MERGE_PATCH, Request
from everynode.kube.resources import ADVANCED, DAEMONSETS
from everynode.kube.watch.cache import parse_resource_version

WRITE_INTERVAL: Final = 0.5  # seconds between two writes of one status
# A change in counts alone waits this long for others: a pod that is deleted is followed by its
# replacement, and often the counts are then as they were and nothing has to be written.
COUNTS_DELAY: Final = 1.0
_MAX_WRITE_INTERVAL: Final = 2.0
_NODES_PER_SECOND: Final = 1000  # counts of a DaemonSet of this size are written once a second
_REFUSED_PAUSE: Final = 5.0
_SHOWN_AFTER: Final = 20.0  # the watch normally shows a write within milliseconds
_CONFLICT: Final = Backoff(first=60.0, longest=3600.0)  # another manager writes the status
# Our DaemonSet is older than the stored one.
_STALE: Final = Backoff(first=WRITE_INTERVAL, longest=30.0)
_OMITTED_WHEN_ZERO: Final = (
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "conditions",
)
_MAX_OWN_STATUSES: Final = 8  # statuses that we sent and that the watch may still show
_Counts = tuple[int | str, ...]


@dataclass(slots=True)
class _StatusState:
    """State of the status writes of one DaemonSet."""

    decided: DaemonSetStatus | None = None  # by the last reconcile
    sent: DaemonSetStatus | None = None
    # Counts that may be stored because we sent them, whatever the response was.
    ours: deque[_Counts] = field(default_factory=lambda: deque(maxlen=_MAX_OWN_STATUSES))
    version: int = 0  # resourceVersion in the response to our last write
    written_at: float = 0.0
    writing: bool = False
    next_at: float = 0.0  # no write before then
    counts_at: float = 0.0  # no write of counts alone before then
    counts_since: float | None = None  # since when counts differ from those written
    stale_writes: int = 0  # in a row, refused because our DaemonSet is outdated


@dataclass(slots=True)
class StatusConflict:
    """Another manager wrote the status: we back off from the DaemonSet.

    By the monotonic clock, so that setting the wall clock neither ends nor extends it.
    """

    count: int = 0  # how often it began again; halves the pause for every pause without it
    until: float = 0.0
    over: bool = True

    def begin(self, now: float) -> float:
        """Another manager wrote now; return for how long to back off.

        Its further writes during the pause extend the pause without doubling it: only a conflict
        that begins again doubles it. Every pause that passed since without one halves it again.
        """
        if self.over:
            quiet = now - self.until
            while self.count and quiet >= _CONFLICT.delay(self.count):
                quiet -= _CONFLICT.delay(self.count)
                self.count -= 1
            self.count += 1
            self.over = False
        seconds = _CONFLICT.delay(self.count)
        self.until = now + seconds
        return seconds


StatusConflicts = dict[str, StatusConflict]  # by the key of the DaemonSet


class StatusWriter:
    """Writes the statuses of all DaemonSets."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        queue: ReconcileQueue,
        reporter: Reporter,
        conflicts: StatusConflicts,
    ) -> None:
        self._client = client
        self._clock = clock
        self._queue = queue
        self._reporter = reporter
        self._conflicts = conflicts
        self._statuses: dict[str, _StatusState] = {}

    def observe(self, before: DaemonSet, after: DaemonSet, state: DaemonSetState) -> bool:
        """Take in a DaemonSet from the watch; back off if another manager changed its counts (R9).

        That also holds before our first write of a term: writes of an earlier term were in the
        cache when this one began. Returns whether the status differs from the one decided last.
        """
        known = self._status_state(state)
        differs = after.status != known.decided
        if known.stale_writes:  # the newer DaemonSet has arrived
            known.stale_writes = 0
            known.next_at = min(known.next_at, self._clock.now() + WRITE_INTERVAL)
        if parse_resource_version(after.metadata.resource_version) <= known.version:
            return differs  # our last write, or older
        if _counts(after.status) in (*known.ours, _counts(before.status)):
            return differs
        self._back_off(state)
        return True

    def _back_off(self, state: DaemonSetState) -> None:
        state.take_back_writes()
        conflict = self._conflicts.setdefault(state.key, StatusConflict())
        self._reporter.status_conflict(state, conflict.begin(self._clock.monotonic()))

    def backing_off_until(self, state: DaemonSetState) -> float:
        """Until when the DaemonSet is left to another manager; 0 if it is not."""
        conflict = self._conflicts.get(state.key)
        if conflict is None or conflict.over:
            return 0.0
        now = self._clock.now()
        until = now + (conflict.until - self._clock.monotonic())
        if until > now:
            return until
        conflict.over = True
        self._reporter.status_conflict(state, 0.0)
        return 0.0

    def clock_set_back(self, by: float) -> None:
        """Keep the remaining waits although the wall clock was set back."""
        for known in self._statuses.values():
            known.written_at -= by
            known.next_at -= by
            known.counts_at -= by
            if known.counts_since is not None:
                known.counts_since -= by

    def forget(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""
        self._statuses.pop(state.key, None)
        self._conflicts.pop(state.key, None)

    def due_at(self, state: DaemonSetState, status: DaemonSetStatus) -> float | None:
        """When this status is to be written; None if there is nothing to write."""
        known = self._status_state(state)
        known.decided = status
        if status == state.ds.status or known.writing:
            known.counts_since = None
            return None
        if (
            known.sent == status
            and parse_resource_version(state.ds.metadata.resource_version) < known.version
        ):
            # Written and not shown yet; a server restored from a backup never shows it.
            return max(known.next_at, known.written_at + _SHOWN_AFTER)
        if not _only_counts_differ(state.ds.status, status):
            return known.next_at
        if known.counts_since is None:
            known.counts_since = self._clock.now()
        return max(known.next_at, known.counts_at, known.counts_since + COUNTS_DELAY)

    def _status_state(self, state: DaemonSetState) -> _StatusState:
        known = self._statuses.get(state.key)
        if known is None:
            known = self._statuses[state.key] = _StatusState()
        return known

    def write(self, state: DaemonSetState, status: DaemonSetStatus) -> Coroutine[None, None, None]:
        """Write the status, on the condition that the stored DaemonSet is the one we know now.

        It counts as being written from now on, not from when the coroutine is run.
        """
        known = self._status_state(state)
        known.writing = True
        known.counts_since = None
        known.sent = status
        known.ours.append(_counts(status))
        return self._write(known, state, status, _request(state.ds, status))

    async def _write(
        self, known: _StatusState, state: DaemonSetState, status: DaemonSetStatus, request: Request
    ) -> None:
        pause, done = WRITE_INTERVAL, False
        try:
            answer = await self._client.write(request, decode_write_response)
            known.version = answer.version
            known.written_at = self._clock.now()
            # The more nodes, the longer counts wait for each other.
            known.counts_at = known.written_at + min(
                status.desired / _NODES_PER_SECOND, _MAX_WRITE_INTERVAL
            )
            known.stale_writes = 0
            # Earlier statuses can no longer be stored: their precondition is an older version.
            known.ours.clear()
            known.ours.append(_counts(status))
            done = True
        except (NotLeader, NotFound, Conflict):
            known.sent = None  # the watch will show a newer DaemonSet
            known.stale_writes += 1
            pause = _STALE.delay(known.stale_writes)
        except KubeError as error:
            pause = _REFUSED_PAUSE
            known.sent = None
            self._reporter.status_write_failed(state, error)
        finally:
            known.writing = False
            known.next_at = self._clock.now() + pause
            if not (done and known.decided == status):  # else nothing has changed since
                self._queue.add_at(state.key, known.next_at)


def _request(ds: DaemonSet, status: DaemonSetStatus) -> Request:
    resource = DAEMONSETS if ds.flavour is Flavour.NATIVE else ADVANCED
    body = {
        "metadata": {"uid": ds.uid, "resourceVersion": ds.metadata.resource_version},
        # Zero counts are omitted from the status, so the patch has to remove them.
        "status": dict.fromkeys(_OMITTED_WHEN_ZERO) | encode_status(ds.flavour, status),
    }
    return verbs.patch(
        resource,
        ds.name,
        body,
        kind=MERGE_PATCH,
        namespace=ds.namespace,
        subresource="status",
        manager=FIELD_MANAGER,
    )


def _only_counts_differ(before: DaemonSetStatus, after: DaemonSetStatus) -> bool:
    """Whether the statuses differ only in counts, and in nothing that people and tools wait for."""
    return _milestones(before) == _milestones(after)


def _milestones(status: DaemonSetStatus) -> tuple[object, ...]:
    return (
        status.observed_generation,
        status.desired,
        status.misscheduled,
        status.update_revision,
        status.updated >= status.desired,  # then only availability is missing
        [(each.type, each.status, each.reason) for each in status.conditions],
    )


def _counts(status: DaemonSetStatus) -> _Counts:
    """The fields of a status that only its controller writes."""
    return (
        status.observed_generation,
        status.desired,
        status.current,
        status.misscheduled,
        status.ready,
        status.updated,
        status.available,
        status.unavailable,
        status.update_revision,
    )

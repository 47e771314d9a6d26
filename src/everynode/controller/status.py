"""Writing the status: only when it changed, a few times a second at most, never in a fight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Flavour
from everynode.api.keys import FIELD_MANAGER
from everynode.api.versions import encode_status
from everynode.clock import Clock
from everynode.controller.workload import Workload
from everynode.kube import verbs
from everynode.kube.cache import number
from everynode.kube.client import Client, MayNotWrite
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import MERGE_PATCH, Request
from everynode.kube.resources import ADVANCED, DAEMONSETS

INTERVAL: Final = 0.5  # seconds between two writes of one status
# Numbers that move wait so long for others: a node that goes down is followed by its return, one
# that is done by the next that is taken, and often nothing is left to write.
MOMENT: Final = 1.0
_LONGEST_INTERVAL: Final = 2.0
_PER_SECOND: Final = 1000  # a fleet of so many nodes is worth a write a second
_REFUSED_PAUSE: Final = 5.0
_SHOWN_AFTER: Final = 20.0  # what was written shows in the watch within moments
_LONGEST_PAUSE: Final = 30.0  # between writes that come too late for the DaemonSet they mean
_FIRST_TRUCE: Final = 60.0  # how long a set is left alone after another manager wrote its status
_LONGEST_TRUCE: Final = 3600.0
_OMITTED_WHEN_ZERO: Final = (
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "conditions",
)


_REMEMBERED: Final = 8  # statuses that we sent and may yet be shown
_Numbers = tuple[int | str, ...]


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decode_answer: Final = msgspec.json.Decoder(_Answer).decode


class Teller(Protocol):
    """Whoever hears of trouble with the status."""

    def status_refused(self, workload: Workload, error: KubeError) -> None:
        """A status could not be written."""
        ...

    def contested(self, workload: Workload, seconds: float) -> None:
        """Another manager writes this status too; the set is left alone for so long."""
        ...


@dataclass(slots=True)
class _Page:
    """What is known of one status."""

    decided: DaemonSetStatus | None = None  # at the last look
    sent: DaemonSetStatus | None = None
    # Numbers that may be stored because we sent them, whatever was answered.
    ours: deque[_Numbers] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    version: int = 0  # of the answer to our last write
    written_at: float = 0.0
    writing: bool = False
    next_at: float = 0.0  # not before then
    moves_at: float = 0.0  # nor, if only numbers have moved, before then
    moved_at: float | None = None  # since when numbers differ from those that are written
    conflicts: int = 0  # in a row: what we go by is older than what is there


@dataclass(slots=True)
class Truce:
    """How long a set is left to another manager, whatever somebody does to the wall clock."""

    seconds: float = 0.0
    until: float | None = None  # by the monotonic clock; None once it is over


Truces = dict[str, Truce]  # by the workload's key


class Statuses:
    """The statuses of all workloads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        again: Callable[[str, float], None],
        teller: Teller,
        truces: Truces,
    ) -> None:
        self._client = client
        self._clock = clock
        self._again = again  # look at the workload of this key at that time
        self._teller = teller
        self._truces = truces
        self._pages: dict[str, _Page] = {}

    def observed(self, before: DaemonSet, after: DaemonSet, workload: Workload) -> bool:
        """Look whether somebody else changed the numbers that we write (R9).

        Also before our first write: whatever an earlier term wrote was there when ours began.
        The answer is whether it shows anything but what was decided last.
        """
        page = self._page(workload)
        news = after.status != page.decided
        if page.conflicts:  # what we lacked has come
            page.conflicts = 0
            page.next_at = min(page.next_at, self._clock.now() + INTERVAL)
        if number(after.metadata.resource_version) <= page.version:
            return news  # older than what we wrote last, or that itself
        if _owned(after.status) in (*page.ours, _owned(before.status)):
            return news
        truce = self._truces.setdefault(workload.key, Truce())
        truce.seconds = min(max(truce.seconds * 2, _FIRST_TRUCE), _LONGEST_TRUCE)
        truce.until = self._clock.monotonic() + truce.seconds
        self._teller.contested(workload, truce.seconds)
        return True

    def truce_until(self, workload: Workload) -> float:
        """Until when the set is left to another manager; 0 when there is none."""
        truce = self._truces.get(workload.key)
        if truce is None or truce.until is None:
            return 0.0
        now = self._clock.now()
        until = now + (truce.until - self._clock.monotonic())
        if until > now:
            return until
        truce.until = None
        self._teller.contested(workload, 0.0)
        return 0.0

    def forget(self, workload: Workload) -> None:
        """The DaemonSet is gone."""
        self._pages.pop(workload.key, None)
        self._truces.pop(workload.key, None)

    def due_at(self, workload: Workload, status: DaemonSetStatus) -> float | None:
        """When the status should be written: None if there is nothing to write."""
        page = self._page(workload)
        page.decided = status
        if status == workload.ds.status or page.writing:
            page.moved_at = None
            return None
        if page.sent == status and number(workload.ds.metadata.resource_version) < page.version:
            # Written, not seen yet. A server restored from a backup will never show it.
            return max(page.next_at, page.written_at + _SHOWN_AFTER)
        if not _only_moves(workload.ds.status, status):
            return page.next_at
        if page.moved_at is None:
            page.moved_at = self._clock.now()
        return max(page.next_at, page.moves_at, page.moved_at + MOMENT)

    def _page(self, workload: Workload) -> _Page:
        page = self._pages.get(workload.key)
        if page is None:
            page = self._pages[workload.key] = _Page()
        return page

    def write(self, workload: Workload, status: DaemonSetStatus) -> Coroutine[None, None, None]:
        """Write the status, if the DaemonSet is still the one it was worked out from.

        It counts as under way from now on, not from when somebody runs the coroutine; and it goes
        by the DaemonSet of now, for another one may come before that.
        """
        page = self._page(workload)
        page.writing = True
        page.moved_at = None
        page.sent = status
        page.ours.append(_owned(status))
        return self._write(page, workload, status, _request(workload.ds, status))

    async def _write(
        self, page: _Page, workload: Workload, status: DaemonSetStatus, request: Request
    ) -> None:
        pause, done = INTERVAL, False
        try:
            answer = await self._client.write(request, _decode_answer)
            page.version = number(answer.metadata.resource_version)
            page.written_at = self._clock.now()
            # The more nodes, the more their numbers wait for each other; words do not.
            page.moves_at = page.written_at + min(status.desired / _PER_SECOND, _LONGEST_INTERVAL)
            page.conflicts = 0
            # What we sent before can no longer be stored: it went by an older version.
            page.ours.clear()
            page.ours.append(_owned(status))
            done = True
        except (MayNotWrite, NotFound, Conflict):
            page.sent = None  # a newer DaemonSet is on its way to us, sooner or later
            page.conflicts += 1
            pause = min(pause * 2.0 ** min(page.conflicts - 1, 10), _LONGEST_PAUSE)
        except KubeError as error:
            pause = _REFUSED_PAUSE
            page.sent = None
            self._teller.status_refused(workload, error)
        finally:
            page.writing = False
            page.next_at = self._clock.now() + pause
            if not (done and page.decided == status):  # else there is nothing to add
                self._again(workload.key, page.next_at)


def _request(ds: DaemonSet, status: DaemonSetStatus) -> Request:
    resource = DAEMONSETS if ds.flavour is Flavour.NATIVE else ADVANCED
    body = {
        "metadata": {"uid": ds.uid, "resourceVersion": ds.metadata.resource_version},
        # What is zero is left out of the status, so the patch has to take it away.
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


def _only_moves(before: DaemonSetStatus, after: DaemonSetStatus) -> bool:
    """Whether only numbers differ, and the words about them: nobody waits for that."""
    return _said(before) == _said(after)


def _said(status: DaemonSetStatus) -> tuple[object, ...]:
    return (
        status.observed_generation,
        status.desired,
        status.misscheduled,
        status.update_revision,
        status.updated >= status.desired,  # from here on, people wait for the last to be available
        [(each.type, each.status, each.reason) for each in status.conditions],
    )


def _owned(status: DaemonSetStatus) -> _Numbers:
    """The part of a status that only its controller writes."""
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

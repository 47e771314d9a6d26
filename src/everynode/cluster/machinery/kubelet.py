"""All kubelets in one: pods that appear on nodes are started, followed, stopped and reported."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

import msgspec

from everynode.cluster.machinery.acceptance import choose_victim, refuse, refuse_resize
from everynode.cluster.machinery.lives import Course, PodLife
from everynode.cluster.machinery.objects import Pod
from everynode.cluster.machinery.seats import Seat
from everynode.cluster.machinery.status import OWN_CONDITIONS, Object, pod_status
from everynode.cluster.machinery.timers import NEVER, Timers
from everynode.cluster.machinery.writes import Answer, Writes, version_in
from everynode.kube import verbs
from everynode.kube.cache import number
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import STRATEGIC_PATCH, Request
from everynode.kube.resources import PODS

_LOG: Final = logging.getLogger(__name__)
_RETRY: Final = 1.0  # seconds until a write that failed is tried again


class Kubelet:
    """Runs the pods of every node."""

    def __init__(self, timers: Timers, writes: Writes) -> None:
        self._timers = timers
        self._writes = writes

    def take(self, life: PodLife, seat: Seat) -> None:
        """A pod has come to a node, or is found there after a restart."""
        now = self._timers.now()
        life.resume(now)
        fresh = life.course is Course.LIVING and life.pod.status.start_time is None
        refusal = refuse(life.pod, seat) if fresh else None
        seat.lives[life.uid] = life
        if refusal is not None:
            life.fail(now, *refusal)
            life.announce(*refusal)
        elif life.pod.terminating:
            life.follow(life.pod, now)
        self._consider_resize(life, seat)
        self.look(life, seat)

    def settle(self, life: PodLife, seat: Seat) -> Object | None:
        """Let a pod have been running for a while; what is told of it, None if it is refused."""
        if refuse(life.pod, seat) is not None:
            return None
        life.settle(self._timers.now())
        seat.lives[life.uid] = life
        status = pod_status(life)
        life.written, life.stale = msgspec.json.encode(status), False
        self._arm(life, seat)
        return status

    def follow(self, life: PodLife, seat: Seat, pod: Pod) -> None:
        """A pod has changed in the API."""
        life.follow(pod, self._timers.now())
        if not life.writing:
            self._mind(life)
        self._consider_resize(life, seat)
        self.look(life, seat)

    def drop(self, life: PodLife, seat: Seat) -> None:
        """A pod is gone from the API."""
        if seat.lives.pop(life.uid, None) is None:
            return
        seat.free_address(life.ip, life.uid)
        for other in list(seat.lives.values()):
            if other.resize is not None and other.resize.reason == "Deferred":
                other.resize = None
                other.stale = True
                self._consider_resize(other, seat)
                self.look(other, seat)

    def evict(self, seat: Seat, resource: str) -> None:
        """Let a node under pressure lose its least important pod."""
        life = choose_victim(seat)
        if life is None or seat.stopped:
            return
        text = f"The node was low on resource: {resource}. "
        life.fail(self._timers.now(), "Evicted", text)
        life.announce("Evicted", text)
        self.look(life, seat)

    def look(self, life: PodLife, seat: Seat) -> None:
        """Let everything happen to a pod that is due, and report it."""
        if seat.stopped or seat.lives.get(life.uid) is not life:
            return
        life.advance(self._timers.now())
        if life.stale and not life.writing:
            self._report(life, seat)
        if life.course is Course.STOPPED and not life.writing:
            self._remove(life, seat)
        self._arm(life, seat)

    def _mind(self, life: PodLife) -> None:
        """Write again what somebody else has written differently."""
        if _contradicted(life):
            life.written, life.stale = b"", True

    def _consider_resize(self, life: PodLife, seat: Seat) -> None:
        if life.course is not Course.LIVING:
            return
        if not life.resized():
            life.stale = life.stale or life.resize is not None
            life.resize = None
        elif life.resize is None or life.resize.wanted != life.wanted():
            life.begin_resize(self._timers.now(), refuse_resize(life, seat))

    def _arm(self, life: PodLife, seat: Seat) -> None:
        if life.until < life.armed:
            life.armed = life.until
            self._timers.at(life.until, partial(self._ring, life, seat, life.until))

    def _ring(self, life: PodLife, seat: Seat, armed: float) -> None:
        # A timer that an earlier one has overtaken has nothing to say.
        if life.armed == armed:
            life.armed = NEVER
            self.look(life, seat)

    # --- Writing ---------------------------------------------------------------------------------

    def _report(self, life: PodLife, seat: Seat) -> None:
        over = life.course is Course.OVER and life.failure is None and life.pod.finished
        life.stale = False
        if over or life.course is Course.REMOVED:
            return
        status = msgspec.json.encode(pod_status(life))
        if status != life.written:
            body = b'{"metadata":{"uid":"%b"},"status":%b}' % (life.uid.encode(), status)
            self._send(life, seat, _status_patch(life.pod, body), status)

    def _remove(self, life: PodLife, seat: Seat) -> None:
        """All has been said of a pod that has stopped."""
        life.course = Course.REMOVED
        self._send(life, seat, _removal(life.pod), life.written)

    def _send(self, life: PodLife, seat: Seat, request: Request, status: bytes) -> None:
        life.writing = True
        self._writes.send(request, partial(self._answered, life, seat, status))

    def _answered(self, life: PodLife, seat: Seat, status: bytes, answer: Answer) -> None:
        life.writing = False
        if not isinstance(answer, KubeError):
            if life.course is Course.REMOVED:
                return
            life.written = status
            life.written_version = max(life.written_version, version_in(answer))
            # What others wrote meanwhile may have been told before our own answer came.
            self._mind(life)
            self.look(life, seat)
        elif isinstance(answer, NotFound | Conflict):
            # Another pod has the name, or nobody: the watch will tell.
            life.written = status
        else:
            _LOG.warning("%s, trying again", answer)
            life.stale = True
            if life.course is Course.REMOVED:
                life.course = Course.STOPPED
            self._timers.after(_RETRY, partial(self.look, life, seat))


def _contradicted(life: PodLife) -> bool:
    """Whether somebody else has written one of the conditions that are the kubelet's to write."""
    # What is no newer than our own last write says what we wrote.
    if number(life.pod.metadata.resource_version) <= life.written_version or not life.written:
        return False
    for kind in OWN_CONDITIONS:
        told, seen = life.conditions.get(kind), life.pod.condition(kind)
        if told is not None and (seen is None or seen.status != told.status):
            return True
    return False


def _status_patch(pod: Pod, body: bytes) -> Request:
    meta = pod.metadata
    return verbs.patch(
        PODS,
        meta.name,
        body,
        kind=STRATEGIC_PATCH,
        namespace=meta.namespace,
        subresource="status",
        manager="kubelet",
    )


def _removal(pod: Pod) -> Request:
    meta = pod.metadata
    return verbs.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0)

"""Executor: sends the decided writes to pods and records the outcome of each for its node."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Final, TypeGuard

from everynode.api.keys import REVISION_HASH
from everynode.api.objects import Pod
from everynode.clock import Clock
from everynode.controller.pending_writes import PendingWrite, version_of
from everynode.controller.reporter import Reporter
from everynode.controller.requests import decode_write_response, pod_request
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import Cause, CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.revisions.ownership import (
    Claim,
    claim,
    is_owner,
    release_patch,
    restore_hash_patch,
)
from everynode.kube import verbs
from everynode.kube.client import Client, NotLeader
from everynode.kube.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Invalid,
    KubeError,
    NamespaceTerminating,
    NotFound,
    QuotaExceeded,
    UnknownOutcome,
)
from everynode.kube.resources import PODS
from everynode.kube.watch.decode import Decoder

MAX_CONCURRENT_WRITES: Final = 64
_MISSING_FIRST: Final = 0  # a node without a pod does not wait for a rollout
_ROLLOUT: Final = 1
_URGENT: Final = frozenset({Cause.MISSING, Cause.REPLACE_FINISHED, Cause.GATE})


_decode_pod: Final = Decoder(Pod).one


class Executor:
    """Sends writes with a bounded number of concurrent workers, missing pods first.

    A DaemonSet with few writes does not wait for all writes of another one.
    """

    def __init__(
        self, client: Client, clock: Clock, *, queue: ReconcileQueue, reporter: Reporter
    ) -> None:
        self._client = client
        self._clock = clock
        self._queue = queue
        self._reporter = reporter
        self._order = itertools.count()
        # A heap of nodes: a write that is taken back while it waits may be followed by another.
        self._waiting: list[tuple[int, int, int, DaemonSetState, str]] = []
        # Within a rank DaemonSets take turns: the turn that is served, and the last one of each.
        self._turns = {_MISSING_FIRST: 0, _ROLLOUT: 0}
        self._last_turns: dict[tuple[int, str], int] = {}
        self._workers = 0
        self._tasks: asyncio.TaskGroup | None = None

    def put(self, state: DaemonSetState, write: PendingWrite) -> None:
        """Send a write as soon as a worker is free."""
        rank = _MISSING_FIRST if write.action.cause in _URGENT else _ROLLOUT
        turn = max(self._turns[rank], self._last_turns.get((rank, state.key), 0)) + 1
        self._last_turns[rank, state.key] = turn
        place = rank, turn, next(self._order)
        heapq.heappush(self._waiting, (*place, state, write.action.node))
        self._start_worker()

    async def run(self) -> None:
        """Send writes until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            for _ in self._waiting:
                self._start_worker()
            await asyncio.get_running_loop().create_future()

    def _start_worker(self) -> None:
        """Start a worker for a waiting write; workers end when nothing waits."""
        if self._tasks is not None and self._workers < MAX_CONCURRENT_WRITES:
            self._workers += 1
            self._tasks.create_task(self._worker())

    async def _worker(self) -> None:
        while self._waiting:
            state, node = self._take()
            slow_start = state.slow_start
            write = state.start_write(node, self._clock.now())
            committed = write is not None and await self._send(state, write)
            self._queue.add_written(state.key, committed=committed, slow_start=slow_start)
        self._workers -= 1

    def _take(self) -> tuple[DaemonSetState, str]:
        """Return whose turn it is, and on which node."""
        rank, turn, _, state, node = heapq.heappop(self._waiting)
        self._turns[rank] = turn
        if not self._waiting:
            self._last_turns.clear()
        return state, node

    async def _send(self, state: DaemonSetState, write: PendingWrite) -> bool:
        """Send one write; return whether it was committed."""
        action = write.action
        try:
            answer = await self._client.write(
                pod_request(action, state.ds.namespace), decode_write_response
            )
        except KubeError as error:
            await self._handle_error(state, write, error)
            return False
        self._reporter.pod_written(state, action)
        state.write_committed(
            action.node,
            write,
            uid=answer.metadata.uid,
            version=answer.version,
            now=self._clock.now(),
        )
        return True

    async def _handle_error(
        self, state: DaemonSetState, write: PendingWrite, error: KubeError
    ) -> None:
        node, now = write.action.node, self._clock.now()
        match error:
            case NotLeader():
                state.write_refused(node, write, message="", now=now)
            case UnknownOutcome():
                self._reporter.pod_write_failed(state, write.action, error)
                state.write_outcome_unknown(node, write, now=now)
            case AlreadyExists() if isinstance(write.action, CreatePod):
                await self._resolve_name_conflict(state, write)
            case NotFound() if not isinstance(write.action, CreatePod):
                # Gone already, which the watch will show: retry with a pause.
                state.write_refused(node, write, message="", now=now)
            case Conflict():
                state.write_refused(node, write, message="", now=now)
            case NamespaceTerminating():
                state.write_refused(node, write, message="the namespace is being deleted", now=now)
            case _:
                if _is_resize_invalid(write.action, error):
                    state.resize_refused(write.action)
                self._reporter.pod_write_failed(state, write.action, error)
                state.write_refused(node, write, message=error.message, now=now)

    # --- Reading pods ----------------------------------------------------------------------

    async def verify(self, state: DaemonSetState, node: str, write: PendingWrite) -> None:
        """Read the pod from the API server: was the write committed?"""
        now = self._clock.now()
        try:
            pod = await self._read(state, write.action.name)
        except NotFound:
            if isinstance(write.action, CreatePod):
                state.drop_write(node, write)  # not committed: decide again
            else:
                state.pod_is_gone(node, write, now=now)
            return
        except KubeError:
            state.write_outcome_unknown(node, write, now=now)  # no response: read again later
            return
        if isinstance(write.action, CreatePod) and not _owned(state, pod):
            state.name_taken(node, write, holders=(pod.uid,))
        elif _is_not_committed(write.action, pod):
            state.drop_write(node, write)
        else:
            state.write_committed(node, write, uid=pod.uid, version=version_of(pod), now=now)

    async def _resolve_name_conflict(self, state: DaemonSetState, write: PendingWrite) -> None:
        """Handle a create whose name a pod has: ours, one to be released, or a foreign one."""
        node, now = write.action.node, self._clock.now()
        try:
            holder = await self._read(state, write.action.name)
            holders = (*state.name_holders.get(node, ()), holder.uid)
            if not _owned(state, holder):
                state.name_taken(node, write, holders=holders)
            elif claim(state.ds, holder) is Claim.RELEASE:
                await self._patch(state, release_patch(state.ds, holder))
                state.name_taken(node, write, holders=holders)
            elif REVISION_HASH not in holder.metadata.labels:
                # The label by which the watch selects our pods was removed: put it back.
                await self._label(state, write, holder)
            else:
                state.write_committed(
                    node, write, uid=holder.uid, version=version_of(holder), now=now
                )
        except KubeError:
            state.write_refused(node, write, message="", now=now)

    async def _label(self, state: DaemonSetState, write: PendingWrite, holder: Pod) -> None:
        assert isinstance(write.action, CreatePod)
        await self._patch(state, restore_hash_patch(holder, write.action.revision))
        state.drop_write(write.action.node, write)

    async def _patch(self, state: DaemonSetState, action: PatchPod) -> None:
        await self._client.write(pod_request(action, state.ds.namespace), decode_write_response)
        self._reporter.pod_written(state, action)

    async def _read(self, state: DaemonSetState, name: str) -> Pod:
        request = verbs.get(PODS, name, namespace=state.ds.namespace)
        return await self._client.read(request, _decode_pod)


def _is_resize_invalid(action: PodAction, error: KubeError) -> TypeGuard[PatchPod]:
    """Whether a resize was refused as invalid, and not because a quota is used up."""
    resize = isinstance(action, PatchPod) and action.subresource == "resize"
    return resize and isinstance(error, Denied | Invalid) and not isinstance(error, QuotaExceeded)


def _owned(state: DaemonSetState, pod: Pod) -> bool:
    controller = pod.metadata.controller
    return controller is not None and is_owner(state.ds, controller)


def _is_not_committed(action: PodAction, live: Pod) -> bool:
    """Whether the pod shows that a delete or patch was not committed, or no longer matters."""
    match action:
        case DeletePod():
            return live.uid == action.uid and not live.terminating
        case PatchPod():
            return live.uid != action.uid
        case CreatePod():
            return False

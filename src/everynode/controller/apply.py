"""Carrying out actions on pods, and what each answer means for the node."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Final, Protocol, TypeGuard

import msgspec

from everynode.api.decode import Decoder
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import Pod
from everynode.clock import Clock
from everynode.controller.calls import pod_request
from everynode.controller.workload import Workload
from everynode.controller.writes import Write, parse_version, version_of
from everynode.decide.actions import Because, CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.claim import Claim, claim, is_owner, release_patch, show_patch
from everynode.kube import verbs
from everynode.kube.client import Client, MayNotWrite
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

WRITERS: Final = 64
_FIRST: Final = 0  # nodes that have no pod wait for nobody's rollout
_THEN: Final = 1
_URGENT: Final = frozenset({Because.MISSING, Because.REPLACE_FINISHED, Because.GATE})


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decode_pod: Final = Decoder(Pod).one
_decode_answer: Final = msgspec.json.Decoder(_Answer).decode


class Teller(Protocol):
    """Whoever hears what happened to pods: the log, the metrics and the events."""

    def pod_written(self, workload: Workload, action: PodAction) -> None:
        """An action succeeded."""
        ...

    def pod_refused(self, workload: Workload, action: PodAction, error: KubeError) -> None:
        """An action failed."""
        ...


class Applier:
    """A bounded number of writers that carry out what was decided, missing pods first."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        now: Callable[[str], None],
        soon: Callable[[str], None],
        teller: Teller,
    ) -> None:
        self._client = client
        self._clock = clock
        # Called with the workload's key when a node needs another look.
        self._now = now
        self._soon = soon
        self._teller = teller
        self._order = itertools.count()
        # A heap, bounded by the decisions: a node has at most one write under way.
        self._waiting: list[tuple[int, int, Workload, Write]] = []
        self._writing = 0
        self._tasks: asyncio.TaskGroup | None = None

    def put(self, workload: Workload, write: Write) -> None:
        """Have a write carried out."""
        rank = _FIRST if write.action.because in _URGENT else _THEN
        heapq.heappush(self._waiting, (rank, next(self._order), workload, write))
        self._employ()

    async def run(self) -> None:
        """Carry out writes until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            for _ in self._waiting:
                self._employ()
            await asyncio.get_running_loop().create_future()

    def _employ(self) -> None:
        """Take on a writer for what waits; most of the time nothing does, and there are none."""
        if self._tasks is not None and self._writing < WRITERS:
            self._writing += 1
            self._tasks.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            _, _, workload, write = heapq.heappop(self._waiting)
            starting_slowly = workload.starting_slowly
            done = workload.writes.get(write.action.node) is write and (
                await self._carry_out(workload, write)
            )
            # What was done will be seen; only a slow start waits for the answer itself.
            (self._soon if done and not starting_slowly else self._now)(workload.key)
        self._writing -= 1

    async def _carry_out(self, workload: Workload, write: Write) -> bool:
        """Send one write; whether the server did it."""
        action = write.action
        try:
            answer = await self._client.write(
                pod_request(action, workload.ds.namespace), _decode_answer
            )
        except KubeError as error:
            await self._explain(workload, write, error)
            return False
        self._teller.pod_written(workload, action)
        workload.answered(
            action.node,
            write,
            uid=answer.metadata.uid,
            version=parse_version(answer.metadata.resource_version),
            now=self._clock.now(),
        )
        return True

    async def _explain(self, workload: Workload, write: Write, error: KubeError) -> None:
        node, now = write.action.node, self._clock.now()
        match error:
            case MayNotWrite():
                workload.refused(node, write, trouble="", now=now)
            case UnknownOutcome():
                self._teller.pod_refused(workload, write.action, error)
                workload.lost(node, write, now=now)
            case AlreadyExists() if isinstance(write.action, CreatePod):
                await self._meet_holder(workload, write)
            case NotFound() if not isinstance(write.action, CreatePod):
                # Gone already. The watch will say so, but may take its time: not at once again.
                workload.refused(node, write, trouble="", now=now)
            case Conflict():
                workload.refused(node, write, trouble="", now=now)
            case NamespaceTerminating():
                workload.refused(node, write, trouble="the namespace is being deleted", now=now)
            case _:
                if _is_vain_resize(write.action, error):
                    workload.refused_resize(write.action)
                self._teller.pod_refused(workload, write.action, error)
                workload.refused(node, write, trouble=error.message, now=now)

    # --- Looking live ----------------------------------------------------------------------

    async def settle(self, workload: Workload, node: str, write: Write) -> None:
        """Look at the pod live: did the write happen?"""
        now = self._clock.now()
        try:
            pod = await self._read(workload, write.action.name)
        except NotFound:
            if isinstance(write.action, CreatePod):
                workload.forget(node, write)  # it did not happen: decide again
            else:
                workload.gone(node, write, now=now)
            return
        except KubeError:
            workload.lost(node, write, now=now)  # no answer: ask again later
            return
        if isinstance(write.action, CreatePod) and not _owned(workload, pod):
            workload.strangers[node] = (pod.uid,)
            workload.forget(node, write)
        elif _undone(write.action, pod):
            workload.forget(node, write)
        else:
            workload.answered(node, write, uid=pod.uid, version=version_of(pod), now=now)

    async def _meet_holder(self, workload: Workload, write: Write) -> None:
        """The name is taken: by ourselves, by a pod we let go, or by a stranger."""
        node, now = write.action.node, self._clock.now()
        try:
            holder = await self._read(workload, write.action.name)
            if not _owned(workload, holder):
                workload.strangers[node] = (*workload.strangers.get(node, ()), holder.uid)
                workload.forget(node, write)
            elif claim(workload.ds, holder) is Claim.RELEASE:
                await self._patch(workload, release_patch(workload.ds, holder))
                workload.strangers[node] = (*workload.strangers.get(node, ()), holder.uid)
                workload.forget(node, write)
            elif REVISION_HASH not in holder.metadata.labels:
                # Somebody took off the label by which we see our pods: put it back.
                await self._label(workload, write, holder)
            else:
                workload.answered(node, write, uid=holder.uid, version=version_of(holder), now=now)
        except KubeError:
            workload.refused(node, write, trouble="", now=now)

    async def _label(self, workload: Workload, write: Write, holder: Pod) -> None:
        assert isinstance(write.action, CreatePod)
        await self._patch(workload, show_patch(holder, write.action.revision))
        workload.forget(write.action.node, write)

    async def _patch(self, workload: Workload, action: PatchPod) -> None:
        await self._client.write(pod_request(action, workload.ds.namespace), _decode_answer)
        self._teller.pod_written(workload, action)

    async def _read(self, workload: Workload, name: str) -> Pod:
        request = verbs.get(PODS, name, namespace=workload.ds.namespace)
        return await self._client.read(request, _decode_pod)


def _is_vain_resize(action: PodAction, error: KubeError) -> TypeGuard[PatchPod]:
    """Whether a resize was refused for what it asks, not for what happens to be used up."""
    resize = isinstance(action, PatchPod) and action.subresource == "resize"
    return resize and isinstance(error, Denied | Invalid) and not isinstance(error, QuotaExceeded)


def _owned(workload: Workload, pod: Pod) -> bool:
    controller = pod.metadata.controller
    return controller is not None and is_owner(workload.ds, controller)


def _undone(action: PodAction, live: Pod) -> bool:
    """Whether the live pod shows that a delete or a patch did not happen, or no longer matters."""
    match action:
        case DeletePod():
            return live.uid == action.uid and not live.terminating
        case PatchPod():
            return live.uid != action.uid
        case CreatePod():
            return False

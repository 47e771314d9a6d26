"""The scheduler: every pod that has no node gets one, if there is one for it."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sortedcontainers import SortedList

from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.cluster.machinery import preemption
from everynode.cluster.machinery.events import Recorder, Subject
from everynode.cluster.machinery.filters import NOT_PINNED, Spot, Verdict, Wish, examine, most_room
from everynode.cluster.machinery.objects import Node, Pod
from everynode.cluster.machinery.shared import Shared
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import Answer, Writes, ignore
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import STRATEGIC_PATCH, Request
from everynode.kube.resources import PODS

Object = dict[str, Any]

_LOG: Final = logging.getLogger(__name__)
NAME: Final = "default-scheduler"
_BREATH: Final = 64  # pods scheduled before others get a turn
_ENOUGH: Final = 100  # suitable nodes after which the search for the best one ends
_RETRY: Final = 1.0
SYSTEM_PRIORITIES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


class Scheduler:
    """Gives nodes to pods, looking again only at those for whom something has changed."""

    def __init__(
        self,
        shared: Shared,
        clock: Clock,
        *,
        timers: Timers,
        writes: Writes,
        recorder: Recorder,
        priorities: Mapping[str, int] = SYSTEM_PRIORITIES,
    ) -> None:
        self._shared = shared
        self._clock = clock
        self._timers = timers
        self._writes = writes
        self._recorder = recorder
        self._priorities = priorities
        self._spots: dict[str, Spot] = {}
        self._names = SortedList()  # of the nodes there are, as the search goes through them
        self._turn = 0
        self._waiting: dict[str, Wish] = {}  # pods without a node, by uid
        self._queue: list[tuple[int, int, str]] = []
        self._queued: dict[str, None] = {}
        self._parked: dict[str, dict[str, None]] = {}  # by the node that matters, "" for any
        self._told: dict[str, str] = {}  # the last message about a pod, by uid
        self._assumed: dict[str, str] = {}  # nodes given to pods, until the watch shows it
        self._nominated: dict[str, str] = {}  # nodes on which room is made for pods
        self._count = 0
        self._work = asyncio.Event()
        shared.nodes.subscribe(self._on_node)
        shared.pods.subscribe(self._on_pod)

    async def run(self) -> None:
        """Schedule until cancelled."""
        await self._shared.settled()  # nobody is told that there are no nodes before we know
        while True:
            await self._work.wait()
            self._work.clear()
            count = 0
            while self._queue:
                _, _, uid = heapq.heappop(self._queue)
                if self._queued.pop(uid, 0) is None and uid in self._waiting:
                    self._schedule(self._waiting[uid])
                count += 1
                if count % _BREATH == 0:
                    await self._clock.sleep(0)

    # --- What changes ----------------------------------------------------------------------------

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        known_node = after or before
        if known_node is None:
            return
        name = known_node.name
        spot = self._spots.setdefault(name, Spot())
        known = spot.node is not None
        spot.follow(after)
        if not known and after is not None:
            self._names.add(name)
        elif known and after is None:
            self._names.remove(name)
        if after is None and not spot.pods:
            del self._spots[name]
        elif after is not None and (before is None or _matters(before, after)):
            self._wake(name)

    def _on_pod(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._forget(before)
        if after is None:
            return
        if after.spec.node_name:
            self._settle(after)
        elif after.terminating or after.spec.scheduler_name != NAME or after.finished:
            self._forget(after)
        elif not after.spec.scheduling_gates and _new(self._waiting.get(after.uid), after):
            self._waiting[after.uid] = Wish(after, self._priority(after))
            self._enqueue(after.uid)

    def _settle(self, pod: Pod) -> None:
        """A pod has its node."""
        wish = self._waiting.pop(pod.uid, None)
        if wish is not None:
            self._drop_marks(pod.uid, wish)
        name = pod.spec.node_name
        if pod.finished:
            self._leave(name, pod.uid)
            return
        spot = self._spots.get(name)
        if spot is None:
            spot = self._spots[name] = Spot()
        known = spot.pods.get(pod.uid)
        if known is None:
            spot.put(wish or Wish(pod, self._priority(pod)))
        elif known.pod.spec.containers != pod.spec.containers:
            spot.take_away(pod.uid)
            spot.put(Wish(pod, self._priority(pod)))
            self._wake(name)
        else:
            known.pod = pod

    def _forget(self, pod: Pod) -> None:
        wish = self._waiting.pop(pod.uid, None)
        node = pod.spec.node_name or self._assumed.get(pod.uid, "")
        if wish is not None:
            self._drop_marks(pod.uid, wish)
        if node:
            self._leave(node, pod.uid)

    def _leave(self, name: str, uid: str) -> None:
        spot = self._spots.get(name)
        if spot is not None and uid in spot.pods:
            spot.take_away(uid)
            self._wake(name)

    def _drop_marks(self, uid: str, wish: Wish) -> None:
        """Nothing is noted any more of a pod that waited."""
        self._queued.pop(uid, None)
        self._told.pop(uid, None)
        self._assumed.pop(uid, None)
        self._withdraw(uid)
        parked = self._parked.get(wish.pinned)
        if parked is not None:
            parked.pop(uid, None)

    def _withdraw(self, uid: str) -> None:
        """No more room is kept for a pod."""
        spot = self._spots.get(self._nominated.pop(uid, ""))
        if spot is not None:
            spot.nominated.pop(uid, None)

    def _wake(self, node: str) -> None:
        """Something has changed on a node: look again at those who wait for it."""
        for where in (node, ""):
            for uid in self._parked.pop(where, ()):
                self._enqueue(uid)

    def _enqueue(self, uid: str) -> None:
        if uid in self._queued or uid not in self._waiting:
            return
        self._queued[uid] = None
        self._count += 1
        heapq.heappush(self._queue, (-self._waiting[uid].priority, self._count, uid))
        self._work.set()

    def _priority(self, pod: Pod) -> int:
        if pod.spec.priority is not None:
            return pod.spec.priority
        return self._priorities.get(pod.spec.priority_class_name, 0)

    # --- Deciding --------------------------------------------------------------------------------

    def _schedule(self, wish: Wish) -> None:
        verdict = Verdict(len(self._names))
        spot = self._search_pinned(wish, verdict) if wish.pinned else self._search(wish, verdict)
        if spot is not None and spot.node is not None:
            self._bind(wish, spot, spot.node.name)
            return
        self._parked.setdefault(wish.pinned, {})[wish.pod.uid] = None
        text = self._preempt(wish, verdict)
        self._say_unschedulable(wish, verdict.message(text))

    def _search_pinned(self, wish: Wish, verdict: Verdict) -> Spot | None:
        spot = self._spots.get(wish.pinned)
        if spot is None or spot.node is None:
            verdict.reasons[NOT_PINNED] = verdict.total
            return None
        reasons, curable = examine(wish, spot)
        if not reasons:
            return spot
        verdict.reasons.update(reasons)
        if verdict.total > 1:
            verdict.reasons[NOT_PINNED] += verdict.total - 1
        if curable:
            verdict.curable.append(wish.pinned)
        return None

    def _search(self, wish: Wish, verdict: Verdict) -> Spot | None:
        suitable = []
        for offset in range(verdict.total):
            name = self._names[(self._turn + offset) % verdict.total]
            spot = self._spots[name]
            reasons, curable = examine(wish, spot)
            if reasons:
                verdict.reasons.update(reasons)
                if curable:
                    verdict.curable.append(name)
                continue
            suitable.append(spot)
            if len(suitable) == _ENOUGH:
                self._turn = (self._turn + offset + 1) % verdict.total
                break
        return most_room(suitable, wish.demand) if suitable else None

    # --- Writing ---------------------------------------------------------------------------------

    def _bind(self, wish: Wish, spot: Spot, node: str) -> None:
        spot.put(wish)
        self._assumed[wish.pod.uid] = node
        meta = wish.pod.metadata
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"kind": "Node", "name": node},
        }
        request = verbs.create(
            PODS, binding, namespace=meta.namespace, name=meta.name, subresource="binding"
        )
        self._writes.send(request, partial(self._bound, wish, spot, node))

    def _bound(self, wish: Wish, spot: Spot, node: str, answer: Answer) -> None:
        if not isinstance(answer, KubeError):
            text = f"Successfully assigned {wish.pod.key} to {node}"
            self._tell(wish.pod, "Scheduled", text)
            return
        spot.take_away(wish.pod.uid)
        self._assumed.pop(wish.pod.uid, None)
        self._wake(node)
        if isinstance(answer, NotFound):
            return  # the watch will tell
        if not isinstance(answer, Conflict):
            _LOG.warning("%s, trying again", answer)
        self._timers.after(_RETRY, partial(self._enqueue, wish.pod.uid))

    def _say_unschedulable(self, wish: Wish, message: str) -> None:
        pod = wish.pod
        if self._told.get(pod.uid) == message:
            return
        self._told[pod.uid] = message
        self._tell(pod, "FailedScheduling", message, warning=True)
        known = pod.condition("PodScheduled")
        if known is not None and (known.status, known.message) == ("False", message):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": format_time(self._clock.now()),
        }
        self._writes.send(status_patch(pod, {"conditions": [condition]}), ignore)

    def _tell(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        if not self._recorder.enabled:
            return
        meta = pod.metadata
        subject = Subject(
            "Pod", meta.name, meta.namespace, uid=meta.uid, version=meta.resource_version
        )
        self._recorder.record(subject, reason, message, component=NAME, warning=warning)

    # --- Preemption ------------------------------------------------------------------------------

    def _preempt(self, wish: Wish, verdict: Verdict) -> str:
        """Make room if that is possible; what to say about it."""
        if wish.pod.spec.preemption_policy == "Never":
            return "preemption: not eligible due to preemptionPolicy=Never."
        nominated = self._spots.get(self._nominated.get(wish.pod.uid, ""))
        if nominated is not None and _on_the_way_out(nominated, wish):
            return "preemption: not eligible due to a terminating pod on the nominated node."
        self._withdraw(wish.pod.uid)
        chosen = preemption.choose(wish, (self._spots[name] for name in verdict.curable))
        if chosen is None:
            return verdict.preemption_message()
        self._nominated[wish.pod.uid] = chosen.node
        self._spots[chosen.node].nominated[wish.pod.uid] = wish
        nomination = {"nominatedNodeName": chosen.node}
        self._writes.send(status_patch(wish.pod, nomination), ignore)
        for victim in chosen.victims:
            self._evict(victim.pod, wish.pod, chosen.node)
        return ""

    def _evict(self, victim: Pod, preemptor: Pod, node: str) -> None:
        text = f"{NAME}: preempting to accommodate a higher priority pod"
        condition = disruption("PreemptionByScheduler", text, self._clock.now())
        self._writes.send(status_patch(victim, {"conditions": [condition]}), ignore)
        meta = victim.metadata
        removal = verbs.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid)
        self._writes.send(removal, ignore)
        self._tell(victim, "Preempted", f"Preempted by pod {preemptor.uid} on node {node}")


def _on_the_way_out(spot: Spot, wish: Wish) -> bool:
    """Whether pods that were to make room have not gone yet."""
    return any(
        other.pod.terminating and other.priority < wish.priority for other in spot.pods.values()
    )


def disruption(reason: str, message: str, now: float) -> Object:
    """The condition of a pod that is removed although nobody deleted it by hand."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(now),
    }


def status_patch(pod: Pod, status: Object) -> Request:
    """A patch of a pod's status, if it is still the same pod."""
    meta = pod.metadata
    return verbs.patch(
        PODS,
        meta.name,
        {"metadata": {"uid": meta.uid}, "status": status},
        kind=STRATEGIC_PATCH,
        namespace=meta.namespace,
        subresource="status",
    )


def _new(known: Wish | None, pod: Pod) -> bool:
    """Whether the scheduler knows nothing of a pod yet, or of what it wants now."""
    return known is None or known.pod.metadata.generation != pod.metadata.generation


def _matters(before: Node, after: Node) -> bool:
    """Whether a change of a node can make it suitable for a pod that waits."""
    return (
        before.spec != after.spec
        or before.metadata.labels != after.metadata.labels
        or before.status.allocatable != after.status.allocatable
    )

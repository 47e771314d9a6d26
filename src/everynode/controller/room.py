"""Rooms: observes which nodes have room for a pod of the target, before a pod is taken (R4).

Only where the decision asks for it: the requests of the target exceed those of the pod to be taken,
or the new pod comes beside it. The observation is kept with the DaemonSet's state; the decision
knows how long it is valid. If the pods of a node cannot be listed, the update goes on without
them: at once where a permission is missing, otherwise after a few attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from math import inf
from typing import Final

import msgspec

from everynode.api.keys import FIELD_MANAGER
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.controller.informers import Informers
from everynode.controller.node_resources import (
    NodeResources,
    TargetPod,
    build_room,
    decode_allocatable,
    decode_pods,
    decode_target,
    node_request,
    pods_request,
    unbound_requests,
)
from everynode.controller.reporter import Reporter
from everynode.controller.retries import Failures
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.fleet.verification import verify_target
from everynode.decide.node.eligibility import eligibility_for
from everynode.decide.node.room import FRESH_SECONDS, Requests, Room, template_requests
from everynode.decide.plan import Plan
from everynode.kube import verbs
from everynode.kube.client import Client, NotLeader
from everynode.kube.errors import Forbidden, KubeError
from everynode.kube.resources import PODS

_CONCURRENT_NODES: Final = 8  # nodes that are observed at a time
_ATTEMPTS: Final = 5  # to observe a node, in 15 seconds; then the update goes on without
_RETRY: Final = Backoff(first=1.0, longest=8.0)
_TARGET_AGAIN: Final = 60.0  # seconds until a dry run that was refused is repeated


class _Target(msgspec.Struct, frozen=True):
    """The pod of a target, and until when that is relied on."""

    revision: str
    pod: TargetPod
    until: float


class Rooms:
    """The rooms of the nodes of all DaemonSets, each observed when it matters."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        informers: Informers,
        queue: ReconcileQueue,
        reporter: Reporter,
        by_scheduler: bool = True,
    ) -> None:
        self._client = client
        self._clock = clock
        self._informers = informers
        self._queue = queue
        self._reporter = reporter
        self._by_scheduler = by_scheduler
        self._slots = asyncio.Semaphore(_CONCURRENT_NODES)
        self._targets: dict[str, _Target] = {}  # by DaemonSet
        self._failures: dict[tuple[str, str], Failures] = {}  # by DaemonSet and node

    def forget(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""
        self._targets.pop(state.key, None)
        for key in [key for key in self._failures if key[0] == state.key]:
            del self._failures[key]

    def clock_set_back(self) -> None:
        """Do not wait for times that are far in the future now."""
        self._failures.clear()

    def start(
        self, state: DaemonSetState, nodes: Sequence[str], now: float
    ) -> tuple[list[Coroutine[None, None, None]], float]:
        """Return the observations to run now, and when the next one is due."""
        due_at = inf
        started = []
        for node in nodes:
            if node in state.observing:
                continue
            failures = self._failures.get((state.key, node))
            if failures is not None and failures.retry_at > now:
                due_at = min(due_at, failures.retry_at)
                continue
            state.observing.add(node)
            started.append(self._run(state, node))
        return started, due_at

    async def _run(self, state: DaemonSetState, node: str) -> None:
        assert state.ledger is not None
        try:
            async with self._slots:
                room = await self._observe(state, state.ledger.plan, node)
        except NotLeader:
            return  # the next term asks again
        finally:
            state.observing.discard(node)
        if room is not None:
            state.room_observed(node, room)
        self._queue.add(state.key)

    async def _observe(self, state: DaemonSetState, plan: Plan, node: str) -> Room | None:
        """Return the room of a node; None if the attempt failed and is repeated."""
        key = (state.key, node)
        try:
            target = await self._target_pod(state, plan, node)
            seen = await self._read(node)
        except NotLeader:
            raise
        except KubeError as error:
            return self._room_after_failure(state, plan, node, error)
        self._failures.pop(key, None)
        return build_room(
            seen,
            target,
            state.ds.uid,
            revision=plan.target_hash,
            now=self._clock.now(),
            attempt=_attempt(state.room(node), plan),
            claimed=self._claims_of_others(state, node, seen),
            by_scheduler=self._by_scheduler,
        )

    def _room_after_failure(
        self, state: DaemonSetState, plan: Plan, node: str, error: KubeError
    ) -> Room | None:
        key, now = (state.key, node), self._clock.now()
        failures = self._failures.setdefault(key, Failures())
        failures.add(now, _RETRY)
        if failures.count < _ATTEMPTS and not isinstance(error, Forbidden):
            return None
        del self._failures[key]
        self._reporter.room_unknown(state, node, error)
        return Room(plan.target_hash, now, unknown=True)

    async def _read(self, node: str) -> NodeResources:
        nodes, pods = self._informers.nodes.version, self._informers.pods.version
        allocatable = await self._client.read(
            node_request(node, nodes), decode_allocatable, attempts=1
        )
        found = await self._client.read(pods_request(node, pods), decode_pods, attempts=1)
        return NodeResources(allocatable, found)

    # --- The target's pod ------------------------------------------------------------------------

    async def _target_pod(self, state: DaemonSetState, plan: Plan, node: str) -> TargetPod:
        """Return a pod of the target with the priority, overhead and defaults of admission."""
        known = self._targets.get(state.key)
        now = self._clock.now()
        if known is not None and known.revision == plan.target_hash and now < known.until:
            return known.pod
        action = verify_target(plan, state.view(node), None, now).action
        request = verbs.create(
            PODS, action.body, namespace=state.ds.namespace, manager=FIELD_MANAGER, dry_run=True
        )
        try:
            pod, until = await self._client.write(request, decode_target), inf
        except NotLeader:
            raise
        except KubeError:
            # A quota that is used up, a webhook without dry runs: what the template says must do.
            pod = TargetPod(template_requests(plan.target.template))
            until = now + _TARGET_AGAIN
        self._targets[state.key] = _Target(plan.target_hash, pod, until)
        return pod

    # --- Other DaemonSets on the node ------------------------------------------------------------

    def _claims_of_others(
        self, state: DaemonSetState, node: str, seen: NodeResources
    ) -> Iterator[Requests]:
        """Yield what other DaemonSets will request here: pods that they are just replacing.

        The first of several that may replace a pod here is allowed for by the others.
        """
        for other in self._informers.states.values():
            if other is state or other.ledger is None:
                continue
            plan, there = other.ledger.plan, self._informers.nodes.get(node)
            next_one = _may_be_replaced(other.room(node), plan, self._clock.now())
            if not next_one and not other.is_replacing_pod(node):
                continue
            wanted = plan.constraints[plan.target_hash]
            if there is None or not eligibility_for(wanted, there).should_run:
                continue
            bound = [pod for pod in seen.pods if pod.is_owned_by(other.ds.uid)]
            yield unbound_requests(template_requests(plan.target.template), bound)


def _attempt(last: Room | None, plan: Plan) -> int:
    """Return how often in a row a node without room is observed, this time included."""
    if last is None or last.revision != plan.target_hash or last.has_room(surging=plan.surging):
        return 1
    return last.attempt + 1


def _may_be_replaced(room: Room | None, plan: Plan, now: float) -> bool:
    """Whether a pod of the DaemonSet may be taken now, because its node was found to have room."""
    if room is None or room.revision != plan.target_hash or room.unknown:
        return False
    return now < room.observed_at + FRESH_SECONDS and room.has_room(surging=plan.surging)

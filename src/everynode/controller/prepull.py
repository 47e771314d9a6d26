"""PrePull: pulls images ahead of an update with short-lived pods, without a node agent."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Final

from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.controller.informers import Informers
from everynode.controller.reporter import Reporter
from everynode.controller.requests import pod_request
from everynode.controller.retries import Failures
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import CreatePod, PodAction
from everynode.decide.node.availability import is_ready
from everynode.decide.node.reasons import shorten
from everynode.decide.pods.prepull import (
    PullNode,
    PullPlan,
    PullSettings,
    may_start,
    plan_pulls,
    read_pull_settings,
)
from everynode.decide.revisions.target import Revision
from everynode.kube.client import Client, NotLeader
from everynode.kube.errors import AlreadyExists, Conflict, KubeError, NotFound

PLAN_INTERVAL: Final = 1.0  # seconds; every pull plan goes through all nodes, so not at every event
_IDLE: Final = 60.0
_REFUSED: Final = Backoff(first=1.0, longest=300.0)  # after a write was refused
_TROUBLE: Final = "images pulled ahead"


class PrePull:
    """The pods that pull images for all DaemonSets."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        informers: Informers,
        always: bool,
        by_scheduler: bool,
        queue: ReconcileQueue,
        reporter: Reporter,
    ) -> None:
        self._client = client
        self._clock = clock
        self._informers = informers
        self._always = always  # for every DaemonSet, not only for those with the annotation
        self._by_scheduler = by_scheduler
        self._queue = queue
        self._reporter = reporter
        self._next_at: dict[str, float] = {}
        self._refusals: dict[str, Failures] = {}  # steps in a row with a refused write
        self._targets: dict[str, str] = {}  # the revision whose images are pulled
        self._busy: dict[str, None] = {}

    def forget(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone; the garbage collector deletes its pull pods."""
        self._next_at.pop(state.key, None)
        self._refusals.pop(state.key, None)
        self._targets.pop(state.key, None)

    def wanted(self, state: DaemonSetState) -> bool:
        """Whether images are pulled ahead for this DaemonSet."""
        wanted = read_pull_settings(state.ds, always=self._always) is not None
        if not wanted and state.key in self._targets:
            self.forget(state)
            self._end_trouble(state)
        return wanted

    def step(
        self, state: DaemonSetState, target: Revision, revisions: list[Revision]
    ) -> Coroutine[None, None, None] | None:
        """Plan the pulls, at most once a second; return the writes to run, if there are any."""
        now, key = self._clock.now(), state.key
        settings = read_pull_settings(state.ds, always=self._always)
        if settings is None or key in self._busy:
            return None
        if self._targets.get(key) != target.hash:  # a refusal holds for one target
            self.forget(state)
            self._targets[key] = target.hash
        longest = _REFUSED.longest if key in self._refusals else PLAN_INTERVAL
        if now < self._next_at.get(key, 0.0) <= now + longest:  # else our clock was set back
            self._queue.add_at(key, self._next_at[key])
            return None
        pulls = self._plan(state, target, revisions, settings=settings, now=now)
        self._reporter.images_pulled(state, pulls.done, pulls.total)
        self._next_at[key] = now + PLAN_INTERVAL
        if not pulls.actions:
            self._end_trouble(state)
            self._queue.add_at(key, pulls.wake_at or now + _IDLE)
            return None
        self._busy[key] = None
        return self._execute(state, pulls)

    def _plan(
        self,
        state: DaemonSetState,
        target: Revision,
        revisions: list[Revision],
        *,
        settings: PullSettings,
        now: float,
    ) -> PullPlan:
        pods = {pod.node: pod for pod in state.pods() if not pod.finished}
        pull_pods = {
            pod.node: pod for pod in self._informers.pull_pods.by("owner", state.owner_key).values()
        }
        names = sorted({*pods, *pull_pods} - {""})  # an adopted pod may have no node yet
        places = [PullNode(n, pods.get(n), pull_pods.get(n)) for n in names]
        ready = sum(1 for pod in pods.values() if pod.hash == target.hash and is_ready(pod))
        return plan_pulls(
            state.ds,
            target,
            {each.hash: each for each in revisions},
            places,
            settings=settings,
            now=now,
            start=may_start(state.ds, settings, desired=len(pods), updated_ready=ready),
            by_scheduler=self._by_scheduler,
        )

    async def _execute(self, state: DaemonSetState, pulls: PullPlan) -> None:
        refused: list[tuple[PodAction, KubeError]] = []
        try:
            for action in pulls.actions:
                error = await self._write(state, action)
                if error is not None:
                    refused.append((action, error))
            if state.key in self._next_at:  # else the DaemonSet is gone
                self._note_refused(state, refused)
        except NotLeader:
            pass
        finally:
            del self._busy[state.key]
            if state.key in self._next_at:
                self._queue.add_at(state.key, self._next_at[state.key])

    async def _write(self, state: DaemonSetState, action: PodAction) -> KubeError | None:
        """Write one pod; return why that was refused."""
        try:
            await self._client.write(pod_request(action, state.ds.namespace), bytes)
        except (AlreadyExists, NotFound, Conflict):
            return None  # another writer was first; the next plan sees the result
        except NotLeader:
            raise
        except KubeError as error:
            return error
        self._reporter.pod_written(state, action)
        return None

    def _note_refused(
        self, state: DaemonSetState, refused: list[tuple[PodAction, KubeError]]
    ) -> None:
        """Wait longer after every step in which a write was refused; report one of each step."""
        if not refused:
            self._end_trouble(state)
            return
        failures = self._refusals.setdefault(state.key, Failures())
        failures.add(self._clock.now(), _REFUSED)
        self._next_at[state.key] = failures.retry_at
        action, error = refused[0]
        self._reporter.pod_write_failed(state, action, error)
        what = "created" if isinstance(action, CreatePod) else "finished"
        where = f"{len(refused)} nodes" if len(refused) > 1 else f"node {action.node}"
        message = f"pull pods cannot be {what} on {where}: {shorten(error.message)}"
        state.set_trouble(_TROUBLE, message)

    def _end_trouble(self, state: DaemonSetState) -> None:
        self._refusals.pop(state.key, None)
        if state.set_trouble(_TROUBLE, ""):
            self._queue.add(state.key)  # its condition is over

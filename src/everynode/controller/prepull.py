"""Fetching images ahead of an update, with short-lived puller pods and no node agent."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Final, Protocol

from everynode.clock import Clock
from everynode.controller.calls import pod_request
from everynode.controller.observe import World
from everynode.controller.workload import Workload
from everynode.decide.actions import PodAction
from everynode.decide.availability import is_ready
from everynode.decide.patch import node_of
from everynode.decide.prepull import (
    Place,
    Pulls,
    Settings,
    may_start,
    plan_pulls,
    read_settings,
)
from everynode.decide.revisions import Revision
from everynode.kube.client import Client, MayNotWrite
from everynode.kube.errors import AlreadyExists, Conflict, KubeError, NotFound

INTERVAL: Final = 1.0  # the whole fleet is looked through, so not at every event
_IDLE: Final = 60.0


class Teller(Protocol):
    """Whoever hears of pullers."""

    def pod_written(self, workload: Workload, action: PodAction) -> None:
        """A puller was created or deleted, or what it found was noted."""
        ...

    def pod_refused(self, workload: Workload, action: PodAction, error: KubeError) -> None:
        """A write failed; no rollout waits for it."""
        ...

    def pulled(self, workload: Workload, done: int, total: int) -> None:
        """So many of the nodes that will need the images have them."""
        ...


class PrePull:
    """The pullers of all workloads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        world: World,
        always: bool,
        again: Callable[[str, float], None],
        teller: Teller,
    ) -> None:
        self._client = client
        self._clock = clock
        self._world = world
        self._always = always  # for every DaemonSet, not only where the annotation asks for it
        self._again = again
        self._teller = teller
        self._next_at: dict[str, float] = {}
        self._busy: dict[str, None] = {}

    def forget(self, workload: Workload) -> None:
        """The DaemonSet is gone; its pullers go with their owner."""
        self._next_at.pop(workload.key, None)

    def wanted(self, workload: Workload) -> bool:
        """Whether images of this DaemonSet are fetched ahead at all."""
        return read_settings(workload.ds, always=self._always) is not None

    def step(
        self, workload: Workload, target: Revision, revisions: list[Revision]
    ) -> Coroutine[None, None, None] | None:
        """What is to be done about pulling now, if anything; at most once a second."""
        now, key = self._clock.now(), workload.key
        settings = read_settings(workload.ds, always=self._always)
        if settings is None or key in self._busy:
            return None
        if now < self._next_at.get(key, 0.0):
            self._again(key, self._next_at[key])
            return None
        pulls = self._plan(workload, target, revisions, settings=settings, now=now)
        self._teller.pulled(workload, pulls.done, pulls.total)
        self._next_at[key] = now + INTERVAL
        if not pulls.actions:
            self._again(key, pulls.wake_at or now + _IDLE)
            return None
        self._busy[key] = None
        return self._carry_out(workload, pulls)

    def _plan(
        self,
        workload: Workload,
        target: Revision,
        revisions: list[Revision],
        *,
        settings: Settings,
        now: float,
    ) -> Pulls:
        pods = {node_of(pod): pod for pod in workload.pods() if not pod.finished}
        pullers = {
            node_of(pod): pod for pod in self._world.pullers.by("owner", workload.key).values()
        }
        names = sorted({*pods, *pullers} - {""})  # what is adopted may point at no node yet
        places = [Place(n, pods.get(n), pullers.get(n)) for n in names]
        ready = sum(1 for pod in pods.values() if pod.hash == target.hash and is_ready(pod))
        return plan_pulls(
            workload.ds,
            target,
            {each.hash: each for each in revisions},
            places,
            settings=settings,
            now=now,
            start=may_start(workload.ds, settings, desired=len(pods), updated_ready=ready),
        )

    async def _carry_out(self, workload: Workload, pulls: Pulls) -> None:
        try:
            for action in pulls.actions:
                await self._write(workload, action)
        except MayNotWrite:
            pass
        finally:
            del self._busy[workload.key]
            if workload.key in self._next_at:  # else the DaemonSet has gone meanwhile
                self._again(workload.key, self._next_at[workload.key])

    async def _write(self, workload: Workload, action: PodAction) -> None:
        try:
            await self._client.write(pod_request(action, workload.ds.namespace), bytes)
        except (AlreadyExists, NotFound, Conflict):
            return  # somebody was quicker; the next look shows what is there
        except MayNotWrite:
            raise
        except KubeError as error:
            self._teller.pod_refused(workload, action, error)
            return
        self._teller.pod_written(workload, action)

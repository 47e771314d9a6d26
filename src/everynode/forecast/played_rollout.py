"""Played rollout: the real controller updates one DaemonSet of an embedded cluster on virtual time.

How the cluster comes to the state in which the update begins is up to the subclasses: a forecast
invents nodes and installs the old version, a plan takes over the state of a real cluster.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec

from everynode.api.int_or_percent import scaled_value
from everynode.api.objects import Pod
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.forecast.answer import Forecast, ForecastError, Object
from everynode.forecast.preinstalled_pods import PreinstalledPods
from everynode.forecast.recording import Recording, RolloutRecorder
from everynode.forecast.rollout_tracker import RolloutTracker
from everynode.forecast.transport import ForecastTransport
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError, NotFound
from everynode.kube.resources import (
    ADVANCED,
    ADVANCED_V1ALPHA1,
    DAEMONSETS,
    PODS,
    Resource,
)
from everynode.sim.checks.oracle import Oracle
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from everynode.sim.plans.plan import Timing

T = TypeVar("T")
OnProgress = Callable[[str, int], None]

KINDS: Final = {each.api_version: each for each in (DAEMONSETS, ADVANCED, ADVANCED_V1ALPHA1)}
POLL_INTERVAL: Final = 5.0  # seconds between two checks of the rollout
# The controller waits no longer than this: in-place updates are given up after 10 minutes.
_QUIET_SECONDS: Final = 900.0
_ROLLOUT_TIMEOUT: Final = 60 * 86400.0
_GC_THRESHOLDS: Final = (200_000, 20, 100)
_json: Final = msgspec.json.Decoder(dict[str, Any]).decode


class RolloutSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is rolled out, and how long things take."""

    new: Object  # the manifest
    namespace: str
    timing: Timing
    hook: float  # seconds that the program behind a preDelete hook takes
    seed: int


def play(seed: int, rollout: Callable[[SimLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a rollout to its end on a virtual clock of its own."""
    loop = SimLoop(seed)
    try:
        with _rare_garbage_collection():
            found: T = loop.run_until_complete(rollout(loop))
            return found
    finally:
        loop.close()


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely: every collection would traverse the thousands of live objects."""
    before = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class PlayedRollout:
    """One cluster, one DaemonSet, one update."""

    def __init__(
        self,
        loop: SimLoop,
        settings: RolloutSettings,
        on_progress: OnProgress,
        *,
        components: ComponentOptions,
        skew: float = 0.0,
    ) -> None:
        self._loop, self._settings, self._on_progress = loop, settings, on_progress
        self._clock = SimClock(loop, f"{settings.seed}/forecast", skew=skew)
        self._api = Api(clock=self._clock)
        transport = LocalTransport(self._api)
        self._recorder = RolloutRecorder()
        self._tracker = RolloutTracker(
            self._api.store,
            loop,
            self._clock,
            on_preparing_delete=self._release_later,
            on_node_state=self._recorder.note,
        )
        self._client = Client(transport, self._clock)
        self._components = Components(transport, self._clock, components)
        add_running_pod = self._components.simulated_nodes.add_running_pod
        preinstalled = PreinstalledPods(self._api.store, transport, self._clock, add_running_pod)
        self._transport = ForecastTransport(
            transport, self._tracker, preinstalled, on_take=self._note_take
        )
        self._controller = Controller(self._transport, self._clock, ControllerOptions(native=True))
        self._released: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._resource: Resource = KINDS[settings.new["apiVersion"]]
        self._name: str = settings.new["metadata"]["name"]

    def _start(self, *runs: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run parts of the cluster until `_stop`."""
        self._tasks += [self._loop.create_task(run()) for run in runs]

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _note_take(self, node: str) -> None:
        """The controller creates, deletes or begins to update a pod on this node."""

    # --- The steps -------------------------------------------------------------------------------

    async def _update(self, manifest: Object) -> None:
        """Replace the DaemonSet by its new version."""
        for _ in range(20):
            live = await self._client.read(
                verbs.get(self._resource, self._name, namespace=self._settings.namespace), _json
            )
            version = live["metadata"]["resourceVersion"]
            body = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}
            request = verbs.replace(
                self._resource, self._name, body, namespace=self._settings.namespace
            )
            try:
                await self._client.write(request, bytes)
                return
            except KubeError as error:
                if error.status != 409:
                    raise ForecastError(f"the new version is refused: {error.message}") from None
        raise ForecastError("the new version could not be written")

    async def _wait_for_end(self, began: float) -> bool:
        """Wait until it is complete or no pod changes any more; False if it does not end."""
        tracker, quiet = self._tracker, _QUIET_SECONDS + longest_pause(self._settings)
        while self._clock.monotonic() < began + _ROLLOUT_TIMEOUT:
            await self._clock.sleep(POLL_INTERVAL)
            self._on_progress("updating", len(tracker.updated))
            if self._is_complete() or self._clock.monotonic() > tracker.last_pod_change + quiet:
                return True
        return False

    def _is_complete(self) -> bool:
        ds = self._tracker.set
        assert ds is not None
        if ds.status.observed_generation != ds.metadata.generation:
            return False
        return any(
            each.type == "Complete" and each.status == "True" for each in ds.status.conditions
        )

    def _progressing_message(self) -> str:
        ds = self._tracker.set
        found = ds.status.conditions if ds is not None else ()
        return next((each.message for each in found if each.type == "Progressing"), "")

    # --- Hooks -----------------------------------------------------------------------------------

    def _release_later(self, pod: Pod) -> None:
        """Release a pod from its preDelete hook after a while, as the hook's controller would."""
        if pod.uid not in self._released:
            self._released.add(pod.uid)
            self._loop.create_task(self._release(pod))

    async def _release(self, pod: Pod) -> None:
        ds = self._tracker.set
        assert ds is not None
        await self._clock.sleep(self._settings.hook)
        if ds.pre_delete is None:
            return
        kept = [each for each in pod.metadata.finalizers if each not in ds.pre_delete.finalizers]
        body: Object = {"labels": dict.fromkeys(ds.pre_delete.labels)}
        if ds.pre_delete.finalizers:
            body["finalizers"] = kept or None
        request = verbs.patch(
            PODS, pod.name, {"metadata": body}, namespace=self._settings.namespace
        )
        try:
            await self._client.write(request, bytes)
        except NotFound:
            return

    # --- The end ---------------------------------------------------------------------------------

    def _conclude(
        self, began: float, total: int, silent: tuple[str, ...], *, ended: bool
    ) -> tuple[Forecast, Recording]:
        oracle, tracker = self._tracker.oracle(), self._tracker
        ds = oracle.ds
        reachable = oracle.desired_nodes - set(silent)
        stuck = sorted((oracle.updated_nodes & reachable) - tracker.updated)
        left = reachable - oracle.updated_nodes
        to_come = left & oracle.scope if oracle.rolling else frozenset()
        desired = len(oracle.desired_nodes)
        found = Forecast(
            name=self._name,
            ending=_ending(oracle, tracker, stuck, to_come, left) if ended else "endless",
            seconds=round(tracker.changed_at - began, 1),
            nodes=total,
            updated=len(tracker.updated),
            held=len(left - to_come),
            to_come=len(to_come),
            stuck=tuple(stuck),
            silent=silent,
            surging=oracle.surging,
            budget=oracle.limit,
            most_down=tracker.most_down,
            most_doubled=tracker.most_doubled,
            partition=scaled_value(ds.strategy.partition, desired, round_up=False),
            selector=ds.strategy.selector is not None,
            paused=ds.strategy.paused,
            on_delete=not oracle.rolling,
            writes=dict(sorted(self._transport.writes.items())),
            message=self._progressing_message(),
            curve=tuple(tracker.curve),
            removed=tracker.removed(oracle.desired_nodes),
        )
        labels = {name: node.metadata.labels for name, node in tracker.nodes().items()}
        held = left - to_come
        return found, self._recorder.finish(found.seconds, labels=labels, held=held, stuck=stuck)

    async def _write(self, request: Any) -> None:
        try:
            await self._client.write(request, bytes)
        except KubeError as error:
            raise ForecastError(error.message) from None


def _ending(
    oracle: Oracle,
    tracker: RolloutTracker,
    stuck: list[str],
    to_come: frozenset[str],
    left: frozenset[str],
) -> str:
    if not any(not tracker.is_old(hash) for hash in oracle.targets):
        return "unchanged"
    if to_come:
        return "stopped"
    if stuck:
        return "incomplete"
    return "held" if left else "complete"


def longest_pause(settings: RolloutSettings) -> float:
    """Seconds that may pass between two changes of a pod that is being updated."""
    timing = settings.timing
    ready = settings.new["spec"].get("minReadySeconds") or 0
    return timing.pull + timing.start + timing.ready + timing.stop + settings.hook + float(ready)

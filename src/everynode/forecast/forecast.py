"""Forecast: plays one rollout of a manifest in a simulated cluster and reports how it went."""

from __future__ import annotations

import asyncio
import enum
import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.int_or_percent import scaled_value
from everynode.api.objects import Pod
from everynode.api.validation import validate_daemonset, validate_update
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.forecast.preinstalled_pods import PreinstalledPods
from everynode.forecast.prepared_manifest import NAMESPACE, prepare_manifest, without_rollout_limits
from everynode.forecast.recording import Recorder, Recording
from everynode.forecast.rollout_tracker import RolloutTracker
from everynode.forecast.transport import ForecastTransport
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError, NotFound
from everynode.kube.resources import (
    ADVANCED,
    ADVANCED_V1ALPHA1,
    DAEMONSETS,
    NODES,
    PODS,
    Resource,
)
from everynode.sim.checks.oracle import Oracle
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from everynode.sim.plans.plan import Timing

Object = dict[str, Any]

KINDS: Final = {each.api_version: each for each in (DAEMONSETS, ADVANCED, ADVANCED_V1ALPHA1)}
_POLL_INTERVAL: Final = 5.0  # seconds between two checks of the rollout
# The controller waits no longer than this: in-place updates are given up after 10 minutes.
_QUIET_SECONDS: Final = 900.0
_INSTALL_TIMEOUT: Final = 3600.0
_ROLLOUT_TIMEOUT: Final = 60 * 86400.0
_STOPPED: Final = "sim.everynode.io/stopped"
_GC_THRESHOLDS: Final = (200_000, 20, 100)
_json: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ForecastError(ValueError):
    """A forecast that is not possible; the message says what is wrong with the request."""


class FailHow(enum.StrEnum):
    """Why the new version does not become ready on the nodes where it fails."""

    CRASH = "crash"  # its containers end with an error, again and again
    NEVER_READY = "never-ready"  # it runs, and its readiness probe fails
    PULL = "pull"  # its image cannot be pulled


# In the words of the simulated kubelet.
_FAILURES: Final = {FailHow.CRASH: "crash", FailHow.NEVER_READY: "probe", FailHow.PULL: "pull"}


class ForecastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is rolled out, on which nodes, and what fails."""

    old: Object
    new: Object
    nodes: int = 100
    failing: int = 0  # nodes on which the new version does not become ready
    fail_how: FailHow = FailHow.NEVER_READY
    not_ready: int = 0  # nodes whose kubelet is silent from the start
    labels: tuple[tuple[str, str, int], ...] = ()  # key, value, on how many nodes
    timing: Timing = Timing(pull=5.0, start=20.0, stop=10.0)
    hook: float = 0.0  # seconds that the program behind a preDelete hook takes
    seed: int = 1


class Forecast(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the rollout went; field names are those of the JSON output."""

    name: str
    ending: str  # complete, held, stopped, incomplete, unchanged or endless
    seconds: float  # until the last node became available or unavailable
    nodes: int  # that run the DaemonSet
    updated: int
    held: int
    to_come: int  # in scope of the update, and not updated yet
    stuck: tuple[str, ...]  # nodes at the new version that did not become available
    silent: tuple[str, ...]
    surging: bool
    budget: int  # maxUnavailable or maxSurge in nodes
    most_down: int
    most_doubled: int
    partition: int
    selector: bool
    paused: bool
    on_delete: bool
    writes: dict[str, int]  # of the controller, by kind
    message: str  # of the condition Progressing
    curve: tuple[tuple[float, int, int], ...]  # seconds, updated, down
    removed: int = 0  # nodes that lost their pod because the new template does not want them

    @property
    def writes_per_pod(self) -> float:
        """Writes of the controller per updated pod."""
        moved = self.updated + len(self.stuck)
        return sum(self.writes.values()) / moved if moved else 0.0


def forecast(
    request: ForecastRequest, on_progress: Callable[[str, int], None] = lambda *_: None
) -> Forecast:
    """Play the rollout; `on_progress` gets each step and a node count. Raises ForecastError."""
    return record(request, on_progress)[0]


def record(
    request: ForecastRequest, on_progress: Callable[[str, int], None] = lambda *_: None
) -> tuple[Forecast, Recording]:
    """Play the rollout as `forecast` does, and return also how each node went through it."""
    _validate(request)
    loop = SimLoop(request.seed)
    try:
        with _rare_garbage_collection():
            rollout = _Rollout(loop, request, on_progress)
            found: tuple[Forecast, Recording] = loop.run_until_complete(rollout.run())
            return found
    finally:
        loop.close()


def _validate(request: ForecastRequest) -> None:
    """Raise for manifests that an API server would refuse."""
    old, new = prepare_manifest(request.old), prepare_manifest(request.new)
    faults = validate_daemonset(old) or validate_daemonset(new) or validate_update(old, new)
    for fault in faults:
        raise ForecastError(f"{new['metadata']['name']}: {fault}")


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely: every collection would traverse the thousands of live objects."""
    before = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Rollout:
    """One cluster, one DaemonSet, one update."""

    def __init__(
        self, loop: SimLoop, request: ForecastRequest, on_progress: Callable[[str, int], None]
    ) -> None:
        self._loop, self._request, self._on_progress = loop, request, on_progress
        self._clock = SimClock(loop, f"{request.seed}/forecast")
        self._random = random.Random(f"{request.seed}/forecast")
        api = Api(clock=self._clock)
        transport = LocalTransport(api)
        self._tracker = RolloutTracker(api.store, loop, self._clock)
        self._tracker.on_preparing_delete = self._release_later
        self._recorder = Recorder()
        self._tracker.on_node_state = self._recorder.note
        self._client = Client(transport, self._clock)
        options = ComponentOptions(nodes=request.nodes, behaviour=request.timing.behaviour())
        self._components = Components(transport, self._clock, options)
        add_running_pod = self._components.simulated_nodes.add_running_pod
        preinstalled = PreinstalledPods(api.store, transport, self._clock, add_running_pod)
        self._transport = ForecastTransport(transport, self._tracker, preinstalled)
        self._controller = Controller(self._transport, self._clock, ControllerOptions(native=True))
        self._released: set[str] = set()
        self._resource: Resource = KINDS[request.new["apiVersion"]]
        self._name: str = request.new["metadata"]["name"]

    async def run(self) -> tuple[Forecast, Recording]:
        """From an empty cluster to the end of the update."""
        create = self._loop.create_task
        tasks = [create(self._components.run()), create(self._controller.run())]
        await self._dry_run(self._request.old)
        await self._dry_run(self._request.new)
        await self._components.ready()
        await self._label_nodes()
        await self._install()
        silent = await self._stop_kubelets()
        self._choose_failing(silent)
        total = len(self._tracker.pods)
        self._tracker.begin()
        self._recorder.begin(self._tracker.states(silent))
        self._transport.begin()
        began = self._clock.monotonic()
        await self._update()
        ended = await self._wait_for_end(began)
        found = self._conclude(began, total, silent, ended=ended)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return found

    # --- The steps -------------------------------------------------------------------------------

    async def _dry_run(self, manifest: Object) -> None:
        """Create it with dryRun and strict field validation; raises if the server refuses it."""
        made = prepare_manifest(manifest)
        resource = KINDS[made["apiVersion"]]
        request = verbs.create(resource, made, namespace=NAMESPACE, dry_run=True)
        strict = (*request.query, ("fieldValidation", "Strict"))
        await self._write(replace(request, query=strict))

    async def _label_nodes(self) -> None:
        names = sorted(self._tracker.nodes())
        for key, value, count in self._request.labels:
            for name in _evenly_spaced(names, count):
                body = {"metadata": {"labels": {key: value}}}
                await self._write(verbs.patch(NODES, name, body))

    async def _install(self) -> None:
        manifest = without_rollout_limits(prepare_manifest(self._request.old))
        resource = KINDS[manifest["apiVersion"]]
        await self._write(verbs.create(resource, manifest, namespace=NAMESPACE))
        deadline = self._clock.monotonic() + _INSTALL_TIMEOUT + _longest_pause(self._request)
        while not self._is_installed():
            if self._clock.monotonic() > deadline:
                raise ForecastError(
                    f"the current version does not become available: {self._progressing_message()}"
                )
            self._on_progress("installing", len(self._tracker.up))
            await self._clock.sleep(_POLL_INTERVAL)
        if not self._tracker.pods:
            raise ForecastError(
                "no node would get a pod: the template's node selector, affinity or tolerations "
                "rule all of them out; give nodes the labels with --label KEY=VALUE"
            )

    def _is_installed(self) -> bool:
        ds = self._tracker.set
        if ds is None or ds.status.observed_generation != ds.metadata.generation:
            return False
        return ds.status.available == ds.status.desired == len(self._tracker.up)

    def _progressing_message(self) -> str:
        ds = self._tracker.set
        found = ds.status.conditions if ds is not None else ()
        return next((each.message for each in found if each.type == "Progressing"), "")

    async def _stop_kubelets(self) -> tuple[str, ...]:
        """Stop some kubelets, and wait until their nodes are Unknown."""
        count = min(self._request.not_ready, len(self._tracker.pods))
        names = sorted(self._random.sample(sorted(self._tracker.pods), count))
        for name in names:
            await self._write(
                verbs.patch(NODES, name, {"metadata": {"annotations": {_STOPPED: "true"}}})
            )
        while any(self._tracker.nodes()[name].ready != "Unknown" for name in names):
            await self._clock.sleep(_POLL_INTERVAL)
        if names:
            await self._clock.sleep(_POLL_INTERVAL)
        return tuple(names)

    def _choose_failing(self, silent: tuple[str, ...]) -> None:
        names = sorted(self._tracker.pods.keys() - set(silent))
        count = min(self._request.failing, len(names))
        self._transport.failing = frozenset(self._random.sample(names, count))
        self._transport.failure = _FAILURES[self._request.fail_how]

    async def _update(self) -> None:
        manifest = prepare_manifest(self._request.new)
        for _ in range(20):
            live = await self._client.read(
                verbs.get(self._resource, self._name, namespace=NAMESPACE), _json
            )
            version = live["metadata"]["resourceVersion"]
            body = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}
            request = verbs.replace(self._resource, self._name, body, namespace=NAMESPACE)
            try:
                await self._client.write(request, bytes)
                return
            except KubeError as error:
                if error.status != 409:
                    raise ForecastError(f"the new version is refused: {error.message}") from None
        raise ForecastError("the new version could not be written")

    async def _wait_for_end(self, began: float) -> bool:
        """Wait until it is complete or no pod changes any more; False if it does not end."""
        tracker, quiet = self._tracker, _QUIET_SECONDS + _longest_pause(self._request)
        while self._clock.monotonic() < began + _ROLLOUT_TIMEOUT:
            await self._clock.sleep(_POLL_INTERVAL)
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

    # --- Hooks -----------------------------------------------------------------------------------

    def _release_later(self, pod: Pod) -> None:
        """Release a pod from its preDelete hook after a while, as the hook's controller would."""
        if pod.uid not in self._released:
            self._released.add(pod.uid)
            self._loop.create_task(self._release(pod))

    async def _release(self, pod: Pod) -> None:
        ds = self._tracker.set
        assert ds is not None
        await self._clock.sleep(self._request.hook)
        if ds.pre_delete is None:
            return
        kept = [each for each in pod.metadata.finalizers if each not in ds.pre_delete.finalizers]
        body: Object = {"labels": dict.fromkeys(ds.pre_delete.labels)}
        if ds.pre_delete.finalizers:
            body["finalizers"] = kept or None
        request = verbs.patch(PODS, pod.name, {"metadata": body}, namespace=NAMESPACE)
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


def _longest_pause(request: ForecastRequest) -> float:
    """Seconds that may pass between two changes of a pod that is being updated."""
    timing = request.timing
    ready = request.new["spec"].get("minReadySeconds") or 0
    return timing.pull + timing.start + timing.ready + timing.stop + request.hook + float(ready)


def _evenly_spaced(names: list[str], count: int) -> list[str]:
    """`count` of the names, evenly spaced."""
    total = len(names)
    return [names[index * total // count] for index in range(min(count, total))] if count else []

"""Planned rollout: a forecast that goes on from the state of a real cluster, node by node."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from everynode.components.run import ComponentOptions
from everynode.forecast.answer import Forecast, ForecastError, Object
from everynode.forecast.node_plans import NodePlan, Touched, plan_nodes
from everynode.forecast.played_rollout import (
    KINDS,
    OnProgress,
    PlayedRollout,
    RolloutSettings,
    play,
)
from everynode.forecast.recording import Recording
from everynode.forecast.seeded_cluster import SeededNodes, Seeding
from everynode.inspect.evaluate import Evaluation, evaluate
from everynode.inspect.stored_objects import StoredObjects
from everynode.kube import verbs
from everynode.kube.errors import KubeError
from everynode.kube.resources import Resource
from everynode.sim.engine.clock import EPOCH
from everynode.sim.engine.loop import SimLoop
from everynode.sim.plans.plan import Timing

_SERVERS_METADATA: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "finalizers",
    "ownerReferences",
    "selfLink",
)
_json: Final = msgspec.json.Decoder(Object).decode


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is rolled out, from which state, and how long things take."""

    new: Object  # the whole DaemonSet after the change
    objects: StoredObjects
    namespace: str
    timing: Timing
    hook: float = 0.0  # seconds that the program behind a preDelete hook takes
    seed: int = 1


class RolloutPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the rollout would go, in all and on each node."""

    forecast: Forecast
    recording: Recording
    nodes: tuple[NodePlan, ...]  # by name
    before: Evaluation  # when the change is made, before anything else happens


def plan_rollout(request: PlanRequest, on_progress: OnProgress = lambda *_: None) -> RolloutPlan:
    """Play the rollout from the state in which the cluster is. Raises ForecastError."""
    if request.objects.nodes is None:
        raise ForecastError("the nodes are not known")
    return play(request.seed, lambda loop: _PlannedRollout(loop, request, on_progress).run())


class _PlannedRollout(PlayedRollout):
    """An update of a DaemonSet on nodes that exist."""

    def __init__(self, loop: SimLoop, request: PlanRequest, on_progress: OnProgress) -> None:
        settings = RolloutSettings(
            new=request.new,
            namespace=request.namespace,
            timing=request.timing,
            hook=request.hook,
            seed=request.seed,
        )
        # Nodes stay as they are: what becomes of sick ones cannot be foreseen.
        behaviour = replace(request.timing.behaviour(), preloaded=True)
        components = ComponentOptions(node_controllers=False, behaviour=behaviour)
        skew = request.objects.now - EPOCH - loop.time()
        super().__init__(loop, settings, on_progress, components=components, skew=skew)
        self._request = request
        self._touched: dict[str, Touched] = {}
        self._began = 0.0

    async def run(self) -> RolloutPlan:
        """From the state of the real cluster to the end of the update."""
        nodes = await self._seed()
        before = evaluate(self._tracker.snapshot(), self._clock.now())
        pods = {pod.uid: pod for pod in self._tracker.snapshot().pods or ()}
        self._tracker.begin(before.plan.target_hash)
        silent = tuple(
            name for name in nodes.silent if before.assessments[name].eligibility.should_run
        )
        # What is shown includes those that keep a pod and should have none, because of their taint.
        shown = {*silent, *(name for name in nodes.silent if self._tracker.pods.get(name))}
        self._recorder.begin(self._tracker.states(shown))
        self._transport.failing = nodes.not_ready
        self._transport.healed = nodes.failing - nodes.not_ready
        self._transport.begin()
        self._began = self._clock.monotonic()
        self._start(self._components.run, self._controller.run)
        ended = await self._wait_for_end(self._began)
        desired = before.fleet.counts.desired
        forecast, recording = self._conclude(self._began, desired, silent, ended=ended)
        after = evaluate(self._tracker.snapshot(), self._clock.now())
        await self._stop()
        found = plan_nodes(before, after, pods, recording=recording, touched=self._touched)
        if not self._touched and not recording.changes and forecast.ending == "complete":
            forecast = msgspec.structs.replace(forecast, ending="unchanged")
        return RolloutPlan(forecast=forecast, recording=recording, nodes=found, before=before)

    async def _seed(self) -> SeededNodes:
        """Store the objects of the real cluster, and then make the change."""
        request, objects = self._request, self._request.objects
        seeding = Seeding(self._api.store, self._client, objects)
        new_pod = request.new["spec"]["template"].get("spec") or {}
        await seeding.add_references(request.namespace, [*seeding.templates(), new_pod])
        nodes = seeding.add_nodes()
        seeding.add_revisions()
        manifest = _without_servers_fields(request.new)
        if objects.ds is None:
            await self._create(manifest, "the DaemonSet is refused")
            return nodes
        live = _json(objects.ds)
        await self._create(_without_servers_fields(live), "the DaemonSet as it is was refused")
        seeding.add_daemonset(self._stored_daemonset(), live)
        seeding.add_pods(request.timing)
        await self._update(manifest)
        return nodes

    async def _create(self, manifest: Object, refusal: str) -> None:
        resource: Resource = KINDS[manifest["apiVersion"]]
        request = verbs.create(resource, manifest, namespace=self._request.namespace)
        try:
            await self._client.write(request, bytes)
        except KubeError as error:
            raise ForecastError(f"{refusal}: {error.message}") from None

    def _stored_daemonset(self) -> Object:
        """Return the DaemonSet as the store has it."""
        collection = self._api.store.collection(self._resource.full_name)
        record = collection.get(self._request.namespace, self._name)
        assert record is not None
        return _json(record.body)

    def _note_take(self, node: str) -> None:
        if node not in self._touched:
            seconds = round(self._clock.monotonic() - self._began, 3)
            self._touched[node] = Touched(len(self._touched) + 1, seconds)


def _without_servers_fields(manifest: Object) -> Object:
    """Return a DaemonSet as a client would write it."""
    metadata = {
        key: value for key, value in manifest["metadata"].items() if key not in _SERVERS_METADATA
    }
    return {key: value for key, value in manifest.items() if key != "status"} | {
        "metadata": metadata
    }

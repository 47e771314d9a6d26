"""Forecast: plays one rollout of a manifest in a simulated cluster and reports how it went."""

from __future__ import annotations

import dataclasses
import enum
import random
from typing import Final

import msgspec
from msgspec.structs import replace

from everynode.api.validation import validate_daemonset, validate_update
from everynode.components.annotations import STOPPED
from everynode.components.run import ComponentOptions
from everynode.forecast.answer import Forecast, ForecastError, Object
from everynode.forecast.played_rollout import (
    KINDS,
    POLL_INTERVAL,
    OnProgress,
    PlayedRollout,
    RolloutSettings,
    longest_pause,
    play,
)
from everynode.forecast.prepared_manifest import NAMESPACE, prepare_manifest, without_rollout_limits
from everynode.forecast.recording import Recording
from everynode.kube import verbs
from everynode.kube.resources import NODES
from everynode.sim.engine.loop import SimLoop
from everynode.sim.plans.plan import Timing

_INSTALL_TIMEOUT: Final = 3600.0


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


def forecast(request: ForecastRequest, on_progress: OnProgress = lambda *_: None) -> Forecast:
    """Play the rollout; `on_progress` gets each step and a node count. Raises ForecastError."""
    return record(request, on_progress)[0]


def record(
    request: ForecastRequest, on_progress: OnProgress = lambda *_: None
) -> tuple[Forecast, Recording]:
    """Play the rollout as `forecast` does, and return also how each node went through it."""
    _validate(request)
    return play(request.seed, lambda loop: _InventedRollout(loop, request, on_progress).run())


def _validate(request: ForecastRequest) -> None:
    """Raise for manifests that an API server would refuse."""
    old, new = prepare_manifest(request.old), prepare_manifest(request.new)
    faults = validate_daemonset(old) or validate_daemonset(new) or validate_update(old, new)
    for fault in faults:
        raise ForecastError(f"{new['metadata']['name']}: {fault}")


class _InventedRollout(PlayedRollout):
    """An update on invented nodes, from a version that is installed there first."""

    def __init__(self, loop: SimLoop, request: ForecastRequest, on_progress: OnProgress) -> None:
        settings = RolloutSettings(
            new=request.new,
            namespace=NAMESPACE,
            timing=request.timing,
            hook=request.hook,
            seed=request.seed,
        )
        behaviour = dataclasses.replace(request.timing.behaviour(), preloaded=True)
        components = ComponentOptions(nodes=request.nodes, behaviour=behaviour)
        super().__init__(loop, settings, on_progress, components=components)
        self._request = request
        self._random = random.Random(f"{request.seed}/forecast")

    async def run(self) -> tuple[Forecast, Recording]:
        """From an empty cluster to the end of the update."""
        self._start(self._components.run, self._controller.run)
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
        await self._update(prepare_manifest(self._request.new))
        ended = await self._wait_for_end(began)
        found = self._conclude(began, total, silent, ended=ended)
        await self._stop()
        return found

    # --- The steps -------------------------------------------------------------------------------

    async def _dry_run(self, manifest: Object) -> None:
        """Create it with dryRun and strict field validation; raises if the server refuses it."""
        prepared = prepare_manifest(manifest)
        resource = KINDS[prepared["apiVersion"]]
        request = verbs.create(resource, prepared, namespace=NAMESPACE, dry_run=True)
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
        deadline = self._clock.monotonic() + _INSTALL_TIMEOUT + longest_pause(self._settings)
        while not self._is_installed():
            if self._clock.monotonic() > deadline:
                raise ForecastError(
                    f"the current version does not become available: {self._progressing_message()}"
                )
            self._on_progress("installing", len(self._tracker.up))
            await self._clock.sleep(POLL_INTERVAL)
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

    async def _stop_kubelets(self) -> tuple[str, ...]:
        """Stop some kubelets, and wait until their nodes are Unknown."""
        count = min(self._request.not_ready, len(self._tracker.pods))
        names = sorted(self._random.sample(sorted(self._tracker.pods), count))
        for name in names:
            await self._write(
                verbs.patch(NODES, name, {"metadata": {"annotations": {STOPPED: "true"}}})
            )
        while any(self._tracker.nodes()[name].ready != "Unknown" for name in names):
            await self._clock.sleep(POLL_INTERVAL)
        if names:
            await self._clock.sleep(POLL_INTERVAL)
        return tuple(names)

    def _choose_failing(self, silent: tuple[str, ...]) -> None:
        names = sorted(self._tracker.pods.keys() - set(silent))
        count = min(self._request.failing, len(names))
        self._transport.failing = frozenset(self._random.sample(names, count))
        self._transport.failure = _FAILURES[self._request.fail_how]


def _evenly_spaced(names: list[str], count: int) -> list[str]:
    """`count` of the names, evenly spaced."""
    total = len(names)
    return [names[index * total // count] for index in range(min(count, total))] if count else []

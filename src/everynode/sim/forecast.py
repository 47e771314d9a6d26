"""How a rollout would go: a manifest, a fleet and some bad luck in, what happens and when out."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.amount import scale
from everynode.api.objects import Pod
from everynode.api.validation import validate_daemonset, validate_update
from everynode.cluster.local import LocalTransport
from everynode.cluster.machinery.run import Machinery
from everynode.cluster.machinery.run import Options as MachineryOptions
from everynode.cluster.rest import Api
from everynode.controller.run import Controller, Options
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
from everynode.sim.clock import SimClock
from everynode.sim.fleet import Fleet
from everynode.sim.invariants.referee import Referee
from everynode.sim.loop import SimLoop
from everynode.sim.passage import Passage
from everynode.sim.plan import Timing
from everynode.sim.rehearsal import NAMESPACE, installed, prepare
from everynode.sim.residents import Residents

Object = dict[str, Any]

KINDS: Final = {each.api_version: each for each in (DAEMONSETS, ADVANCED, ADVANCED_V1ALPHA1)}
_LOOK: Final = 5.0  # seconds between two looks at the fleet
# Nothing of ours waits longer than this by itself: in-place updates are given up after 10 minutes.
_QUIET: Final = 900.0
_INSTALL: Final = 3600.0
_LONGEST: Final = 60 * 86400.0
_STOPPED: Final = "sim.everynode.io/stopped"
_GARBAGE: Final = (200_000, 20, 100)
_json: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ForecastError(ValueError):
    """Nothing can be forecast; the message says what is wrong with the question."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be rolled out, on what, and what goes wrong."""

    old: Object
    new: Object
    nodes: int = 100
    failing: int = 0  # nodes on which the new version does not become ready
    not_ready: int = 0  # nodes whose kubelet is silent from the start
    labels: tuple[tuple[str, str, int], ...] = ()  # key, value, on how many nodes
    timing: Timing = Timing(pull=5.0, start=20.0, stop=10.0)
    hook: float = 0.0  # seconds that the program behind a preDelete hook takes
    seed: int = 1


class Forecast(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How it went."""

    name: str
    ending: str  # complete, held, stopped, incomplete, unchanged or endless
    seconds: float  # until the last node went up, or the last one down
    nodes: int  # that run the DaemonSet
    updated: int
    held: int
    to_come: int  # still to be updated, and waiting
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

    @property
    def writes_per_pod(self) -> float:
        """What an updated pod costs the API server."""
        moved = self.updated + len(self.stuck)
        return sum(self.writes.values()) / moved if moved else 0.0


def forecast(question: Question, told: Callable[[str, int], None] = lambda *_: None) -> Forecast:
    """Roll it out in a simulated cluster; `told` hears how far it is. Raises ForecastError."""
    _refuse(question)
    loop = SimLoop(question.seed)
    try:
        with _few_collections():
            found: Forecast = loop.run_until_complete(_Rollout(loop, question, told).run())
            return found
    finally:
        loop.close()


def _refuse(question: Question) -> None:
    """Whatever an API server would not take."""
    old, new = prepare(question.old), prepare(question.new)
    faults = validate_daemonset(old) or validate_daemonset(new) or validate_update(old, new)
    for fault in faults:
        raise ForecastError(f"{new['metadata']['name']}: {fault}")


@contextmanager
def _few_collections() -> Iterator[None]:
    """A fleet is thousands of live objects, which every collection would go through again."""
    before = gc.get_threshold()
    gc.set_threshold(*_GARBAGE)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Rollout:
    """One cluster, one DaemonSet, one update."""

    def __init__(self, loop: SimLoop, question: Question, told: Callable[[str, int], None]) -> None:
        self._loop, self._question, self._told = loop, question, told
        self._clock = SimClock(loop, f"{question.seed}/forecast")
        self._random = random.Random(f"{question.seed}/forecast")
        api = Api(clock=self._clock)
        transport = LocalTransport(api)
        self._fleet = Fleet(api.store, loop, self._clock)
        self._fleet.preparing = self._release_later
        self._client = Client(transport, self._clock)
        options = MachineryOptions(nodes=question.nodes, behaviour=question.timing.behaviour())
        self._machinery = Machinery(transport, self._clock, options)
        settle = self._machinery.fleet.settle
        residents = Residents(api.store, transport, self._clock, settle)
        self._passage = Passage(transport, self._fleet, residents)
        self._controller = Controller(self._passage, self._clock, Options(native=True))
        self._released: set[str] = set()
        self._resource: Resource = KINDS[question.new["apiVersion"]]
        self._name: str = question.new["metadata"]["name"]

    async def run(self) -> Forecast:
        """From an empty cluster to the end of the update."""
        create = self._loop.create_task
        tasks = [create(self._machinery.run()), create(self._controller.run())]
        await self._try_out(self._question.old)
        await self._try_out(self._question.new)
        await self._machinery.ready()
        await self._label()
        await self._install()
        silent = await self._silence()
        self._choose_failing(silent)
        total = len(self._fleet.pods)
        self._fleet.begin()
        self._passage.begin()
        began = self._clock.monotonic()
        await self._update()
        ended = await self._follow(began)
        found = self._conclude(began, total, silent, ended=ended)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return found

    # --- The steps -------------------------------------------------------------------------------

    async def _try_out(self, manifest: Object) -> None:
        """Whether a server would take it, fields that it does not know included."""
        made = prepare(manifest)
        resource = KINDS[made["apiVersion"]]
        request = verbs.create(resource, made, namespace=NAMESPACE, dry_run=True)
        strict = (*request.query, ("fieldValidation", "Strict"))
        await self._write(replace(request, query=strict))

    async def _label(self) -> None:
        names = sorted(self._fleet.nodes())
        for key, value, count in self._question.labels:
            for name in _spread(names, count):
                body = {"metadata": {"labels": {key: value}}}
                await self._write(verbs.patch(NODES, name, body))

    async def _install(self) -> None:
        manifest = installed(prepare(self._question.old))
        resource = KINDS[manifest["apiVersion"]]
        await self._write(verbs.create(resource, manifest, namespace=NAMESPACE))
        deadline = self._clock.monotonic() + _INSTALL + _rests(self._question)
        while not self._is_installed():
            if self._clock.monotonic() > deadline:
                raise ForecastError(f"the current version does not become available: {self._why()}")
            self._told("installing", len(self._fleet.up))
            await self._clock.sleep(_LOOK)
        if not self._fleet.pods:
            raise ForecastError(
                "no node would get a pod: the template's node selector, affinity or tolerations "
                "rule all of them out; give nodes the labels with --label KEY=VALUE"
            )

    def _is_installed(self) -> bool:
        ds = self._fleet.set
        if ds is None or ds.status.observed_generation != ds.metadata.generation:
            return False
        return ds.status.available == ds.status.desired == len(self._fleet.up)

    def _why(self) -> str:
        ds = self._fleet.set
        found = ds.status.conditions if ds is not None else ()
        return next((each.message for each in found if each.type == "Progressing"), "")

    async def _silence(self) -> tuple[str, ...]:
        """Stop some kubelets, and wait until everybody knows."""
        count = min(self._question.not_ready, len(self._fleet.pods))
        names = sorted(self._random.sample(sorted(self._fleet.pods), count))
        for name in names:
            await self._write(
                verbs.patch(NODES, name, {"metadata": {"annotations": {_STOPPED: "true"}}})
            )
        while any(self._fleet.nodes()[name].ready != "Unknown" for name in names):
            await self._clock.sleep(_LOOK)
        if names:
            await self._clock.sleep(_LOOK)
        return tuple(names)

    def _choose_failing(self, silent: tuple[str, ...]) -> None:
        names = sorted(self._fleet.pods.keys() - set(silent))
        count = min(self._question.failing, len(names))
        self._passage.failing = frozenset(self._random.sample(names, count))

    async def _update(self) -> None:
        manifest = prepare(self._question.new)
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

    async def _follow(self, began: float) -> bool:
        """Wait until it is done, or nothing moves any more; False if it never came to an end."""
        fleet, quiet = self._fleet, _QUIET + _rests(self._question)
        while self._clock.monotonic() < began + _LONGEST:
            await self._clock.sleep(_LOOK)
            self._told("updating", len(fleet.updated))
            if self._is_complete() or self._clock.monotonic() > fleet.stirred_at + quiet:
                return True
        return False

    def _is_complete(self) -> bool:
        ds = self._fleet.set
        assert ds is not None
        if ds.status.observed_generation != ds.metadata.generation:
            return False
        return any(
            each.type == "Complete" and each.status == "True" for each in ds.status.conditions
        )

    # --- Hooks -----------------------------------------------------------------------------------

    def _release_later(self, pod: Pod) -> None:
        """The program behind the hook lets a pod go after a while."""
        if pod.uid not in self._released:
            self._released.add(pod.uid)
            self._loop.create_task(self._release(pod))

    async def _release(self, pod: Pod) -> None:
        ds = self._fleet.set
        assert ds is not None
        await self._clock.sleep(self._question.hook)
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
    ) -> Forecast:
        referee, fleet = self._fleet.referee(), self._fleet
        ds = referee.ds
        reachable = referee.wanted - set(silent)
        stuck = sorted((referee.holders & reachable) - fleet.updated)
        left = reachable - referee.holders
        to_come = left & referee.scope if referee.rolling else frozenset()
        desired = len(referee.wanted)
        return Forecast(
            name=self._name,
            ending=_ending(referee, fleet, stuck, to_come, left) if ended else "endless",
            seconds=round(fleet.changed_at - began, 1),
            nodes=total,
            updated=len(fleet.updated),
            held=len(left - to_come),
            to_come=len(to_come),
            stuck=tuple(stuck),
            silent=silent,
            surging=referee.surging,
            budget=referee.limit,
            most_down=fleet.most_down,
            most_doubled=fleet.most_doubled,
            partition=scale(ds.strategy.partition, desired, round_up=False),
            selector=ds.strategy.selector is not None,
            paused=ds.strategy.paused,
            on_delete=not referee.rolling,
            writes=dict(sorted(self._passage.writes.items())),
            message=self._why(),
            curve=tuple(fleet.curve),
        )

    async def _write(self, request: Any) -> None:
        try:
            await self._client.write(request, bytes)
        except KubeError as error:
            raise ForecastError(error.message) from None


def _ending(
    referee: Referee,
    fleet: Fleet,
    stuck: list[str],
    to_come: frozenset[str],
    left: frozenset[str],
) -> str:
    if not any(not fleet.is_old(hash) for hash in referee.targets):
        return "unchanged"
    if to_come:
        return "stopped"
    if stuck:
        return "incomplete"
    return "held" if left else "complete"


def _rests(question: Question) -> float:
    """How long a pod may take without anybody noticing that it moves."""
    timing = question.timing
    ready = question.new["spec"].get("minReadySeconds") or 0
    return timing.pull + timing.start + timing.ready + timing.stop + question.hook + float(ready)


def _spread(names: list[str], count: int) -> list[str]:
    """So many of them, evenly over all."""
    total = len(names)
    return [names[index * total // count] for index in range(min(count, total))] if count else []

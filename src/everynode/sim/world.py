"""World: one simulated cluster with its controllers, in which a plan is played and checked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from everynode.apiserver.storage.store import Record as Stored
from everynode.apiserver.storage.store import Store
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.run import ComponentOptions, Components
from everynode.sim.actions.catalogue import ActionRunner
from everynode.sim.checks import CHECKS
from everynode.sim.checks.check import Check, Violation
from everynode.sim.checks.converged import differences_from_spec
from everynode.sim.checks.possible_views import by_controller
from everynode.sim.checks.request_rate import RequestRate
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from everynode.sim.engine.process import Process
from everynode.sim.faults.active import REQUEST_FAULTS, ActiveFaults
from everynode.sim.faults.next_release import THIS
from everynode.sim.faults.transport import FaultyTransport
from everynode.sim.history.record import Commit, RecordedRequest, WorldRecord
from everynode.sim.plans.plan import Plan
from everynode.sim.recovery import RecoveryCheck

_HEAL_SECONDS: Final = 15.0  # seconds until nodes and watches have recovered
_CHECK_INTERVAL: Final = 5.0  # seconds between two checks whether the world has settled
_LARGE_WORLD: Final = 100  # nodes; with more, settling is checked less often
_SETTLED_SECONDS: Final = 60.0  # seconds for which the world must then stay settled
_IDLE_SECONDS: Final = 700.0  # the same for plans with long_idle, before and after a restart
_RESTART_DELAY: Final = 2.0  # seconds until a crashed process is started again
_CONCURRENT_REQUESTS: Final = 16  # of the components; requests take no time here
_HISTORY_BYTES: Final = 8 << 20  # bytes of watch history; small, because reused memory is fast
_MAX_VIOLATIONS: Final = 5
_MAX_LISTED: Final = 3  # differences listed where a world does not settle


_ChecksOfKind = tuple[list[Check], list[Check]]  # called with `check`, with `observe`


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one plan."""

    seed: int
    name: str
    seconds: float  # simulated
    commits: int
    writes: int  # of controllers
    trace: str  # one hash over every commit and request
    violations: tuple[Violation, ...] = msgspec.field(default=(), name="breaches")
    fault_counts: dict[str, int] = msgspec.field(default_factory=dict, name="struck")

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return not self.violations


class World:
    """Runs one plan from beginning to end."""

    def __init__(self, loop: SimLoop, plan: Plan) -> None:
        self.loop = loop
        self.plan = plan
        self.violations: list[Violation] = []
        self.clock = SimClock(loop, f"{plan.seed}/world")
        self.api = Api(clock=self.clock, store=_first_store())
        self.record = WorldRecord(self.api.store, loop.time)
        self.faults = ActiveFaults(plan.actions, seed=plan.seed, time=loop.time)
        self.processes: dict[int, Process] = {}
        self.releases: dict[int, str] = {}  # by index, of controllers that run another release
        self.notes: list[tuple[float, str]] = []  # for the timeline
        self._starts: Counter[int] = Counter()
        self._checks: list[Check] = [each(self.record) for each in CHECKS]
        # By kind, and whether a controller wrote.
        self._checks_by_kind: dict[tuple[str, bool], _ChecksOfKind] = {}
        self.record.on_commit.append(self._check_commit)
        self._request_rate = RequestRate(self.record)
        self.record.on_request.append(self._request_sent)
        self.components = Components(
            FaultyTransport(self.api, self.record, name="machinery", clock=self.clock),
            self.clock,
            ComponentOptions(
                nodes=plan.nodes,
                behaviour=plan.timing.behaviour(),
                max_in_flight=_CONCURRENT_REQUESTS,
            ),
        )
        user = FaultyTransport(self.api, self.record, name="person", clock=self.clock)
        self.runner = ActionRunner(self, user)

    # --- Running a plan ------------------------------------------------------------------------

    async def run(self) -> Result:
        """Play the plan from the first node to the idle end."""
        components = self.loop.create_task(self.components.run())
        await self.components.ready()
        await self._nodes_ready()
        for index in range(self.plan.controllers):
            self.start(index)
        for manifest in self.plan.manifests:
            await self.runner.create(manifest)
        await self._play_actions()
        await self._settle()
        self._check_processes()
        for process in self.processes.values():
            process.crash("the end")
        components.cancel()
        await asyncio.wait([components])
        return self._result()

    async def _nodes_ready(self) -> None:
        while len(self.record.cluster.nodes) < self.plan.nodes or any(
            node.spec.taints for node in self.record.cluster.nodes.values()
        ):
            await self.clock.sleep(0.1)

    async def _play_actions(self) -> None:
        timed = [each for each in self.plan.actions if each.name not in REQUEST_FAULTS]
        for each in sorted(timed, key=lambda each: each.at):
            await self.clock.sleep(each.at - self.clock.monotonic())
            self.note(each.describe())
            await self.runner.run(each)
        await self.clock.sleep(self.plan.quiet_at - self.clock.monotonic())
        self.note("nothing more goes wrong")
        self.faults.end_all()
        await self.runner.heal()

    # --- Settling ------------------------------------------------------------------------------

    async def _settle(self) -> None:
        await self.clock.sleep(_HEAL_SECONDS)
        left = await self.wait_until_settled(self.plan.patience - _HEAL_SECONDS)
        if left:
            self.report_violation("L1", f"not settled after {self.plan.patience:.0f} s: {left}")
            return
        self.note("the world has settled")
        await self._stay_idle(_IDLE_SECONDS if self.plan.long_idle else _SETTLED_SECONDS)
        if self.plan.long_idle:
            await self._restart_all()
            await self._stay_idle(_IDLE_SECONDS)
        if self.plan.check_recovery:
            await RecoveryCheck(self).play()

    async def wait_until_settled(self, seconds: float) -> list[str]:
        """Wait until the world has settled; return what differs when the time is up."""
        deadline = self.clock.monotonic() + seconds
        while not self._is_settled():
            if self.clock.monotonic() >= deadline:
                return self._differences()
            await self.runner.answer_hooks()
            # Many nodes take long to check, and longer to settle.
            await self.clock.sleep(_CHECK_INTERVAL * max(1, self.plan.nodes // _LARGE_WORLD))
        return []

    async def _stay_idle(self, seconds: float) -> None:
        """Stay idle, and check that controllers write nothing meanwhile (L3)."""
        before, requests = len(self.record.commits), len(self.record.requests)
        await self.clock.sleep(seconds)
        tried = [each for each in self.record.requests[requests:] if _is_tried(each)]
        if tried:
            text = f"{tried[0].request.method} {tried[0].request.path}"
            self.report_violation(
                "L3", f"{len(tried)} writes were tried at rest, the first one {text}"
            )
        late = [each for each in self.record.commits[before:] if _by_us(each)]
        if late:
            texts = [f"{each.type} {each.kind} {_name(each)}" for each in late[:3]]
            self.report_violation("L3", f"{len(late)} writes at rest: {', '.join(texts)}")
        left = self._differences()
        if left:
            self.report_violation("L1", f"did not stay settled: {left}")

    async def _restart_all(self) -> None:
        """Restart every controller, one after the other."""
        for index in sorted(self.processes):
            self.note(f"controller {index} is restarted")
            await self.processes[index].stop()
            self.start(index)
        await self.clock.sleep(_CHECK_INTERVAL)

    def _is_settled(self) -> bool:
        """Whether nothing has changed for a while and the cluster matches all specs."""
        busy = self.record.changed_at > self.clock.monotonic() - _CHECK_INTERVAL
        return not busy and not any(differences_from_spec(self.record.cluster, self._evaluated_at))

    @property
    def _evaluated_at(self) -> float:
        """The latest time that any clock has shown (see `RecordedRequest.evaluated_at`)."""
        return self.clock.now() + self.record.max_clock_lead

    def _differences(self) -> list[str]:
        """The first few differences from the specs."""
        return list(
            islice(differences_from_spec(self.record.cluster, self._evaluated_at), _MAX_LISTED)
        )

    # --- Processes -----------------------------------------------------------------------------

    def start(self, index: int) -> None:
        """Start a controller."""
        self._starts[index] += 1
        self.processes[index] = Process(
            self.loop,
            self.api,
            self.record,
            name=f"controller-{index}.{self._starts[index]}",
            seed=self.plan.seed,
            faults=self.faults,
            elected=self.plan.controllers > 1,
            release=self.releases.get(index, THIS),
            crashed=self._crashed,
        )

    def _crashed(self, process: Process, why: str) -> None:
        self.note(f"{process.name} dies: {why}")
        index = next((i for i, each in self.processes.items() if each is process), None)
        if index is not None and why != "the end":
            self.loop.call_later(_RESTART_DELAY, self.start, index)

    def _check_processes(self) -> None:
        for process in self.processes.values():
            if process.error is not None:
                self.report_violation("S0", f"{process.name} ended by itself: {process.error!r}")
            for name in process.contested_standing_by:
                text = f"{process.name} stands by and takes the leader's status of {name} for"
                self.report_violation("S11", f"{text} another manager's")

    # --- Checking ------------------------------------------------------------------------------

    def _check_commit(self, commit: Commit) -> None:
        kind, ours = whose = commit.kind, by_controller(commit)
        checks = self._checks_by_kind.get(whose)
        if checks is None:
            checking = [each for each in self._checks if each.applies_to(kind, by_controller=ours)]
            observing = [each for each in self._checks if kind in each.observed_kinds]
            checks = self._checks_by_kind[whose] = (checking, observing)
        checking, observing = checks
        for each in checking:
            for message in each.check(commit):
                self.report_violation(each.id, message)
        for each in observing:
            each.observe(commit)

    def _request_sent(self, cause: RecordedRequest, status: int) -> None:
        for message in self._request_rate.cause(cause, status):
            self.report_violation(self._request_rate.id, message)

    def report_violation(self, promise: str, message: str) -> None:
        """Record that a promise was broken."""
        if message[:1] in "SLR" and ": " in message[:8]:
            promise, _, message = message.partition(": ")
        self.note(f"BROKEN {promise}: {message}")
        if len(self.violations) < _MAX_VIOLATIONS:
            self.violations.append(Violation(promise, round(self.loop.time(), 3), message))

    def note(self, text: str) -> None:
        """Add a line to the timeline."""
        self.notes.append((self.loop.time(), text))

    def _result(self) -> Result:
        return Result(
            seed=self.plan.seed,
            name=self.plan.name,
            seconds=round(self.loop.time(), 3),
            commits=len(self.record.commits),
            writes=sum(map(_by_us, self.record.commits)),
            trace=self.record.digest(),
            violations=tuple(self.violations),
            fault_counts=dict(sorted(self.faults.fault_counts.items())),
        )

    def transports(self) -> Iterator[FaultyTransport]:
        """The transports of the running controllers."""
        for _, process in sorted(self.processes.items()):
            yield process.transport


def _first_store() -> Store:
    """A store with the objects of a new cluster: namespaces, priority classes, the CRD."""
    version, records = _beginning()
    store = Store(history_bytes=_HISTORY_BYTES)
    for collection, record in records:
        store.restore(store.collection(collection), record)
    store.resume(version)
    return store


@lru_cache(maxsize=1)
def _beginning() -> tuple[int, tuple[tuple[str, Stored], ...]]:
    """The version and the objects with which worlds begin; built once, as that is slow."""
    loop = SimLoop("beginning")
    store = Api(clock=SimClock(loop, "beginning")).store
    loop.close()
    found = ((each.name, record) for each in store.collections() for record in each.scan())
    return store.version, tuple(found)


def _by_us(commit: Commit) -> bool:
    return by_controller(commit) and not commit.kind.startswith("leases")


def _is_tried(cause: RecordedRequest) -> bool:
    """Whether a controller sent a write; lease renewals and late Events do not count."""
    path = cause.request.path
    return cause.actor.startswith("controller") and "/leases" not in path and "/events" not in path


def _name(commit: Commit) -> str:
    found = commit.after if commit.after is not None else commit.before
    return str(found.metadata.name)


def play(plan: Plan) -> tuple[Result, World]:
    """Play a plan; return its result, and the world for inspection."""
    loop = SimLoop(plan.seed)
    try:
        world = World(loop, plan)
        result: Result = loop.run_until_complete(world.run())
        return result, world
    finally:
        loop.close()

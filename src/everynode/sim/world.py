"""One world: a cluster, its controllers, and everything that a plan lets happen to them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from everynode.cluster.machinery.run import Machinery
from everynode.cluster.machinery.run import Options as MachineryOptions
from everynode.cluster.rest import Api
from everynode.cluster.store import Record as Stored
from everynode.cluster.store import Store
from everynode.sim.actions import Actions
from everynode.sim.clock import SimClock
from everynode.sim.door import Door
from everynode.sim.edition import THIS
from everynode.sim.encore import Encore
from everynode.sim.invariants import INVARIANTS
from everynode.sim.invariants.pace import Pace
from everynode.sim.invariants.promise import Breach, Invariant
from everynode.sim.invariants.settled import complaints
from everynode.sim.invariants.views import by_controller
from everynode.sim.loop import SimLoop
from everynode.sim.plan import Happening, Plan
from everynode.sim.process import Process
from everynode.sim.record import Asked, Commit, Record
from everynode.sim.weather import OF_CALLS, Sky

_HEALING: Final = 15.0  # seconds until nodes and watches have noticed that they are well again
_LOOK: Final = 5.0  # seconds between two looks whether the world has settled
_MANY: Final = 100  # nodes that can be looked at every time
_REST: Final = 60.0  # seconds for which it must then stay as it is
_TAIL: Final = 700.0  # the same at the long quiet end, on either side of a restart
_RESTART: Final = 2.0  # seconds until a crashed process is there again
_HANDS: Final = 16  # requests that the machinery has under way; none of them takes time here
_HISTORY: Final = 8 << 20  # bytes that watches can catch up on; memory that is used again is fast
_MOST_BREACHES: Final = 5
_MOST_TOLD: Final = 3  # of what is missing in a world that does not settle


_Panel = tuple[list[Invariant], list[Invariant]]  # who judges, and who notes what happens


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a plan."""

    seed: int
    name: str
    seconds: float  # simulated
    commits: int
    writes: int  # of controllers
    trace: str  # one hash over all that happened
    breaches: tuple[Breach, ...] = ()
    struck: dict[str, int] = {}

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return not self.breaches


class World:
    """Runs one plan from beginning to end."""

    def __init__(self, loop: SimLoop, plan: Plan) -> None:
        self.loop = loop
        self.plan = plan
        self.breaches: list[Breach] = []
        self.clock = SimClock(loop, f"{plan.seed}/world")
        self.api = Api(clock=self.clock, store=_first_store())
        self.record = Record(self.api.store, loop.time)
        self.sky = Sky(plan.happenings, seed=plan.seed, time=loop.time)
        self.processes: dict[int, Process] = {}
        self.editions: dict[int, str] = {}  # of the controllers that are not of this release
        self.notes: list[tuple[float, str]] = []  # for the timeline
        self._incarnations: Counter[int] = Counter()
        self._invariants: list[Invariant] = [each(self.record) for each in INVARIANTS]
        self._panels: dict[tuple[str, bool], _Panel] = {}  # by kind, and whether ours
        self.record.judges.append(self._judge)
        self._pace = Pace(self.record)
        self.record.listeners.append(self._asked)
        self.machinery = Machinery(
            Door(self.api, self.record, name="machinery", clock=self.clock),
            self.clock,
            MachineryOptions(
                nodes=plan.nodes, behaviour=plan.timing.behaviour(), writes_at_once=_HANDS
            ),
        )
        person = Door(self.api, self.record, name="person", clock=self.clock)
        self.actions = Actions(self, person)

    # --- A whole life --------------------------------------------------------------------------

    async def live(self) -> Result:
        """From the first node to the quiet end."""
        machinery = self.loop.create_task(self.machinery.run())
        await self.machinery.ready()
        await self._nodes_ready()
        for index in range(self.plan.controllers):
            self.start(index)
        for manifest in self.plan.manifests:
            await self.actions.create(manifest)
        await self._let_happen()
        await self._settle()
        self._look_at_processes()
        for process in self.processes.values():
            process.crash("the end")
        machinery.cancel()
        await asyncio.wait([machinery])
        return self._result()

    async def _nodes_ready(self) -> None:
        while len(self.record.scene.nodes) < self.plan.nodes or any(
            node.spec.taints for node in self.record.scene.nodes.values()
        ):
            await self.clock.sleep(0.1)

    async def _let_happen(self) -> None:
        timed = [each for each in self.plan.happenings if each.what not in OF_CALLS]
        for each in sorted(timed, key=lambda each: each.at):
            await self.clock.sleep(each.at - self.clock.monotonic())
            self.note(each.describe())
            await self.actions.do(each)
        await self.clock.sleep(self.plan.quiet_at - self.clock.monotonic())
        self.note("nothing more goes wrong")
        self.sky.lift()
        await self.actions.heal()

    # --- Settling ------------------------------------------------------------------------------

    async def _settle(self) -> None:
        await self.clock.sleep(_HEALING)
        left = await self.settled(self.plan.patience - _HEALING)
        if left:
            self.breach("L1", f"not settled after {self.plan.patience:.0f} s: {left}")
            return
        self.note("the world has settled")
        await self._rest(_TAIL if self.plan.tail else _REST)
        if self.plan.tail:
            await self._change_guard()
            await self._rest(_TAIL)
        if self.plan.encore:
            await Encore(self).play()

    async def settled(self, seconds: float) -> list[str]:
        """Wait until the world has settled; what is still missing when the time is up."""
        deadline = self.clock.monotonic() + seconds
        while not self._is_settled():
            if self.clock.monotonic() >= deadline:
                return self._complaints()
            await self.actions.tend()
            # A large fleet takes long to look at, and longer to settle.
            await self.clock.sleep(_LOOK * max(1, self.plan.nodes // _MANY))
        return []

    async def _rest(self, seconds: float) -> None:
        """Nothing may be written while there is nothing to do."""
        before, asked = len(self.record.commits), len(self.record.asked)
        await self.clock.sleep(seconds)
        tried = [each for each in self.record.asked[asked:] if _is_tried(each)]
        if tried:
            text = f"{tried[0].request.method} {tried[0].request.path}"
            self.breach("L3", f"{len(tried)} writes were tried at rest, the first one {text}")
        late = [each for each in self.record.commits[before:] if _by_us(each)]
        if late:
            texts = [f"{each.type} {each.kind} {_name(each)}" for each in late[:3]]
            self.breach("L3", f"{len(late)} writes at rest: {', '.join(texts)}")
        left = self._complaints()
        if left:
            self.breach("L1", f"did not stay settled: {left}")

    async def _change_guard(self) -> None:
        """Everybody is restarted, the leader first."""
        for index in sorted(self.processes):
            self.note(f"controller {index} is restarted")
            await self.processes[index].stop()
            self.start(index)
        await self.clock.sleep(_LOOK)

    def _is_settled(self) -> bool:
        """Whether nothing happens any more and nothing is missing."""
        busy = self.record.changed_at > self.clock.monotonic() - _LOOK
        return not busy and not any(complaints(self.record.scene, self.clock.now()))

    def _complaints(self) -> list[str]:
        """The first few things that are not as they should be."""
        return list(islice(complaints(self.record.scene, self.clock.now()), _MOST_TOLD))

    # --- Processes -----------------------------------------------------------------------------

    def start(self, index: int) -> None:
        """Start a controller."""
        self._incarnations[index] += 1
        self.processes[index] = Process(
            self.loop,
            self.api,
            self.record,
            name=f"controller-{index}.{self._incarnations[index]}",
            seed=self.plan.seed,
            sky=self.sky,
            elected=self.plan.controllers > 1,
            edition=self.editions.get(index, THIS),
            crashed=self._crashed,
        )

    def _crashed(self, process: Process, why: str) -> None:
        self.note(f"{process.name} dies: {why}")
        index = next((i for i, each in self.processes.items() if each is process), None)
        if index is not None and why != "the end":
            self.loop.call_later(_RESTART, self.start, index)

    def _look_at_processes(self) -> None:
        for process in self.processes.values():
            if process.trouble is not None:
                self.breach("S0", f"{process.name} ended by itself: {process.trouble!r}")

    # --- Judging -------------------------------------------------------------------------------

    def _judge(self, commit: Commit) -> None:
        kind, ours = whose = commit.kind, by_controller(commit)
        panel = self._panels.get(whose)
        if panel is None:
            judges = [each for each in self._invariants if each.looks_at(kind, ours=ours)]
            noting = [each for each in self._invariants if kind in each.noted]
            panel = self._panels[whose] = (judges, noting)
        judges, noting = panel
        for invariant in judges:
            for message in invariant.judge(commit):
                self.breach(invariant.id, message)
        for invariant in noting:
            invariant.note(commit)

    def _asked(self, asked: Asked, status: int) -> None:
        for message in self._pace.asked(asked, status):
            self.breach(self._pace.id, message)

    def breach(self, promise: str, message: str) -> None:
        """A promise was not kept."""
        if message[:1] in "SLR" and ": " in message[:8]:
            promise, _, message = message.partition(": ")
        self.note(f"BROKEN {promise}: {message}")
        if len(self.breaches) < _MOST_BREACHES:
            self.breaches.append(Breach(promise, round(self.loop.time(), 3), message))

    def note(self, text: str) -> None:
        """Something for the timeline."""
        self.notes.append((self.loop.time(), text))

    def _result(self) -> Result:
        return Result(
            seed=self.plan.seed,
            name=self.plan.name,
            seconds=round(self.loop.time(), 3),
            commits=len(self.record.commits),
            writes=sum(map(_by_us, self.record.commits)),
            trace=self.record.digest(),
            breaches=tuple(self.breaches),
            struck=dict(sorted(self.sky.struck.items())),
        )

    def doors(self) -> Iterator[Door]:
        """The ways to the server that controllers have now."""
        for _, process in sorted(self.processes.items()):
            yield process.door


def _first_store() -> Store:
    """A store with what every cluster has from its first moment."""
    version, records = _beginning()
    store = Store(history_bytes=_HISTORY)
    for collection, record in records:
        store.restore(store.collection(collection), record)
    store.resume(version)
    return store


@lru_cache(maxsize=1)
def _beginning() -> tuple[int, tuple[tuple[str, Stored], ...]]:
    """The version and the objects with which worlds begin: made once, as it takes its time."""
    loop = SimLoop("beginning")
    store = Api(clock=SimClock(loop, "beginning")).store
    loop.close()
    found = ((each.name, record) for each in store.collections() for record in each.scan())
    return store.version, tuple(found)


def _by_us(commit: Commit) -> bool:
    return by_controller(commit) and not commit.kind.startswith("leases")


def _is_tried(asked: Asked) -> bool:
    """Whether a controller wanted to write; leases are renewed, and events are told later."""
    path = asked.request.path
    return asked.actor.startswith("controller") and "/leases" not in path and "/events" not in path


def _name(commit: Commit) -> str:
    found = commit.after if commit.after is not None else commit.before
    return str(found.metadata.name)


def play(plan: Plan) -> tuple[Result, World]:
    """Run a plan; the world is there to be looked at afterwards."""
    loop = SimLoop(plan.seed)
    try:
        world = World(loop, plan)
        result: Result = loop.run_until_complete(world.live())
        return result, world
    finally:
        loop.close()


def happening(what: str, at: float, **args: object) -> Happening:
    """A happening at a time."""
    seconds = float(args.pop("seconds", 0.0))  # type: ignore[arg-type]
    return Happening(what, at=at, seconds=seconds, args=args)

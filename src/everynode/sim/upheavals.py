"""Faults of whole processes and servers: pauses, lagging replicas, upgrades, overlapping sets."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from everynode.api.crd import NAME as CRD
from everynode.api.crd import crd
from everynode.api.defaults import default_template
from everynode.cluster.store import Record
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.resources import CRDS
from everynode.sim.edition import NEXT, THIS, grown
from everynode.sim.faults import FAULTS, Fault, on_node, timed
from everynode.sim.holdups import HOLDUPS
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Object

if TYPE_CHECKING:
    from everynode.sim.world import World

_NATIVE: Final = "daemonsets.apps"
_ADVANCED: Final = "daemonsets.apps.kruise.io"
_ATTEMPTS: Final = 60  # of somebody who waits until the server accepts something
_FURTHEST: Final = 6  # events that a lagging replica is behind
LONG: Final = 1800.0  # seconds; for such a fault a world waits until it is over
_OFTEN: Final = 0.35  # of all worlds know one of these


class Upheavals:
    """What can be done to processes and servers as a whole, by name."""

    _world: World
    _client: Client

    async def _do_freeze(self, happening: Happening) -> None:
        """A process does nothing for a while, and then goes on as if nothing had been."""
        process = self._world.processes.get(int(happening.args.get("index", 0)))
        if process is not None and not process.dead:
            process.clock.freeze(happening.seconds)

    async def _do_clock_drift(self, happening: Happening) -> None:
        """The wall clock of a process runs at another speed."""
        process = self._world.processes.get(int(happening.args.get("index", 0)))
        if process is not None:
            process.clock.drift(float(happening.args["rate"]))

    async def _do_mass_join(self, happening: Happening) -> None:
        """Many nodes join in the same moment."""
        for number in range(int(happening.args["count"])):
            args = {"node": f"mass-{number:02d}"}
            await self._world.actions.do(Happening("add-node", at=happening.at, args=args))

    async def _do_lagging_replica(self, happening: Happening) -> None:
        """A controller is started anew and comes to a server whose watches are behind."""
        self._world.sky.begin(happening)
        await self._start_anew(int(happening.args.get("index", 0)))

    async def _do_upgrade(self, happening: Happening) -> None:
        """Server and controllers are upgraded: templates are stored with every default spelled."""
        before = self._spell_out()
        await self._release(NEXT)
        self._world.loop.create_task(self._downgrade(happening.seconds, before))

    async def _downgrade(self, seconds: float, before: dict[str, tuple[Object, Object]]) -> None:
        await self._world.clock.sleep(seconds)
        for name, (old, new) in before.items():
            self._store_template(_ADVANCED, name, new, old)
        await self._release(THIS)

    async def _do_release(self, happening: Happening) -> None:
        """Controllers, or one of them, are replaced by those of the next release, and back."""
        who = happening.args.get("index")
        await self._release(NEXT, who)
        if happening.seconds:
            self._world.loop.create_task(self._take_back(happening.seconds, who))

    async def _take_back(self, seconds: float, who: int | None) -> None:
        await self._world.clock.sleep(seconds)
        await self._release(THIS, who)

    async def _release(self, edition: str, who: int | None = None) -> None:
        for index in sorted(self._world.processes) if who is None else [who]:
            self._world.editions[index] = edition
            await self._start_anew(index)

    async def _do_grow_templates(self, happening: Happening) -> None:
        """A newer server serves a default that only the next release of Everynode knows."""
        for kind in (_NATIVE, _ADVANCED):
            for record in self._stored(kind):
                old: Object = msgspec.json.decode(record.body)["spec"]["template"]
                new = msgspec.json.decode(grown(msgspec.json.encode(old)))
                self._store_template(kind, record.name, old, new)

    async def _do_remove_crd(self, happening: Happening) -> None:
        """Somebody removes the kind with all its objects; then both are installed again."""
        kept = [msgspec.json.decode(each.body) for each in self._stored(_ADVANCED)]
        await self._client.write(verbs.delete(CRDS, CRD), bytes)
        await self._world.clock.sleep(happening.seconds)
        await self._until_accepted(lambda: self._client.write(verbs.create(CRDS, crd()), bytes))
        for each in kept:
            named = {key: each["metadata"][key] for key in ("name", "namespace")}
            fresh = {**each, "metadata": named, "status": {}}
            await self._until_accepted(partial(self._world.actions.create, fresh))

    async def _until_accepted(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write as soon as the server lets us: what was there before may still be going."""
        for _ in range(_ATTEMPTS):
            try:
                await write()
                return
            except KubeError:
                await self._world.clock.sleep(1.0)

    async def _do_overlap(self, happening: Happening) -> None:
        """Somebody creates a DaemonSet that selects the pods of another."""
        twin = daemonset("twin", image="agent:v1")
        twin["spec"]["selector"] = {"matchLabels": {"app": "agent"}}
        twin["spec"]["template"]["metadata"]["labels"] = {"app": "agent", "twin": "yes"}
        await self._world.actions.create(twin)

    async def _start_anew(self, index: int) -> None:
        process = self._world.processes.get(index)
        if process is not None and not process.dead:
            await process.stop()
            self._world.start(index)

    # --- The store of an upgraded server ---------------------------------------------------------

    def _spell_out(self) -> dict[str, tuple[Object, Object]]:
        """Store every template with its defaults, as a server does whose table has grown."""
        found = {}
        for record in self._stored(_ADVANCED):
            old: Object = msgspec.json.decode(record.body)["spec"]["template"]
            new = msgspec.to_builtins(default_template(msgspec.to_builtins(old)))
            self._store_template(_ADVANCED, record.name, old, new)
            found[record.name] = (old, new)
        return found

    def _stored(self, kind: str) -> list[Record]:
        return list(self._world.api.store.collection(kind).scan())

    def _store_template(self, kind: str, name: str, before: Object, after: Object) -> None:
        """Change nothing but the template, and no generation: nobody has written anything."""
        store = self._world.api.store
        collection = store.collection(kind)
        record = collection.get("default", name)
        obj: Any = msgspec.json.decode(record.body) if record is not None else None
        if obj is not None and before != after and obj["spec"]["template"] == before:
            obj["spec"]["template"] = after
            store.put(collection, obj)


def _lagging(chance: random.Random, at: float, nodes: int) -> Happening:
    args = {"behind": chance.randint(1, _FURTHEST), "who": "controller-0"}
    seconds = round(chance.uniform(5.0, 60.0), 2)
    return Happening("lagging-replica", at=at, seconds=seconds, args=args)


def _one_released(chance: random.Random, at: float, nodes: int) -> Happening:
    seconds = round(chance.uniform(5.0, 60.0), 2)
    return Happening("release", at=at, seconds=seconds, args={"index": 0})


def _drift(chance: random.Random, at: float, nodes: int) -> Happening:
    return Happening("clock-drift", at=at, args={"rate": chance.choice((0.5, 2.0))})


def _outage(chance: random.Random, at: float, nodes: int) -> Happening:
    # Half an hour of retries is much to play: few worlds get it.
    return Happening("outage", at=at, seconds=LONG if chance.random() < 0.2 else 200.0)


def _freeze(shortest: float, longest: float) -> Any:
    def draw(chance: random.Random, at: float, nodes: int) -> Happening:
        return Happening("freeze", at=at, seconds=round(chance.uniform(shortest, longest), 2))

    return draw


MORE: Final = (
    Fault("F3", "a start at a lagging replica", _lagging, "lagging-replica"),
    Fault("F4", "a pause longer than the lease", _freeze(16.0, 45.0), "freeze"),
    Fault("F5", "the clock runs at another speed", _drift, "clock-drift"),
    Fault("F6", "slow looks", _freeze(0.2, 5.0), "freeze"),
    Fault("F7", "another table of defaults, and back", timed("upgrade", 40.0), "upgrade"),
    Fault("F7", "one controller of the next release", _one_released, "release"),
    Fault("F20", "admission changes pods", timed("mutate-pods", 90.0), "mutate-pods"),
    Fault("F20", "admission takes too long", timed("slow-admission", 60.0), "slow-admission"),
    Fault("F23", "pages expire", timed("expiring-pages", 90.0), "expiring-pages"),
    Fault("F25", "an outage of up to half an hour", _outage, "outage"),
    Fault("F36", "an image does not come", timed("quirk", images="agent:v* fail=stuck"), "quirk"),
    Fault("F36", "a node is deaf for long", on_node("slow-node", 300.0, factor=200), "slow-node"),
    Fault("F38", "many nodes join at once", timed("mass-join", count=12), "mass-join"),
    Fault("F49", "another set with the same selector", timed("overlap"), "overlap"),
    Fault("F51", "the CRD is removed and installed anew", timed("remove-crd", 60.0), "remove-crd"),
)
EVERY: Final = (*FAULTS, *MORE, *HOLDUPS)


def upheavals(seed: int, nodes: int, *, until: float) -> list[Happening]:
    """What a seed lets happen of these; drawn apart, so that seeds keep their meaning."""
    chance = random.Random(f"{seed}/upheavals")
    if chance.random() > _OFTEN:
        return []
    found: list[Happening] = []
    for fault in chance.sample(MORE, chance.choice((1, 1, 2))):
        times = [round(chance.uniform(0.0, until), 2) for _ in range(chance.choice((1, 1, 3)))]
        found += [fault.draw(chance, at, nodes) for at in times]
    return found

"""What a world must still be able to do when all its trouble is over.

L2: an update takes no longer than its budget needs, and a node that joins meanwhile gets its pod
within a second. L5: from a broken update, and from one that is stuck behind a hook, the way back
leads to what was before, and a better version leads out as well. L8: a pod that is stuck costs its
own slot of the budget and no more, and a DaemonSet that is broken delays no other.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from everynode.api.daemonset import DaemonSet, Flavour, UpdateType
from everynode.sim.invariants.likeness import Likeness, differences, likeness
from everynode.sim.invariants.referee import Referee, asked_for, node_of, wants
from everynode.sim.invariants.views import owner_uid
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening

if TYPE_CHECKING:
    from everynode.sim.world import World

NAME: Final = "agent"
JOINING: Final = "late-encore"
BESIDE: Final = "beside"
_FIRST: Final = "agent:v30"
_NEXT: Final = "agent:v31"
_BAD: Final = "agent:never-ready"
_MENDED: Final = "agent:v32"
_SLACK: Final = 30.0  # seconds beyond what the budget needs
_SECOND: Final = 1.0  # until a node that joins has its pod created
_HARM: Final = 40.0  # seconds that a bad image gets to do harm
_LONG: Final = 10_000.0  # seconds for which nobody answers
_SPREAD: Final = 3.0  # until a new DaemonSet has been created on every node


class Encore:
    """An update, a node that joins, a bad update and the way back, with nothing in the way."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._image = ""

    async def play(self) -> None:
        """All of it, where there is a DaemonSet to do it with."""
        ds = self._find()
        if ds is None or ds.strategy.type is not UpdateType.ROLLING:
            return
        if not await self._release(ds):
            return
        if ds.pre_delete is not None:
            await self._wait_in_vain()
        await self._update()
        await self._get_stuck()
        await self._go_wrong_and_back()

    def _referee(self) -> Referee:
        ds = self._find()
        assert ds is not None
        return Referee(self._world.record.scene, ds, self._world.clock.now())

    def _find(self) -> DaemonSet | None:
        sets = self._world.record.scene.sets.values()
        return next((ds for ds in sets if ds.name == NAME), None)

    async def _release(self, ds: DaemonSet) -> bool:
        """Let the update go everywhere."""
        if ds.flavour is not Flavour.NATIVE:
            rolling = {"partition": 0, "paused": False, "selector": None}
            await self._do("apply", spec={"updateStrategy": {"rollingUpdate": rolling}})
        return await self._settles("the whole fleet updated", self._world.plan.patience)

    # --- L2 ------------------------------------------------------------------------------------

    async def _update(self) -> None:
        await self._set_image(_FIRST)
        await self._world.clock.sleep(2.0)
        await self._do("add-node", node=JOINING)
        if await self._settles("an update without faults", self._bound()):
            self._look_at_joining()

    def _bound(self, *, lost: int = 0) -> float:
        """How long an update may take: as many rounds as what is left of the budget makes of it."""
        scene, timing = self._world.record.scene, self._world.plan.timing
        ds, limit = self._find(), max(1, self._referee().limit - lost)
        assert ds is not None
        one = timing.stop + timing.pull + timing.start + timing.ready + ds.min_ready_seconds
        return ceil((len(scene.nodes) + 1) / limit) * (one + 1.0) * 1.1 + _SLACK

    def _look_at_joining(self) -> None:
        ds = self._find()
        assert ds is not None
        commits = self._world.record.commits
        nodes = (each for each in commits if each.kind == "nodes" and each.after is not None)
        joined = (each for each in nodes if each.after.name == JOINING)
        pods = (each.after for each in commits if each.kind == "pods" and each.before is None)
        mine = (pod for pod in pods if node_of(pod) == JOINING and owner_uid(pod) == ds.uid)
        wanted = wants(ds.template)
        wanted_at = next((each.time for each in joined if wanted.runs(each.after)), None)
        created_at = next((self._world.record.births[pod.uid].time for pod in mine), None)
        if wanted_at is not None and (created_at is None or created_at > wanted_at + _SECOND):
            late = "never" if created_at is None else f"{created_at - wanted_at:.1f} s later"
            self._world.breach("L2", f"a node joined during an update and got its pod {late}")

    # --- L5 and L8 -------------------------------------------------------------------------------

    async def _go_wrong_and_back(self) -> None:
        before, good = self._likeness(), self._image
        await self._go_wrong()
        await self._set_image(_MENDED)
        await self._settles("the way out of a bad update", self._bound(), promise="L5")
        await self._go_wrong()
        await self._world.actions.create(daemonset(BESIDE))
        await self._world.clock.sleep(_SPREAD)
        self._look_beside()
        await self._set_image(good)
        await self._is_back(before)

    async def _go_wrong(self) -> None:
        await self._set_image(_BAD)
        await self._world.clock.sleep(_HARM)

    async def _wait_in_vain(self) -> None:
        """Nobody answers the hook; whoever goes back and takes it away is where he was."""
        before, good = self._likeness(), self._image_now()
        await self._do("hold-hooks", seconds=_LONG)
        await self._go_wrong()
        waiting = [node for node in sorted(self._referee().wanted) if self._is_down(node)]
        most = self._referee().limit
        if len(waiting) > most:
            text = f"a hook that nobody answers costs {' '.join(waiting)}, {most} may wait"
            self._world.breach("L8", text)
        await self._set_image(good)
        await self._do("apply", spec={"lifecycle": None})
        await self._is_back(before)

    async def _is_back(self, before: Likeness) -> None:
        """Everything is as it was, in time."""
        if await self._settles("the way back", self._bound(), promise="L5"):
            for text in differences(before, self._likeness())[:3]:
                self._world.breach("L5", f"after the way back {text}")

    def _likeness(self) -> Likeness:
        ds = self._find()
        return likeness(self._world.record.scene, ds) if ds is not None else {}

    def _image_now(self) -> str:
        ds = self._find()
        assert ds is not None
        return next(image for image, _ in asked_for(ds.template).values())

    def _is_down(self, node: str) -> bool:
        return self._referee().is_down(node, ())

    async def _get_stuck(self) -> None:
        """One pod cannot go: where the budget has another slot, everybody else is updated."""
        referee = self._referee()
        if referee.limit < 2 or referee.surging or len(referee.wanted) < 3:
            return
        stuck = sorted(referee.wanted)[-1]
        await self._do("stick-pod", node=stuck)
        await self._set_image(_NEXT)
        await self._world.clock.sleep(self._bound(lost=1))
        late = [node for node in sorted(self._referee().wanted) if not self._is_updated(node)]
        if [node for node in late if node != stuck]:
            self._world.breach("L8", f"one stuck pod on {stuck} holds up {' '.join(late)}")
        await self._world.actions.heal()
        await self._settles("an update after a stuck pod", self._bound())

    def _is_updated(self, node: str) -> bool:
        referee = self._referee()
        return any(referee.at_target(pod) and referee.is_up(pod) for pod in referee.pods_on(node))

    def _look_beside(self) -> None:
        scene = self._world.record.scene
        beside = next((ds for ds in scene.sets.values() if ds.name == BESIDE), None)
        if beside is None:
            return
        referee = Referee(scene, beside, self._world.clock.now())
        lacking = [node for node in sorted(referee.wanted) if not referee.pods_on(node)]
        if lacking:
            who = " ".join(lacking)
            self._world.breach("L8", f"a broken DaemonSet keeps another from {who}")

    # --- Both ----------------------------------------------------------------------------------

    async def _set_image(self, image: str) -> None:
        self._image = image
        await self._do("set-image", image=image)

    async def _do(self, what: str, *, seconds: float = 0.0, **args: object) -> None:
        now, named = self._world.loop.time(), {"name": NAME, **args}
        happening = Happening(what, at=now, seconds=seconds, args=named)
        self._world.note(happening.describe())
        await self._world.actions.do(happening)

    async def _settles(self, what: str, seconds: float, promise: str = "L2") -> bool:
        left = await self._world.settled(seconds)
        if left:
            self._world.breach(promise, f"{what} took longer than {seconds:.0f} s: {left}")
        return not left

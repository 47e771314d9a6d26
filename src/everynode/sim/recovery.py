"""Recovery check: updates, rollbacks and new nodes still work after all faults are over.

L2: an update takes no longer than maxUnavailable requires, and a node that joins meanwhile gets its
pod within a second. L5: after a broken update, or one stuck behind a hook, a rollback restores the
previous state, and a better version completes too. L8: a stuck pod uses only its own slot of the
budget, and a broken DaemonSet delays no other. R9: a missing pod comes back while another client's
status is respected.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from everynode.api.daemonset import DaemonSet, Flavour, UpdateStrategyType
from everynode.sim.checks.normalised_state import NormalisedState, differences, normalised_state
from everynode.sim.checks.oracle import (
    PROGRESS_SECONDS,
    Oracle,
    node_fit,
    template_containers,
)
from everynode.sim.checks.possible_views import owner_uid
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action

if TYPE_CHECKING:
    from everynode.sim.world import World

SET_NAME: Final = "agent"
JOINING: Final = "late-encore"
BESIDE: Final = "beside"
_FIRST: Final = "agent:v30"
_NEXT: Final = "agent:v31"
_BAD: Final = "agent:never-ready"
_FIXED: Final = "agent:v32"
_SLACK_SECONDS: Final = 30.0  # seconds beyond what maxUnavailable requires
_CREATE_SECONDS: Final = 1.0  # seconds until a node that joins has its pod created
_BAD_IMAGE_SECONDS: Final = 40.0  # seconds for which a bad image is rolled out
_HOOK_SECONDS: Final = 10_000.0  # seconds for which hooks are not answered
_LEFT_TO_OTHERS: Final = 10.0  # seconds until a pod that another controller may create is ours
_CONFLICT_SECONDS: Final = 7200.0  # seconds within which the longest status conflict ends
_CREATE_ALL_SECONDS: Final = 3.0  # seconds until a new DaemonSet has a pod on every node


class RecoveryCheck:
    """Plays an update, a node that joins, a bad update and a rollback, without faults."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._image = ""

    async def play(self) -> None:
        """Run all checks if there is a DaemonSet with a RollingUpdate."""
        ds = self._find()
        if ds is None or ds.strategy.type is not UpdateStrategyType.ROLLING:
            return
        if not await self._release(ds):
            return
        if ds.pre_delete is not None:
            await self._check_unanswered_hook()
        await self._update()
        await self._check_stuck_pod()
        await self._check_rollback()
        await self._check_contested()

    def _oracle(self) -> Oracle:
        ds = self._find()
        assert ds is not None
        return Oracle(self._world.record.cluster, ds, self._world.clock.now())

    def _find(self) -> DaemonSet | None:
        sets = self._world.record.cluster.sets.values()
        return next((ds for ds in sets if ds.name == SET_NAME), None)

    async def _release(self, ds: DaemonSet) -> bool:
        """Release all nodes: no partition, pause or selector."""
        if ds.flavour is not Flavour.NATIVE:
            rolling = {"partition": 0, "paused": False, "selector": None}
            await self._do("apply", spec={"updateStrategy": {"rollingUpdate": rolling}})
        return await self._expect_settled("the whole fleet updated", self._world.plan.patience)

    # --- L2 ------------------------------------------------------------------------------------

    async def _update(self) -> None:
        await self._set_image(_FIRST)
        await self._world.clock.sleep(2.0)
        await self._do("add-node", node=JOINING)
        if await self._expect_settled("an update without faults", self._max_seconds()):
            self._check_joined_node()

    def _max_seconds(self, *, lost: int = 0) -> float:
        """Seconds that an update may take: rounds of maxUnavailable nodes, minus lost slots."""
        cluster, timing = self._world.record.cluster, self._world.plan.timing
        ds, limit = self._find(), max(1, self._oracle().limit - lost)
        assert ds is not None
        one = timing.stop + timing.pull + timing.start + timing.ready + ds.min_ready_seconds
        return ceil((len(cluster.nodes) + 1) / limit) * (one + 1.0) * 1.1 + _SLACK_SECONDS

    def _check_joined_node(self) -> None:
        """L2: a node that joins during an update gets its pod within a second."""
        ds = self._find()
        assert ds is not None
        fits_at, created_at = self._joined_at(ds), self._first_pod_at(ds)
        if fits_at is None:
            return  # the template does not fit the node
        if created_at is None or created_at > fits_at + _CREATE_SECONDS:
            late = "never" if created_at is None else f"{created_at - fits_at:.1f} s later"
            text = f"a node joined during an update and got its pod {late}"
            self._world.report_violation("L2", text)

    def _joined_at(self, ds: DaemonSet) -> float | None:
        """When the template first fitted the new node."""
        fit = node_fit(ds.template)
        for commit in self._world.record.commits:
            node = commit.after if commit.kind == "nodes" else None
            if node is not None and node.name == JOINING and fit.should_run(node):
                return commit.time
        return None

    def _first_pod_at(self, ds: DaemonSet) -> float | None:
        """When the DaemonSet's first pod on the new node was created."""
        for commit in self._world.record.commits:
            if commit.kind == "pods" and commit.before is None:
                pod = commit.after
                if pod.node == JOINING and owner_uid(pod) == ds.uid:
                    return self._world.record.created[pod.uid].time
        return None

    # --- L5 and L8 -------------------------------------------------------------------------------

    async def _check_rollback(self) -> None:
        before, good = self._state(), self._image
        await self._roll_out_bad_image()
        await self._check_stalled()
        await self._set_image(_FIXED)
        await self._expect_settled("the way out of a bad update", self._max_seconds(), promise="L5")
        await self._roll_out_bad_image()
        await self._world.runner.create(daemonset(BESIDE))
        await self._world.clock.sleep(_CREATE_ALL_SECONDS)
        self._check_other_daemonset()
        await self._set_image(good)
        await self._check_restored(before)

    async def _roll_out_bad_image(self) -> None:
        await self._set_image(_BAD)
        await self._world.clock.sleep(_BAD_IMAGE_SECONDS)

    async def _check_stalled(self) -> None:
        """Check that the conditions report a bad update when nothing has moved for long enough."""
        ds = self._find()
        if ds is None or ds.flavour is Flavour.NATIVE:
            return
        await self._world.clock.sleep(ds.min_ready_seconds + PROGRESS_SECONDS + _BAD_IMAGE_SECONDS)
        ds = self._find()
        if ds is not None and not ds.status.desired:
            return  # no node should have a pod: no update is bad
        conditions = {} if ds is None else {each.type: each.status for each in ds.status.conditions}
        if conditions.get("Stalled") != "True" or conditions.get("Ready") != "False":
            text = f"a bad update stands still: Stalled is {conditions.get('Stalled')}"
            self._world.report_violation("L5", text)

    async def _check_unanswered_hook(self) -> None:
        """Check that a rollback that removes an unanswered hook restores the state before."""
        before, good = self._state(), self._image_now()
        await self._do("hold-hooks", seconds=_HOOK_SECONDS)
        await self._roll_out_bad_image()
        waiting = [node for node in sorted(self._oracle().desired_nodes) if self._is_down(node)]
        most = self._oracle().limit
        if len(waiting) > most:
            text = f"an unanswered hook costs {' '.join(waiting)}, {most} may wait"
            self._world.report_violation("L8", text)
        await self._set_image(good)
        await self._do("apply", spec={"lifecycle": None})
        await self._check_restored(before)

    async def _check_restored(self, before: NormalisedState) -> None:
        """Check that the pods are as before within the time allowed."""
        if await self._expect_settled("the way back", self._max_seconds(), promise="L5"):
            for text in differences(before, self._state())[:3]:
                self._world.report_violation("L5", f"after the way back {text}")

    def _state(self) -> NormalisedState:
        ds = self._find()
        return normalised_state(self._world.record.cluster, ds) if ds is not None else {}

    def _image_now(self) -> str:
        ds = self._find()
        assert ds is not None
        return next(image for image, _ in template_containers(ds.template).values())

    def _is_down(self, node: str) -> bool:
        return self._oracle().is_unavailable(node, ())

    async def _check_stuck_pod(self) -> None:
        """Check that one pod that cannot be removed does not delay the other nodes' update."""
        oracle = self._oracle()
        if oracle.limit < 2 or oracle.surging or len(oracle.desired_nodes) < 3:
            return
        stuck = sorted(oracle.desired_nodes)[-1]
        await self._do("stick-pod", node=stuck)
        await self._set_image(_NEXT)
        await self._world.clock.sleep(self._max_seconds(lost=1))
        late = [node for node in sorted(self._oracle().desired_nodes) if not self._is_updated(node)]
        if [node for node in late if node != stuck]:
            self._world.report_violation(
                "L8", f"one stuck pod on {stuck} holds up {' '.join(late)}"
            )
        await self._world.runner.heal()
        await self._expect_settled("an update after a stuck pod", self._max_seconds())

    def _is_updated(self, node: str) -> bool:
        oracle = self._oracle()
        return any(
            oracle.at_target(pod) and oracle.is_available(pod) for pod in oracle.pods_on(node)
        )

    def _check_other_daemonset(self) -> None:
        cluster = self._world.record.cluster
        beside = next((ds for ds in cluster.sets.values() if ds.name == BESIDE), None)
        if beside is None:
            return
        oracle = Oracle(cluster, beside, self._world.clock.now())
        lacking = [node for node in sorted(oracle.desired_nodes) if not oracle.pods_on(node)]
        if lacking:
            who = " ".join(lacking)
            self._world.report_violation("L8", f"a broken DaemonSet keeps another from {who}")

    # --- R9 ------------------------------------------------------------------------------------

    async def _check_contested(self) -> None:
        """R9: a pod that dies right after another client wrote the status comes back."""
        desired = sorted(self._oracle().desired_nodes)
        if not desired:
            return
        await self._do("write-status", number=len(desired) + 70)
        await self._do("delete-pod", node=desired[0])
        await self._world.clock.sleep(
            self._world.plan.timing.stop + _LEFT_TO_OTHERS + _CREATE_ALL_SECONDS
        )
        oracle = self._oracle()
        if not [pod for pod in oracle.pods_on(desired[0]) if not pod.terminating]:
            text = f"{desired[0]} lost its pod while the status was contested, and got no other"
            self._world.report_violation("R9", text)
        await self._expect_settled("the end of a status conflict", _CONFLICT_SECONDS, promise="R9")

    # --- Both ----------------------------------------------------------------------------------

    async def _set_image(self, image: str) -> None:
        self._image = image
        await self._do("set-image", image=image)

    async def _do(self, what: str, *, seconds: float = 0.0, **args: object) -> None:
        now, named = self._world.loop.time(), {"name": SET_NAME, **args}
        action = Action(what, at=now, seconds=seconds, args=named)
        self._world.note(action.describe())
        await self._world.runner.run(action)

    async def _expect_settled(self, what: str, seconds: float, promise: str = "L2") -> bool:
        left = await self._world.wait_until_settled(seconds)
        if left:
            self._world.report_violation(
                promise, f"{what} took longer than {seconds:.0f} s: {left}"
            )
        return not left

"""What keeps pods from going: hooks that nobody answers, disruption budgets, stuck pullers."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from everynode.api import keys
from everynode.api.daemonset import Flavour
from everynode.api.objects import Pod
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import MERGE_PATCH
from everynode.kube.resources import ADVANCED, DAEMONSETS, PODS, Resource
from everynode.sim.faults import Fault
from everynode.sim.plan import Happening, Object
from everynode.sim.shelf import node_of

if TYPE_CHECKING:
    from everynode.sim.world import World

NAMESPACE: Final = "default"
STUCK: Final = "sim.everynode.io/stuck"
_BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
_AGAIN: Final = 5.0  # seconds until somebody who was refused asks once more
_LOOK: Final = 0.5  # seconds between two looks for new pullers
_BUDGETED: Final = 0.12  # of all worlds have a disruption budget
_AHEAD: Final = 0.06  # fetch images ahead, with pullers that are stuck
_UNANSWERED: Final = 0.5  # of those with hooks


class Holdups:
    """What people do about pods that are not to go, or cannot."""

    _world: World
    _client: Client
    _deaf_until = 0.0  # nobody answers hooks before

    # --- Hooks -----------------------------------------------------------------------------------

    async def _do_release_hooks(self, happening: Happening) -> None:
        """The program behind a preDelete hook lets every pod go."""
        label = happening.args.get("label", "hook")
        if self._world.loop.time() < self._deaf_until:
            return
        for pod in self._pods():
            if pod.metadata.labels.get(keys.LIFECYCLE_STATE):
                body = {"metadata": {"labels": {label: None}}}
                await self._try(self._patch(PODS, pod.name, body))

    async def _do_hold_hooks(self, happening: Happening) -> None:
        """The program behind the hooks answers nobody."""
        self._deaf_until = self._world.loop.time() + happening.seconds

    # --- Evictions -------------------------------------------------------------------------------

    async def _do_protect(self, happening: Happening) -> None:
        """A disruption budget for the pods of a DaemonSet."""
        name = happening.args.get("name", "agent")
        body = {
            "apiVersion": _BUDGETS.api_version,
            "kind": _BUDGETS.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "minAvailable": happening.args["least"],
                "selector": {"matchLabels": {"app": name}},
            },
        }
        await self._client.write(verbs.create(_BUDGETS, body, namespace=NAMESPACE), bytes)

    async def _do_evict_pod(self, happening: Happening) -> None:
        pod = self._pick_pod(happening)
        if pod is not None:
            await self._evict(pod)

    async def _do_drain_node(self, happening: Happening) -> None:
        """Somebody cordons a node and evicts its pods, again and again while they may not go."""
        node = self._node(happening)
        cordon = Happening("cordon-node", at=happening.at, args={"node": node})
        await self._world.actions.do(cordon)
        self._world.loop.create_task(self._drain(node, happening.seconds))

    async def _drain(self, node: str, seconds: float) -> None:
        there = [pod for pod in self._pods() if node_of(pod) == node and pod.metadata.controller]
        wanted = [pod.uid for pod in there]
        deadline = self._world.loop.time() + seconds
        while wanted and self._world.loop.time() < deadline and not self._world.sky.clear:
            found = [self._world.record.scene.pods.get(uid) for uid in wanted]
            left = [pod for pod in found if pod is not None and not pod.terminating]
            for pod in left:
                await self._try(self._evict(pod))
            wanted = [pod.uid for pod in left]
            await self._world.clock.sleep(_AGAIN)

    async def _evict(self, pod: Pod) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": NAMESPACE},
        }
        request = verbs.create(
            PODS, body, namespace=NAMESPACE, name=pod.name, subresource="eviction"
        )
        await self._client.write(request, bytes)

    # --- Pullers ---------------------------------------------------------------------------------

    async def _do_stick_pullers(self, happening: Happening) -> None:
        """Images are to be fetched ahead, and a finalizer keeps who fetches them from going."""
        name = happening.args.get("name", "agent")
        asked = {keys.PREDOWNLOAD_PARALLELISM: "1", keys.PREDOWNLOAD_TIMEOUT: "20"}
        await self._patch(self._resource(name), name, {"metadata": {"annotations": asked}})
        self._world.loop.create_task(self._stick_pullers(happening.seconds))

    async def _stick_pullers(self, seconds: float) -> None:
        deadline = self._world.loop.time() + seconds
        body = {"metadata": {"finalizers": [STUCK]}}
        while self._world.loop.time() < deadline and not self._world.sky.clear:
            for pod in self._pods():
                free = STUCK not in pod.metadata.finalizers and not pod.terminating
                if keys.PULLER in pod.metadata.labels and free:
                    await self._try(self._patch(PODS, pod.name, body))
            await self._world.clock.sleep(_LOOK)

    # --- Whom it concerns ------------------------------------------------------------------------

    def _pods(self) -> list[Pod]:
        return sorted(self._world.record.scene.pods.values(), key=lambda pod: pod.name)

    def _pick_pod(self, happening: Happening) -> Pod | None:
        node = self._node(happening)
        found = [pod for pod in self._pods() if node_of(pod) == node and pod.metadata.controller]
        return found[happening.args.get("which", 0) % len(found)] if found else None

    def _node(self, happening: Happening) -> str:
        """A node by name, or by its number among those that are there."""
        node = happening.args.get("node", 0)
        names = sorted(self._world.record.scene.nodes)
        if isinstance(node, str):
            return node
        return names[node % len(names)] if names else "nowhere"

    def _resource(self, name: str) -> Resource:
        for ds in self._world.record.scene.sets.values():
            if ds.name == name:
                return DAEMONSETS if ds.flavour is Flavour.NATIVE else ADVANCED
        return ADVANCED

    async def _patch(self, resource: Resource, name: str, body: Object) -> None:
        request = verbs.patch(resource, name, body, kind=MERGE_PATCH, namespace=NAMESPACE)
        await self._client.write(request, bytes)

    async def _try(self, work: Awaitable[None]) -> None:
        with suppress(KubeError):
            await work


# --- How they are drawn --------------------------------------------------------------------------


def _protect(chance: random.Random, at: float, nodes: int) -> Happening:
    least = chance.choice((1, nodes - 1, nodes - 1, nodes))
    return Happening("protect", at=at, args={"least": max(0, least)})


def _drained(chance: random.Random, at: float, nodes: int) -> Happening:
    seconds = round(chance.uniform(10.0, 60.0), 2)
    return Happening("drain-node", at=at, seconds=seconds, args={"node": chance.randrange(nodes)})


def _pullers(chance: random.Random, at: float, nodes: int) -> Happening:
    return Happening("stick-pullers", at=at, seconds=round(chance.uniform(20.0, 90.0), 2))


PROTECTED: Final = Fault("F29", "a disruption budget", _protect, "protect")
DRAINED: Final = Fault("F29", "a node is drained", _drained, "drain-node")
PULLERS: Final = Fault("F52", "pullers cannot go", _pullers, "stick-pullers")
HOLDUPS: Final = (PROTECTED, DRAINED, PULLERS)


def holdups(seed: int, nodes: int, *, hooked: bool, until: float) -> list[Happening]:
    """What a seed lets happen of these; drawn apart, so that seeds keep their meaning."""
    chance = random.Random(f"{seed}/holdups")
    found: list[Happening] = []
    if chance.random() < _BUDGETED:
        found.append(PROTECTED.draw(chance, round(chance.uniform(1.0, 20.0), 2), nodes))
        times = [round(chance.uniform(3.0, until), 2) for _ in range(chance.choice((1, 2, 3)))]
        found += [DRAINED.draw(chance, at, nodes) for at in times]
    if chance.random() < _AHEAD:
        found.append(PULLERS.draw(chance, round(chance.uniform(1.0, 30.0), 2), nodes))
    if hooked and chance.random() < _UNANSWERED:
        found += _unanswered(chance, until)
    return found


def _unanswered(chance: random.Random, until: float) -> list[Happening]:
    """From some time on nobody answers hooks; most then go back, or take the hook away."""
    at = round(chance.uniform(3.0, until - 30.0), 2)
    found = [Happening("hold-hooks", at=at, seconds=10.0 * until)]
    if chance.random() < 0.5:
        back = {"image": "agent:v1"}
        found.append(Happening("set-image", at=until + 1.0, args=back))
    if chance.random() < 0.7:
        spec = {"lifecycle": None}
        found.append(Happening("apply", at=until + 2.0, args={"spec": spec}))
    return found

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.forecast.rollout_tracker import RolloutTracker
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.requests import MERGE_PATCH, STRATEGIC_PATCH
from everynode.kube.resources import ADVANCED, NODES, PODS
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop, run
from everynode.sim.plans.manifests import daemonset


class Stage:
    """A server without kubelets: the test changes the pods."""

    def __init__(self, loop: SimLoop) -> None:
        self.clock = SimClock(loop, 1)
        api = Api(clock=self.clock)
        self.fleet = RolloutTracker(api.store, loop, self.clock)
        self._client = Client(LocalTransport(api), self.clock)
        self._uid = ""

    async def install(self, *nodes: str, min_ready: int = 0) -> None:
        made = daemonset(min_ready=min_ready)
        await self._write(verbs.create(ADVANCED, made, namespace="default"))
        assert self.fleet.set is not None
        self._uid = self.fleet.set.uid
        for node in nodes:
            await self._write(verbs.create(NODES, {"metadata": {"name": node}}))
            await self.start(f"old-{node}", node, "old")

    async def start(self, name: str, node: str, hash: str, *, ready: bool = True) -> None:
        owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "name": "agent"}
        owner |= {"uid": self._uid, "controller": True}  # type: ignore[dict-item]
        labels = {"controller-revision-hash": hash}
        metadata = {"name": name, "labels": labels, "ownerReferences": [owner]}
        spec = {"nodeName": node, "containers": [{"name": "a", "image": "b"}]}
        body = {"metadata": metadata, "spec": spec}
        await self._write(verbs.create(PODS, body, namespace="default"))
        if ready:
            await self.say(name, ready=True)

    async def say(self, name: str, *, ready: bool) -> None:
        now = f"2026-01-01T00:{int(self.clock.monotonic()) // 60:02d}:"
        now += f"{int(self.clock.monotonic()) % 60:02d}Z"
        word = "True" if ready else "False"
        condition = {"type": "Ready", "status": word, "lastTransitionTime": now}
        status = {"phase": "Running", "conditions": [condition]}
        await self._patch(name, {"status": status}, STRATEGIC_PATCH, "status")

    async def stop(self, name: str) -> None:
        await self._write(verbs.delete(PODS, name, namespace="default", grace_seconds=0))

    async def relabel(self, name: str, hash: str) -> None:
        labels = {"controller-revision-hash": hash}
        await self._patch(name, {"metadata": {"labels": labels}}, MERGE_PATCH, "")

    async def _patch(self, name: str, body: Any, kind: str, part: str) -> None:
        request = verbs.patch(PODS, name, body, kind=kind, namespace="default", subresource=part)
        await self._write(request)

    async def _write(self, request: Any) -> None:
        await self._client.write(request, bytes)


def play(story: Callable[[Stage], Awaitable[None]]) -> RolloutTracker:
    loop = SimLoop()
    stage = Stage(loop)
    run(story(stage), loop=loop)  # type: ignore[arg-type]
    return stage.fleet


def test_nodes_go_down_and_come_back_updated() -> None:
    async def story(stage: Stage) -> None:
        await stage.install("n1", "n2", "n3")
        stage.fleet.begin()
        for node in ("n1", "n2"):
            await stage.stop(f"old-{node}")
        await stage.clock.sleep(10)
        await stage.start("new-n1", "n1", "new")

    fleet = play(story)
    assert (fleet.most_down, fleet.up, fleet.updated) == (2, {"n1", "n3"}, {"n1"})
    assert [point[1:] for point in fleet.curve] == [(0, 2), (1, 1)]
    assert fleet.node_of("new-n1") == "n1"
    assert fleet.node_of("old-n1") == ""


def test_a_pod_counts_once_it_has_been_ready_for_long_enough() -> None:
    seen: list[tuple[bool, bool]] = []

    async def story(stage: Stage) -> None:
        await stage.install("n1", min_ready=30)
        await stage.clock.sleep(29)
        early = "n1" in stage.fleet.up
        await stage.clock.sleep(2)
        seen.append((early, "n1" in stage.fleet.up))

    play(story)
    assert seen == [(False, True)]


def test_two_pods_on_a_node_are_noticed() -> None:
    async def story(stage: Stage) -> None:
        await stage.install("n1", "n2")
        stage.fleet.begin()
        await stage.start("new-n1", "n1", "new", ready=False)

    fleet = play(story)
    assert (fleet.most_doubled, fleet.most_down, fleet.updated) == (1, 0, set())


def test_a_pod_that_takes_over_a_revision_is_updated() -> None:
    async def story(stage: Stage) -> None:
        await stage.install("n1")
        stage.fleet.begin()
        await stage.relabel("old-n1", "new")

    fleet = play(story)
    assert fleet.updated == {"n1"}
    assert fleet.is_old("old")
    assert not fleet.is_old("new")


def test_nodes_that_were_down_before_do_not_count() -> None:
    async def story(stage: Stage) -> None:
        await stage.install("n1", "n2")
        await stage.say("old-n2", ready=False)
        stage.fleet.begin()
        await stage.stop("old-n2")

    assert play(story).most_down == 0

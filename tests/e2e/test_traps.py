"""Traps that users of other controllers reported, one scenario each."""

from __future__ import annotations

from datetime import UTC, datetime

from everynode.api.objects import Pod
from everynode.kube import verbs
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import DAEMONSETS, NODES, PODS, REVISIONS
from tests.e2e.conftest import Play
from tests.e2e.test_history import HASH
from tests.e2e.test_promises import EVERYWHERE
from tests.support.stage import Stage, daemonset

NATIVE = "apps/v1"


async def test_a_kubelet_whose_clock_is_ahead_delays_no_more_than_that(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(minReadySeconds=1)
        await stage.create(manifest)
        await stage.until_running("agent:v1", 2)
        ahead = datetime.fromtimestamp(stage.clock.now() + 2, UTC)
        await _say_ready_since(stage, stage.pod_on("node-0001"), ahead)
        await stage.until_complete(manifest)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)


async def test_a_pod_stuck_terminating_on_a_silent_node_stops_no_other(play: Play) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(template=EVERYWHERE)
        await stage.start(manifest, 4)
        await stage.lose_node("node-0004")
        stuck = stage.pod_on("node-0004")
        await stage.delete_pod(stuck)
        await stage.until(lambda: stage.on("node-0004")[0].terminating, "it is terminating")
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 3)
        assert [pod.uid for pod in stage.on("node-0004")] == [stuck.uid]
        await stage.find_node("node-0004")
        await stage.until_running("agent:v2", 4)


async def test_a_pod_that_waits_for_a_node_that_vanished_goes(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(template={"spec": {"schedulerName": "missing"}})
        await stage.create(manifest)
        await stage.until(lambda: len(stage.all_pods()) == 2, "both wait for a scheduler")
        await stage.delete(NODES, "node-0002")
        await stage.until(lambda: not stage.on("node-0002"), "the pod of the gone node goes")
        await stage.until(lambda: stage.status(manifest).desired == 1, "one node is desired")


async def test_nodes_that_no_longer_match_use_up_no_budget(play: Play) -> None:
    async with play(nodes=4) as stage:
        for name in ("node-0001", "node-0002"):
            await stage.label_node(name, keep="yes")
        image = "never-ready:1"
        manifest = daemonset(image=image)
        await stage.create(manifest)
        await stage.until(lambda: len(stage.all_pods()) == 4, "four broken pods")
        keep = {"keep": "yes"}
        containers = [{"name": "agent", "image": "agent:v2"}]
        await stage.change_template(manifest, nodeSelector=keep, containers=containers)
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        assert len(stage.all_pods()) == 2


async def test_the_old_pod_goes_after_a_surge_with_min_ready_seconds(play: Play) -> None:
    async with play(nodes=2) as stage:
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        manifest = daemonset(rolling=rolling, minReadySeconds=1)
        await stage.start(manifest, 2)
        seen = stage.observe(2)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(
            lambda: {pod.spec.containers[0].image for pod in stage.all_pods()} == {"agent:v2"},
            "no old pod is left",
        )
        await stage.until_complete(manifest)
        assert seen.most_down == 0


async def test_a_surge_under_disk_pressure_is_no_storm(play: Play) -> None:
    async with play(nodes=1) as stage:
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        manifest = daemonset(rolling=rolling)
        await stage.start(manifest, 1)
        born: dict[str, None] = {}

        def note(_: Pod | None, after: Pod | None) -> None:
            if after is not None:
                born[after.uid] = None

        stage.pods.subscribe(note)
        began = stage.clock.now()
        await stage.annotate_node("node-0001", {"sim.everynode.io/pressure": "disk"})
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: _failures(stage) >= 2, "pods are evicted again and again")
        took = stage.clock.now() - began
        assert took >= 1.0  # one second of back-off after the first of them
        assert len(born) <= 5
        await stage.annotate_node("node-0001", {"sim.everynode.io/pressure": None})
        await stage.until_running("agent:v2", 1)


async def test_a_duplicate_revision_made_by_hand_restarts_nothing(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 2)
        before = {pod.uid for pod in stage.all_pods()}
        [revision] = stage.history()
        copy = await stage.get(REVISIONS, revision.metadata.name)
        labels = {**copy["metadata"]["labels"], HASH: "copied"}
        copy["metadata"] = {
            "name": "agent-copied",
            "labels": labels,
            "ownerReferences": copy["metadata"]["ownerReferences"],
        }
        await stage.make(REVISIONS, {**copy, "revision": 7})
        await stage.until(lambda: len(stage.history()) == 2, "there are two")
        await stage.patch(DAEMONSETS, "agent", {"spec": {"minReadySeconds": 1}})
        await stage.settled(manifest)
        assert {pod.uid for pod in stage.all_pods()} == before
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)


async def test_a_pod_without_the_label_of_its_revision_is_seen_again(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(rolling={"rollingUpdateType": "InPlaceIfPossible"})
        await stage.start(manifest, 1)
        await stage.set_image(manifest, "agent:v2")  # its name is still that of the first revision
        await stage.until_running("agent:v2", 1)
        await stage.until_complete(manifest)
        await stage.stop_controller()
        pod = stage.pod_on("node-0001")
        await stage.patch(PODS, pod.name, {"metadata": {"labels": {HASH: None}}})
        stage.start_controller()
        await stage.until(lambda: stage.on("node-0001") != [pod], "the controller is at it")
        await stage.until(
            lambda: [bool(p.hash) and not p.terminating for p in stage.all_pods()] == [True],
            "one pod of a known revision is left",
        )
        await stage.until_complete(manifest)


def _failures(stage: Stage) -> int:
    counts = [pod.metadata.annotations.failures for pod in stage.all_pods()]
    return max([int(count.partition("@")[0]) for count in counts if count], default=0)


async def _say_ready_since(stage: Stage, pod: Pod, moment: datetime) -> None:
    since = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    request = verbs.patch(
        PODS,
        pod.name,
        {"status": {"conditions": [condition]}},
        kind=STRATEGIC_PATCH,
        namespace=stage.namespace,
        subresource="status",
    )
    await stage.client.write(request, bytes)

"""Promises that the peers do not keep."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.controller.run import ControllerOptions
from everynode.decide.node.availability import is_ready
from everynode.kube import verbs
from everynode.kube.resources import PODS
from tests.e2e.conftest import Play
from tests.e2e.test_pods import finish, until_gone
from tests.support.stage import Stage, daemonset, kind_of
from tests.support.transports import Deep

NATIVE = "apps/v1"
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])
# As node agents have it: whatever is wrong with a node, they belong there.
EVERYWHERE = {"spec": {"tolerations": [{"operator": "Exists"}]}}


@BOTH
@pytest.mark.parametrize("image", ["non-existent:1", "crash-loop:1", "never-ready:1"])
async def test_a_bad_target_takes_at_most_max_unavailable_ready_pods(
    play: Play, version: str, image: str
) -> None:
    async with play(nodes=6) as stage:
        # Without minReadySeconds: a container that crashes again and again is Ready for moments.
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 2})
        await stage.start(manifest, 6)
        seen = stage.observe(6)
        await stage.set_image(manifest, image)
        await stage.until(lambda: len(_running(stage, image)) == 2, "two pods have it")
        await stage.until(lambda: stage.status(manifest).updated == 2, "the status says so")
        await stage.settled(manifest)
        assert seen.most_down == 2
        assert len(stage.running("agent:v1")) == 4
        await stage.set_image(manifest, "agent:v3")
        await stage.until_running("agent:v3", 6)
        assert seen.most_down == 2


@BOTH
async def test_two_updates_within_min_ready_seconds_take_one_node_at_a_time(
    play: Play, version: str
) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(api_version=version, minReadySeconds=1)
        await stage.create(manifest)
        await stage.until_running("agent:v1", 4)
        seen = stage.observe(4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: stage.running("agent:v2"), "the first node is ready")
        await stage.set_image(manifest, "agent:v3")
        await stage.until_running("agent:v3", 4)
        assert seen.most_down == 1


@pytest.mark.parametrize("held_by", [{"partition": 2}, {"paused": True}, {"selector": "none"}])
async def test_a_pod_lost_on_a_held_node_comes_back_as_it_was(
    play: Play, held_by: dict[str, Any]
) -> None:
    async with play(nodes=2) as stage:
        if "selector" in held_by:
            held_by = {"selector": {"matchLabels": {"no-such": "label"}}}
        manifest = daemonset(rolling=held_by)
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.settled(manifest)
        lost = stage.pod_on("node-0001")
        await stage.delete_pod(lost)
        await stage.until(
            lambda: [p.uid for p in stage.on("node-0001")] not in ([], [lost.uid]), "it is back"
        )
        await stage.until_running("agent:v1", 2)
        assert stage.pod_on("node-0001").hash == lost.hash


async def test_a_new_node_selector_in_the_template_empties_no_held_node(play: Play) -> None:
    async with play(nodes=3) as stage:
        await stage.label_node("node-0003", disk="ssd")
        manifest = daemonset(rolling={"paused": True})
        await stage.start(manifest, 3)
        await stage.change_template(manifest, nodeSelector={"disk": "ssd"})
        await stage.settled(manifest)
        assert len(stage.running("agent:v1")) == 3
        await stage.set_rolling(manifest, paused=False)
        await stage.until(lambda: len(stage.all_pods()) == 1, "the others are emptied")
        await stage.until_complete(manifest)


@BOTH
async def test_a_node_tainted_since_keeps_its_pod_through_an_update(
    play: Play, version: str
) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 3)
        await stage.taint_node("node-0002", {"key": "full", "effect": "NoSchedule"})
        kept = stage.pod_on("node-0002").uid
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        assert stage.images()["node-0002"] == "agent:v1"
        assert stage.pod_on("node-0002").uid == kept
        assert stage.status(manifest).misscheduled == 1
        await stage.taint_node("node-0002")
        await stage.until_running("agent:v2", 3)


@BOTH
async def test_a_toleration_that_the_template_withdraws_removes_pods_within_the_budget(
    play: Play, version: str
) -> None:
    async with play(nodes=4) as stage:
        for name in ("node-0001", "node-0002"):
            await stage.taint_node(name, {"key": "gpu", "effect": "NoSchedule"})
        manifest = daemonset(
            api_version=version,
            template={"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}},
        )
        await stage.start(manifest, 4)
        seen = stage.observe(4)
        await stage.change_template(manifest, tolerations=[])
        await stage.until(lambda: len(stage.all_pods()) == 2, "the tainted nodes are emptied")
        await stage.until_complete(manifest)
        assert sorted(stage.images()) == ["node-0003", "node-0004"]
        await stage.until(lambda: stage.status(manifest).misscheduled == 0, "none is misscheduled")
        assert seen.most_down <= 3  # the two that are empty for good, and one that is updated


async def test_a_node_tainted_since_is_updated_in_place(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling={"rollingUpdateType": "InPlaceIfPossible"})
        await stage.start(manifest, 2)
        await stage.taint_node("node-0002", {"key": "full", "effect": "NoSchedule"})
        kept = stage.pod_on("node-0002").uid
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        assert stage.pod_on("node-0002").uid == kept


@BOTH
async def test_a_silent_node_holds_nothing_up_and_loses_nothing(play: Play, version: str) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(api_version=version, template=EVERYWHERE)
        await stage.start(manifest, 4)
        await stage.lose_node("node-0004")
        await stage.until(
            lambda: not is_ready(stage.pod_on("node-0004")), "its pod is no longer ready"
        )
        kept = stage.pod_on("node-0004").uid
        seen = stage.observe(4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 3)
        await stage.until(lambda: "node-0004" in _message(stage, manifest), "it is named")
        assert stage.pod_on("node-0004").uid == kept
        assert not stage.pod_on("node-0004").terminating
        assert seen.most_down == 2  # the silent one, and one at a time
        await stage.find_node("node-0004")
        await stage.until_running("agent:v2", 4)


async def test_the_pod_of_a_silent_node_that_no_longer_wants_one_stays(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset()  # it does not tolerate the taints of an unreachable node
        await stage.start(manifest, 3)
        await stage.lose_node("node-0003")
        await stage.until(lambda: stage.status(manifest).desired == 2, "it is not counted")
        kept = stage.pod_on("node-0003").uid
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        assert stage.pod_on("node-0003").uid == kept


async def test_many_silent_nodes_are_an_outage_and_stop_the_update(play: Play) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(template=EVERYWHERE)
        await stage.start(manifest, 4)
        for name in ("node-0003", "node-0004"):
            await stage.lose_node(name)
        await stage.until(
            lambda: all(node.ready == "Unknown" for node in stage.all_nodes()[2:]), "both are lost"
        )
        await stage.settled(manifest)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: stage.observed(manifest), "the update is seen")
        await stage.settled(manifest)
        assert stage.running("agent:v2") == []
        assert {"node-0001", "node-0002"} <= set(stage.running("agent:v1"))


async def test_back_off_of_failed_pods_survives_a_restart(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset()
        await stage.start(manifest, 1)
        for failures in (1, 2):
            failed = stage.pod_on("node-0001")
            await finish(stage, failed, "Failed")
            await stage.stop_controller()
            stage.start_controller()
            await until_gone(stage, failed)
            await stage.until_running("agent:v1", 1)
            carried = stage.pod_on("node-0001").metadata.annotations.failures
            assert carried.startswith(f"{failures}@")


async def test_a_broken_set_holds_up_no_other(play: Play) -> None:
    async with play(nodes=3) as stage:
        broken = daemonset("broken", api_version=NATIVE, image="non-existent:1")
        refused = daemonset("refused", image="b:1")
        # The priority class is not looked up before a pod is created.
        refused["spec"]["template"]["spec"]["priorityClassName"] = "no-such-class"
        well = daemonset("well", image="well:1")
        await stage.create(broken)
        await stage.create(refused)
        await stage.start(well, 3)
        await stage.set_image(well, "well:2")
        await stage.until_running("well:2", 3)
        await stage.until(lambda: "Refused" in _message(stage, refused), "it is said why")
        await stage.until_event("FailedCreate")


async def test_a_daemonset_whose_reconcile_fails_holds_up_no_other(play: Play) -> None:
    async with play(nodes=2) as stage:
        await stage.stop_controller()
        options = ControllerOptions(native=True, namespace=stage.namespace)
        stage.start_controller(options, transport=Deep(stage.permitted))
        for levels in (600, 5000):  # more than we can work with, more than we can read
            odd = daemonset(f"odd-{levels}", image="odd:1")
            odd["spec"]["template"]["spec"]["unknown"] = f"NESTED {levels} TIMES"
            await stage.create(odd)
        well = daemonset("well", image="well:1")
        await stage.start(well, 2)
        await stage.set_image(well, "well:2")
        await stage.until_running("well:2", 2)
        event = await stage.until_event("InternalError")
        assert event["involvedObject"]["name"] == "odd-600"


async def test_a_status_that_another_controller_writes_is_left_to_it(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset()
        await stage.start(manifest, 2)
        await _write_status(stage, manifest, numberReady=77)
        assert stage.controller is not None
        await stage.until(
            lambda: stage.status(manifest).ready == 77, "the other writer's status is seen"
        )
        await stage.set_image(manifest, "agent:v2")
        await stage.until(
            lambda: _generation(stage, manifest) == 2, "the update has reached the controller"
        )
        await stage.until(lambda: not stage.controller._queue, "it has looked")  # type: ignore[union-attr]
        assert len(stage.running("agent:v1")) == 2
        assert stage.status(manifest).ready == 77
        await stage.until_event("Contested")


async def test_conditions_of_others_survive(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset()
        await stage.start(manifest, 2)
        ours = (await stage.get(kind_of(manifest), "agent"))["status"]["conditions"]
        theirs = {"type": "Audited", "status": "True", "reason": "ByHand", "message": ""}
        await _write_status(stage, manifest, conditions=[*ours, theirs])
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        audited = stage.condition(manifest, "Audited")
        assert audited is not None
        assert audited.reason == "ByHand"


async def test_pods_owned_through_the_old_version_are_recognised(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset()
        await stage.start(manifest, 2)
        for pod in stage.all_pods():
            raw = await stage.raw(pod)
            [owner] = raw["metadata"]["ownerReferences"]
            owner["apiVersion"] = "apps.kruise.io/v1alpha1"
            await stage.patch(PODS, pod.name, {"metadata": {"ownerReferences": [owner]}})
        before = {pod.uid for pod in stage.all_pods()}
        await stage.settled(manifest)
        assert {pod.uid for pod in stage.all_pods()} == before
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)


async def test_a_new_template_goes_round_a_broken_one_within_the_budget(play: Play) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(rolling={"maxUnavailable": 1})
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "never-ready:1"
        await stage.create(manifest)
        await stage.until(lambda: len(_running(stage, "never-ready:1")) == 4, "all are broken")
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 4)
        await stage.until_complete(manifest)


async def test_a_host_port_shared_by_both_pods_stops_a_surge(play: Play) -> None:
    async with play(nodes=2) as stage:
        ports = [{"containerPort": 80, "hostPort": 8080}]
        spec = {"containers": [{"name": "agent", "image": "agent:v1", "ports": ports}]}
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        manifest = daemonset(rolling=rolling, template={"spec": spec})
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(
            lambda: stage.condition(manifest, "SurgeCannotFit") is not None, "it is said"
        )
        await stage.settled(manifest)
        assert len(stage.all_pods()) == 2
        assert len(stage.running("agent:v1")) == 2


async def test_nothing_is_written_at_rest(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset()
        await stage.start(manifest, 3)
        await stage.settled(manifest)
        before = (await stage.get(kind_of(manifest), "agent"))["metadata"]["resourceVersion"]
        for _ in range(3):  # pods of other owners on the nodes
            await stage.annotate_node("node-0001", {"some": "note"})
            await stage.settled(manifest)
        after = (await stage.get(kind_of(manifest), "agent"))["metadata"]["resourceVersion"]
        assert after == before


def _running(stage: Stage, image: str) -> list[str]:
    """Pods that were given the image, whatever became of it."""
    return [pod.name for pod in stage.all_pods() if pod.spec.containers[0].image == image]


def _message(stage: Stage, manifest: dict[str, Any]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.message if condition is not None else ""


def _generation(stage: Stage, manifest: dict[str, Any]) -> int:
    assert stage.controller is not None
    [workload] = stage.controller.informers.states.values()
    return workload.ds.metadata.generation


async def _write_status(stage: Stage, manifest: dict[str, Any], **status: Any) -> None:
    request = verbs.patch(
        kind_of(manifest),
        manifest["metadata"]["name"],
        {"status": status},
        namespace=stage.namespace,
        subresource="status",
        manager="another",
    )
    await stage.client.write(request, bytes)

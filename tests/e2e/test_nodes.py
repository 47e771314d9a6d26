"""Which nodes get a pod: labels, affinity, names, taints, and nodes that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.controller.run import ControllerOptions
from everynode.decide.pods.build import OWN_SCHEDULER
from everynode.kube import verbs
from everynode.kube.requests import Request
from everynode.kube.resources import NODES, PODS
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset

NATIVE = "apps/v1"
OWNED_TAINTS = [  # the control plane itself puts these on nodes and takes them off
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
]


async def test_status_counts_what_the_columns_show(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 3)
        status = stage.status(manifest)
        assert (status.desired, status.current, status.ready) == (3, 3, 3)
        assert (status.updated, status.available, status.misscheduled) == (3, 3, 0)


async def test_node_label_changes_add_and_remove_pods(play: Play) -> None:
    async with play(nodes=3) as stage:
        await stage.label_node("node-0001", disk="ssd")
        selector = {"spec": {"nodeSelector": {"disk": "ssd"}}}
        manifest = daemonset(api_version=NATIVE, template=selector)
        await stage.start(manifest, 1)
        assert stage.running("agent:v1") == ["node-0001"]
        await stage.label_node("node-0002", disk="ssd")
        await stage.until_running("agent:v1", 2)
        await stage.label_node("node-0001", disk=None)
        await stage.until(lambda: not stage.on("node-0001"), "the pod of node-0001 is gone")
        assert stage.running("agent:v1") == ["node-0002"]


async def test_a_new_node_gets_a_pod_and_a_removed_one_loses_it(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 2)
        await stage.add_node("late-one")
        await stage.until_running("agent:v1", 3)
        pod = stage.pod_on("late-one")
        await stage.delete(NODES, "late-one")
        if stage.real:  # the real garbage collector of pods takes its time over this
            await stage.client.write(_at_once(stage.namespace, pod.name), bytes)
        await stage.until(lambda: not stage.on("late-one"), "the pod of the gone node is gone")
        await stage.until(lambda: stage.status(manifest).desired == 2, "two nodes are desired")


async def test_a_node_that_joins_again_gets_the_pod_of_the_template(play: Play) -> None:
    async with play(nodes=2) as stage:
        await stage.start(daemonset(api_version=NATIVE), 2)
        await stage.add_node("comes-back")
        await stage.until_running("agent:v1", 3)
        edited = stage.pod_on("comes-back")
        await stage.patch(PODS, edited.name, {"metadata": {"labels": {"edited": "by-hand"}}})
        await stage.delete(NODES, "comes-back")
        if stage.real:  # the real garbage collector of pods takes its time over this
            await stage.client.write(_at_once(stage.namespace, edited.name), bytes)
        await stage.until(lambda: not stage.on("comes-back"), "the pod of the gone node is gone")
        await stage.add_node("comes-back")
        await stage.until_running("agent:v1", 3)
        made = await stage.raw(stage.pod_on("comes-back"))
        assert made["metadata"]["uid"] != edited.uid
        assert "edited" not in made["metadata"]["labels"]


async def test_pods_get_the_tolerations_of_daemons_and_hold_on_to_their_nodes(play: Play) -> None:
    async with play(nodes=1) as stage:
        await stage.start(daemonset(api_version=NATIVE), 1)
        spec = (await stage.raw(stage.pod_on("node-0001")))["spec"]
        given = [(each["key"], each["effect"]) for each in spec["tolerations"]]
        assert given == OWNED_TAINTS
        assert all(each["operator"] == "Exists" for each in spec["tolerations"])
        assert not any("tolerationSeconds" in each for each in spec["tolerations"])


async def test_pods_on_the_host_network_tolerate_that_there_is_no_other(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=NATIVE, template={"spec": {"hostNetwork": True}})
        await stage.start(manifest, 1)
        spec = (await stage.raw(stage.pod_on("node-0001")))["spec"]
        given = [(each["key"], each["effect"]) for each in spec["tolerations"]]
        assert ("node.kubernetes.io/network-unavailable", "NoSchedule") in given


@pytest.mark.parametrize(("key", "effect"), OWNED_TAINTS[2:5])
async def test_a_node_under_pressure_gets_its_pod(play: Play, key: str, effect: str) -> None:
    async with play(nodes=1) as stage:
        pressure = key.removeprefix("node.kubernetes.io/").removesuffix("-pressure")
        await stage.annotate_node("node-0001", {"sim.everynode.io/pressure": pressure})
        await stage.until(lambda: stage.all_nodes()[0].spec.taints, "the node is tainted")
        await stage.create(daemonset(api_version=NATIVE))
        await stage.until(lambda: stage.on("node-0001"), "a pod comes")
        taint = stage.all_nodes()[0].spec.taints[0]
        assert (taint.key, taint.effect) == (key, effect)


async def test_a_cordoned_node_gets_its_pod(play: Play) -> None:
    async with play(nodes=1) as stage:
        await stage.patch(NODES, "node-0001", {"spec": {"unschedulable": True}})
        await stage.until(lambda: stage.all_nodes()[0].spec.taints, "the node is tainted")
        await stage.start(daemonset(api_version=NATIVE), 1)


async def test_a_node_that_is_not_ready_keeps_its_pod(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 2)
        pod = stage.pod_on("node-0001")
        await stage.annotate_node("node-0001", {"sim.everynode.io/not-ready": "true"})
        await stage.until(
            lambda: any(taint.effect == "NoExecute" for taint in stage.all_nodes()[0].spec.taints),
            "the node is tainted",
        )
        await stage.settled(manifest)
        assert stage.pod_on("node-0001").uid == pod.uid


async def test_a_tainted_node_gets_no_pod_unless_it_is_tolerated(play: Play) -> None:
    async with play(nodes=2) as stage:
        await stage.taint_node("node-0001", {"key": "role", "value": "db", "effect": "NoSchedule"})
        plain = daemonset("plain", api_version=NATIVE)
        tolerations = [{"key": "role", "operator": "Exists"}]
        brave = daemonset(
            "brave",
            api_version=NATIVE,
            image="b:1",
            template={"spec": {"tolerations": tolerations}},
        )
        await stage.create(brave)
        await stage.start(plain, 1)
        await stage.until_complete(brave)
        assert stage.status(brave).desired == 2
        assert stage.status(plain).desired == 1
        assert [pod.name[:5] for pod in stage.on("node-0001")] == ["brave"]


async def test_an_untolerated_noexecute_taint_removes_the_pod(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 2)
        await stage.taint_node("node-0001", {"key": "away", "effect": "NoExecute"})
        await stage.until(lambda: not stage.on("node-0001"), "the pod is gone")
        await stage.until(lambda: stage.status(manifest).desired == 1, "one node is desired")
        await stage.taint_node("node-0001")
        await stage.until_running("agent:v1", 2)


async def test_node_affinity_is_considered_and_replaced_on_the_pod(play: Play) -> None:
    async with play(nodes=3) as stage:
        await stage.label_node("node-0002", arch="arm")
        await stage.label_node("node-0003", arch="riscv")
        expression = {"key": "arch", "operator": "In", "values": ["arm"]}
        preferred = {"weight": 5, "preference": {"matchExpressions": [expression]}}
        affinity = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [expression]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
            }
        }
        manifest = daemonset(api_version=NATIVE, template={"spec": {"affinity": affinity}})
        await stage.start(manifest, 1)
        made = (await stage.raw(stage.pod_on("node-0002")))["spec"]["affinity"]["nodeAffinity"]
        required: dict[str, Any] = made["requiredDuringSchedulingIgnoredDuringExecution"]
        field = {"key": "metadata.name", "operator": "In", "values": ["node-0002"]}
        assert required == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        assert made["preferredDuringSchedulingIgnoredDuringExecution"] == [preferred]


async def test_a_template_with_a_node_name_runs_only_there(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=NATIVE, template={"spec": {"nodeName": "node-0002"}})
        await stage.start(manifest, 1)
        assert stage.running("agent:v1") == ["node-0002"]
        assert stage.status(manifest).desired == 1


async def test_another_scheduler_can_be_asked_for(play: Play) -> None:
    async with play(nodes=1) as stage:
        template = {"spec": {"schedulerName": "mine"}}
        await stage.create(daemonset(api_version=NATIVE, template=template))
        await stage.until(lambda: stage.on("node-0001"), "the pod waits for the other scheduler")
        raw = await stage.raw(stage.pod_on("node-0001"))
        assert raw["spec"]["schedulerName"] == "mine"
        assert "nodeName" not in raw["spec"]


async def test_a_narrowed_template_moves_pods_within_the_budget(play: Play) -> None:
    async with play(nodes=4) as stage:
        for name in ("node-0001", "node-0002", "node-0003"):
            await stage.label_node(name, keep="yes")
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 4)
        await stage.change_template(manifest, nodeSelector={"keep": "yes"})
        await stage.until(lambda: not stage.on("node-0004"), "the fourth node is emptied")
        await stage.until_complete(manifest)
        assert stage.running("agent:v1") == ["node-0001", "node-0002", "node-0003"]


@pytest.mark.parametrize("version", [NATIVE, "apps.kruise.io/v1beta1"])
async def test_a_node_selector_that_matches_nothing_says_how_many_pods_go(
    play: Play, version: str
) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 3)
        pods = stage.all_pods()
        for pod in pods:  # they stay until we have looked
            await stage.patch(PODS, pod.name, {"metadata": {"finalizers": ["example.io/stay"]}})
        await stage.change_template(manifest, nodeSelector={"tpye": "worker"})
        gone = "pods are being removed from 3 nodes that may not keep them"
        await stage.until(lambda: gone in _message(stage, manifest), "the condition says so")
        assert "(nodeSelector, affinity or taints)" in _message(stage, manifest)
        for pod in pods:
            await stage.patch(PODS, pod.name, {"metadata": {"finalizers": None}})
        await stage.until(lambda: not stage.all_pods(), "all pods go")
        done = "0 of 0 nodes are updated and available"
        await stage.until(lambda: _message(stage, manifest) == done, "nothing else is said")


def _message(stage: Stage, manifest: dict[str, Any]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.message if condition is not None else ""


def _at_once(namespace: str, name: str) -> Request:
    return verbs.delete(PODS, name, namespace=namespace, grace_seconds=0)


@pytest.mark.parametrize("version", [NATIVE, "apps.kruise.io/v1beta1"])
async def test_pods_are_placed_by_node_name_where_no_scheduler_is_to_do_it(
    play: Play, version: str
) -> None:
    async with play(nodes=2) as stage:
        await stage.stop_controller()
        stage.start_controller(
            ControllerOptions(
                native=True, namespace=stage.namespace, forgiving=False, by_scheduler=False
            )
        )
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 1})
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        assert stage.running("agent:v2") == ["node-0001", "node-0002"]
        for pod in await stage.raw_pods():
            # No scheduler has this name, so that none has bound the pod.
            assert pod["spec"]["schedulerName"] == OWN_SCHEDULER

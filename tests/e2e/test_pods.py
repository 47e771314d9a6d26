"""The pod of one node: deleted, failed, finished, duplicated, without room."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.api.keys import KRUISE_POD_READY
from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.kube import verbs
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import PODS, Resource
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset

NATIVE = "apps/v1"
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])
PRIORITIES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)


async def finish(stage: Stage, pod: Pod, phase: str) -> None:
    """End a pod for good, as a kubelet does that evicts it."""
    body = {"status": {"phase": phase, "reason": "Evicted"}}
    request = verbs.patch(
        PODS,
        pod.name,
        body,
        kind=STRATEGIC_PATCH,
        namespace=stage.namespace,
        subresource="status",
    )
    await stage.client.write(request, bytes)


@BOTH
async def test_a_deleted_pod_comes_back(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        await stage.start(daemonset(api_version=version), 2)
        pod = stage.pod_on("node-0001")
        await stage.delete_pod(pod)
        await stage.until(
            lambda: [p.uid for p in stage.on("node-0001")] not in ([], [pod.uid]), "it comes back"
        )
        await stage.until_running("agent:v1", 2)


@BOTH
async def test_a_failed_pod_is_replaced_with_back_off(play: Play, version: str) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 1)
        births = []
        for failures in (1, 2):
            pod = stage.pod_on("node-0001")
            await finish(stage, pod, "Failed")
            await until_gone(stage, pod)
            await stage.until_running("agent:v1", 1)
            replacement = stage.pod_on("node-0001")
            assert replacement.metadata.annotations.failures.startswith(f"{failures}@")
            births.append(seconds(replacement.metadata.creation_timestamp) or 0.0)
        assert births[1] - births[0] >= 1.0  # one second after the first, two after the second
        assert (await stage.until_event("FailedDaemonPod"))["type"] == "Warning"
        await stage.until_event("SuccessfulDelete")


@BOTH
async def test_a_succeeded_pod_is_replaced(play: Play, version: str) -> None:
    async with play(nodes=1) as stage:
        await stage.start(daemonset(api_version=version), 1)
        pod = stage.pod_on("node-0001")
        await finish(stage, pod, "Succeeded")
        await until_gone(stage, pod)
        await stage.until_running("agent:v1", 1)


async def test_a_second_pod_on_a_node_goes(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 1)
        kept = await stage.raw(stage.pod_on("node-0001"))
        twin = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "twin",
                "labels": kept["metadata"]["labels"],
                "ownerReferences": kept["metadata"]["ownerReferences"],
            },
            "spec": {
                "nodeName": "node-0001",
                "containers": [{"name": "agent", "image": "agent:v1"}],
            },
        }
        await stage.make(PODS, twin)
        await stage.until(lambda: "twin" in {p.name for p in stage.all_pods()}, "there are two")
        await stage.until(lambda: len(stage.all_pods()) == 1, "one is left")
        assert stage.pod_on("node-0001").name == kept["metadata"]["name"]


async def test_the_pod_makes_room_by_its_priority_where_a_node_is_full(play: Play) -> None:
    async with play(nodes=1) as stage:
        name = f"high-{stage.namespace}"
        await stage.make(
            PRIORITIES,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": 1000000,
            },
        )
        await stage.make(PODS, {**_pod("filler"), "spec": _hungry("7", image="filler:1")})
        await stage.until(
            lambda: [p.spec.node_name for p in stage.all_pods()] == ["node-0001"], "it is full"
        )
        spec = {**_hungry("4"), "priorityClassName": name}
        manifest = daemonset(api_version=NATIVE, template={"spec": spec})
        await stage.create(manifest)
        await stage.until_running("agent:v1", 1)
        assert "filler" not in {pod.name for pod in stage.all_pods()}


async def test_a_pod_without_room_waits_as_pending(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=NATIVE, template={"spec": _hungry("900")})
        await stage.create(manifest)
        await stage.until(lambda: stage.on("node-0001"), "there is a pod")
        await stage.until(lambda: stage.status(manifest).current == 1, "it is counted")
        await stage.settled(manifest)
        status = stage.status(manifest)
        assert (status.desired, status.ready, len(stage.all_pods())) == (1, 0, 1)
        assert stage.pod_on("node-0001").spec.node_name == ""


async def until_gone(stage: Stage, pod: Pod) -> None:
    await stage.until(
        lambda: pod.name not in {each.name for each in stage.all_pods()}, f"{pod.name} is gone"
    )


def _pod(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"of": name}}}


def _hungry(cpus: str, *, image: str = "agent:v1") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpus}}
    return {"containers": [{"name": "agent", "image": image, "resources": resources}]}


async def test_a_gate_that_only_the_template_names_is_opened(play: Play) -> None:
    async with play(nodes=1) as stage:
        gates = [{"conditionType": KRUISE_POD_READY}]
        gated = daemonset("gated", template={"spec": {"readinessGates": gates}})
        for manifest in (daemonset(), gated):
            await stage.create(manifest)
            await stage.until_complete(manifest)
        found = {
            pod["metadata"]["ownerReferences"][0]["name"]: pod["spec"].get("readinessGates")
            for pod in await stage.raw_pods()
        }
        assert found == {"agent": None, "gated": gates}

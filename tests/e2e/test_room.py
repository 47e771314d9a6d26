"""A node that has no room for the new pod keeps the old one; the others are updated."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.api.objects import Pod
from everynode.api.quantity import parse_quantity
from everynode.api.versions import decode_daemonset
from everynode.inspect.rooms import evaluate_with_rooms
from everynode.inspect.snapshot import SnapshotReader
from everynode.kube import verbs
from everynode.kube.resources import NODES, PODS, Resource
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.decode import Decoder
from tests.e2e.conftest import Play
from tests.support.stage import Object, Stage, daemonset, kind_of

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])


@BOTH
async def test_a_node_without_room_keeps_its_pod_until_there_is_room(
    play: Play, version: str
) -> None:
    async with play(nodes=3) as stage:
        manifest, full = await _start(stage, version, cpu="100m")
        kept = stage.pod_on(full).uid
        filler = await _fill(stage, full, but=120)
        await _set_cpu(stage, manifest, "150m")
        await stage.until(
            lambda: _progressing(stage, manifest) == "InsufficientResources", "it is said"
        )
        assert len(stage.running("agent:v2")) == 2
        assert stage.running("agent:v1") == [full]
        assert kept in [pod.uid for pod in stage.on(full)]
        condition = stage.condition(manifest, "Progressing")
        assert condition is not None
        assert f"1 node waits: 1 InsufficientResources ({full})" in condition.message
        assert await _explained(stage, manifest, full) == "Insufficient cpu: 150m needed, 120m free"
        await stage.delete(PODS, filler)
        await stage.until_running("agent:v2", 3)
        await stage.until_complete(manifest)


async def test_with_surge_a_node_needs_room_for_both_pods(play: Play) -> None:
    async with play(nodes=3) as stage:
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        manifest, full = await _start(stage, "apps/v1", cpu="100m", rolling=rolling)
        await _fill(stage, full, but=150)
        await _set_cpu(stage, manifest, "100m")  # 50m are free beside the old pod
        await stage.until(
            lambda: _progressing(stage, manifest) == "InsufficientResources", "it is said"
        )
        await stage.settled(manifest)
        assert len(stage.running("agent:v2")) == 2
        assert len(stage.on(full)) == 2  # the filler and the old pod


async def test_a_pod_that_would_preempt_others_is_made_room_for(play: Play) -> None:
    async with play(nodes=3) as stage:
        high = f"{stage.namespace}-agents"
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": high},
            "value": 1000,
        }
        await stage.make(PRIORITY_CLASSES, body)
        try:
            manifest, full = await _start(
                stage, "apps.kruise.io/v1beta1", cpu="100m", priorityClassName=high
            )
            filler = await _fill(stage, full, but=120)
            await _set_cpu(stage, manifest, "150m")
            await stage.until_running("agent:v2", 3)
            await stage.until_complete(manifest)
            there = [pod.name for pod in stage.on(full) if not pod.terminating]
            assert filler not in there
        finally:
            await stage.delete(PRIORITY_CLASSES, high)


async def _explained(stage: Stage, manifest: Object, node: str) -> str:
    """What a reader works out that a node lacks."""
    request = verbs.get(kind_of(manifest), manifest["metadata"]["name"], namespace=stage.namespace)
    ds = decode_daemonset(await stage.client.read(request, bytes))
    snapshot = await SnapshotReader(stage.client).read(ds)
    evaluation = await evaluate_with_rooms(stage.client, snapshot, stage.clock.now())
    [row] = [each for each in evaluation.fleet.rows if each.node == node]
    assert row.reason == "InsufficientResources"
    return row.message


async def _start(
    stage: Stage, version: str, *, cpu: str, rolling: Object | None = None, **spec: Any
) -> tuple[Object, str]:
    """Start a set whose pods request cpu; return it and the name of a node."""
    manifest = daemonset(api_version=version, rolling=rolling or {})
    template = manifest["spec"]["template"]["spec"]
    template["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    template.update(spec)
    await stage.start(manifest, 3)
    return manifest, stage.all_nodes()[1].name


async def _fill(stage: Stage, node: str, *, but: int) -> str:
    """Fill a node with another pod, but for this many thousandths of a cpu; return its name."""
    await _until_left(stage, node)
    status = (await stage.get(NODES, node))["status"]
    cpu = parse_quantity(status["allocatable"]["cpu"]).milli - but
    container = {"name": "a", "image": "filler:v1", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "filler"},
        "spec": {
            "nodeName": node,
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
        },
    }
    await stage.make(PODS, body)
    await stage.until(lambda: stage.running("filler:v1") == [node], "the filler runs")
    return "filler"


async def _until_left(stage: Stage, node: str) -> None:
    """Wait until the pods of other scenarios are gone, which had a node of the same name."""
    options = ListOptions(fields=f"spec.nodeName={node}")
    while True:
        pods = await stage.client.read_all(PODS, Decoder(Pod).one, options=options)
        if all(pod.metadata.namespace == stage.namespace for pod in pods):
            return


async def _set_cpu(stage: Stage, manifest: Object, cpu: str) -> None:
    live = (await stage.get(kind_of(manifest), manifest["metadata"]["name"]))["spec"]["template"]
    [container] = live["spec"]["containers"]
    container["image"] = "agent:v2"
    container["resources"] = {"requests": {"cpu": cpu}}
    await stage.change_template(manifest, containers=[container])


def _progressing(stage: Stage, manifest: Object) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.reason if condition is not None and condition.status == "False" else ""

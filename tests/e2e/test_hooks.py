"""PreDelete hooks: a pod is announced, and deleted when its hook lets it go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.api.keys import KRUISE_POD_READY, LIFECYCLE_STATE, LIFECYCLE_TIMESTAMP
from everynode.api.objects import Pod
from everynode.decide.node.availability import is_ready
from everynode.kube.resources import PODS
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset, kind_of

BLOCK = {"example.io/block-deleting": "true"}
FINALIZER = "example.io/unready-blocker"
VERSIONS = pytest.mark.parametrize("version", ["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"])


def hooked_by_label(**more: Any) -> dict[str, Any]:
    made = daemonset(lifecycle={"preDelete": {"labelsHandler": BLOCK}}, **more)
    made["spec"]["template"]["metadata"]["labels"].update(BLOCK)
    return made


def preparing(stage: Stage) -> list[Pod]:
    return [
        pod
        for pod in stage.all_pods()
        if pod.metadata.labels.get(LIFECYCLE_STATE) == "PreparingDelete"
    ]


async def let_go(stage: Stage, pod: Pod) -> None:
    await stage.patch(PODS, pod.name, {"metadata": {"labels": dict.fromkeys(BLOCK)}})


@VERSIONS
async def test_a_label_hook_holds_the_pod_until_the_label_is_gone(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        manifest = hooked_by_label(api_version=version)
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: preparing(stage), "a pod is announced")
        await stage.settled(manifest)
        [held] = preparing(stage)  # maxUnavailable is one: the other one is not even announced
        assert not held.terminating
        raw = await stage.raw(held)
        assert raw["metadata"]["annotations"][LIFECYCLE_TIMESTAMP]
        await let_go(stage, held)
        await stage.until_running("agent:v2", 1)
        await stage.until(lambda: preparing(stage), "the other pod is announced")
        await let_go(stage, preparing(stage)[0])
        await stage.until_running("agent:v2", 2)


async def test_a_finalizer_hook_takes_the_traffic_away_first(play: Play) -> None:
    async with play(nodes=1) as stage:
        hook = {"markPodNotReady": True, "finalizersHandler": [FINALIZER]}
        manifest = daemonset(lifecycle={"preDelete": hook})
        manifest["spec"]["template"]["metadata"]["finalizers"] = [FINALIZER]
        await stage.start(manifest, 1)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: preparing(stage), "the pod is announced")
        [held] = preparing(stage)
        assert not held.terminating
        assert not is_ready(held)
        condition = held.condition(KRUISE_POD_READY)
        assert condition is not None
        assert condition.status == "False"
        assert json.loads(condition.message) == [{"userAgent": "Lifecycle", "key": "preDeleteHook"}]
        await stage.patch(PODS, held.name, {"metadata": {"finalizers": []}})
        await stage.until_running("agent:v2", 1)
        last = stage.pod_on("node-0001")
        await stage.patch(PODS, last.name, {"metadata": {"finalizers": []}})


async def test_a_hook_holds_a_pod_whose_node_no_longer_wants_it(play: Play) -> None:
    async with play(nodes=2) as stage:
        await stage.label_node("node-0001", disk="ssd")
        manifest = hooked_by_label(template={"spec": {"nodeSelector": {"disk": "ssd"}}})
        await stage.start(manifest, 1)
        await stage.label_node("node-0001", disk=None)
        await stage.until(lambda: preparing(stage), "the pod is announced")
        await let_go(stage, preparing(stage)[0])
        await stage.until(lambda: not stage.all_pods(), "the pod is gone")


async def test_taking_the_hook_away_lets_all_pods_go(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = hooked_by_label()
        await stage.start(manifest, 1)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: preparing(stage), "the pod is announced")
        await stage.change(manifest, lifecycle=None)
        await stage.until_running("agent:v2", 1)


async def test_an_update_in_place_asks_no_hook(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = hooked_by_label(rolling={"rollingUpdateType": "InPlaceIfPossible"})
        await stage.start(manifest, 1)
        before = stage.pod_on("node-0001").uid
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 1)
        assert stage.pod_on("node-0001").uid == before
        assert not preparing(stage)


async def test_deleting_the_set_asks_no_hook(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = hooked_by_label()
        await stage.start(manifest, 2)
        await stage.delete(kind_of(manifest), "agent")
        await stage.until(lambda: not stage.all_pods(), "all pods are gone")

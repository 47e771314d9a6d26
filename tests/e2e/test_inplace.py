"""Updates in place: the pod stays, its containers change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.api.keys import INPLACE_STATE, INPLACE_UPDATE_READY, RESTARTED_AT
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset, kind_of

IN_PLACE = {"rollingUpdateType": "InPlaceIfPossible"}
VERSIONS = pytest.mark.parametrize("version", ["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"])


def container(cpu: str, memory: str = "64Mi", **more: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    made = {"name": "agent", "image": "agent:v1"}
    return {**made, "resources": {"requests": amounts, "limits": amounts}, **more}


def sized(cpu: str, **more: Any) -> dict[str, Any]:
    return daemonset(rolling=IN_PLACE, template={"spec": {"containers": [container(cpu)]}}, **more)


def uids(stage: Stage) -> list[str]:
    return sorted(pod.uid for pod in stage.all_pods())


@VERSIONS
async def test_an_image_is_updated_in_place(play: Play, version: str) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version, rolling=IN_PLACE)
        await stage.start(manifest, 3)
        before = uids(stage)
        seen = stage.observe(3)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 3)
        await stage.until_complete(manifest)
        assert uids(stage) == before
        assert seen.most_down == 1
        for pod in await stage.raw_pods():
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
            assert {"conditionType": INPLACE_UPDATE_READY} in pod["spec"]["readinessGates"]
            state = json.loads(pod["metadata"]["annotations"][INPLACE_STATE])
            assert state["revision"] == pod["metadata"]["labels"]["controller-revision-hash"]
        await stage.until_event("SuccessfulUpdatePodInPlace")


async def test_labels_and_annotations_are_updated_in_place(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling=IN_PLACE)
        await stage.start(manifest, 2)
        before = uids(stage)
        metadata = {"labels": {"tier": "gold"}, "annotations": {"note": "new"}}
        await stage.change_template(manifest, metadata=metadata)
        await stage.until(
            lambda: all(pod.metadata.labels.get("tier") == "gold" for pod in stage.all_pods()),
            "every pod has the label",
        )
        await stage.until_complete(manifest)
        assert uids(stage) == before
        for pod in await stage.raw_pods():
            assert pod["metadata"]["annotations"]["note"] == "new"
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_what_cannot_be_changed_in_place_is_recreated(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling=IN_PLACE)
        await stage.start(manifest, 2)
        before = uids(stage)
        changed = {"name": "agent", "image": "agent:v2", "env": [{"name": "A", "value": "b"}]}
        await stage.change_template(manifest, containers=[changed])
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        assert not set(before) & set(uids(stage))


async def test_a_restart_that_is_asked_for_recreates(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling=IN_PLACE)
        await stage.start(manifest, 2)
        before = uids(stage)
        seen = stage.observe(2)
        annotations = {RESTARTED_AT: "2026-11-18T10:00:00Z"}
        await stage.change_template(manifest, metadata={"annotations": annotations})
        await stage.until(lambda: not set(before) & set(uids(stage)), "every pod is another")
        await stage.until_complete(manifest)
        assert seen.most_down == 1
        for pod in await stage.raw_pods():
            assert pod["metadata"]["annotations"][RESTARTED_AT] == annotations[RESTARTED_AT]


async def test_pods_from_before_in_place_updates_are_recreated_once(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset()
        await stage.start(manifest, 1)
        first = uids(stage)
        await stage.set_rolling(manifest, **IN_PLACE)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 1)
        second = uids(stage)
        await stage.set_image(manifest, "agent:v3")
        await stage.until_running("agent:v3", 1)
        assert first != second == uids(stage)


async def test_in_place_respects_selector_and_partition(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(rolling={**IN_PLACE, "partition": 2, "maxUnavailable": 3})
        await stage.start(manifest, 3)
        before = uids(stage)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 1)
        await stage.settled(manifest)
        assert stage.running("agent:v2") == ["node-0003"]
        await stage.set_rolling(manifest, partition=0)
        await stage.until_running("agent:v2", 3)
        assert uids(stage) == before


async def test_resources_are_resized_in_place(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = sized("100m")
        await stage.start(manifest, 2)
        before = uids(stage)
        await stage.change_template(manifest, containers=[container("200m", "128Mi")])
        await stage.until(lambda: stage.status(manifest).updated == 2, "both are updated")
        await stage.until_complete(manifest)
        assert uids(stage) == before
        for pod in await stage.raw_pods():
            wanted = {"cpu": "200m", "memory": "128Mi"}
            assert pod["spec"]["containers"][0]["resources"]["requests"] == wanted
            assert pod["status"]["containerStatuses"][0]["resources"]["requests"] == wanted
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
            assert pod["status"]["qosClass"] == "Guaranteed"


async def test_resources_come_before_images_when_both_change(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = sized("100m")
        await stage.start(manifest, 1)
        before = uids(stage)
        changed = {**container("200m"), "image": "agent:v2"}
        await stage.change_template(manifest, containers=[changed])
        await stage.until_running("agent:v2", 1)
        await stage.until_complete(manifest)
        assert uids(stage) == before
        [pod] = await stage.raw_pods()
        assert pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "200m"


async def test_a_change_of_the_qos_class_recreates(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = sized("100m")
        await stage.start(manifest, 1)
        before = uids(stage)
        changed = container("100m")
        changed["resources"] = {"requests": {"cpu": "50m"}, "limits": {"cpu": "100m"}}
        body = {"spec": {"template": {"spec": {"containers": [changed]}}}}
        await stage.patch(kind_of(manifest), "agent", body)
        await stage.until(lambda: uids(stage) not in ([], before), "another pod is there")
        await stage.until_complete(manifest)
        assert (await stage.raw_pods())[0]["status"]["qosClass"] == "Burstable"


async def test_a_resize_that_no_node_can_give_leaves_the_pod_running(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = sized("100m")
        await stage.start(manifest, 1)
        before = uids(stage)
        await stage.change_template(manifest, containers=[container("90")])
        await stage.until(
            lambda: _reason(stage, manifest) == "InsufficientResources", "the reason is named"
        )
        await stage.settled(manifest)
        # A new pod would find no room either.
        assert uids(stage) == before
        assert stage.status(manifest).ready == 1
        await stage.change_template(manifest, containers=[container("100m")])
        await stage.until_complete(manifest)


async def test_going_back_in_the_middle_of_an_update_in_place(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(rolling=IN_PLACE)
        await stage.start(manifest, 3)
        before = uids(stage)
        seen = stage.observe(3)
        await stage.set_image(manifest, "agent:non-existent")
        await stage.until(
            lambda: any(p.spec.containers[0].image != "agent:v1" for p in stage.all_pods()),
            "the first pod has the bad image",
        )
        await stage.set_image(manifest, "agent:v1")
        await stage.until_running("agent:v1", 3)
        await stage.until_complete(manifest)
        assert uids(stage) == before
        assert seen.most_down == 1


def _reason(stage: Stage, manifest: dict[str, Any]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.reason if condition is not None else ""

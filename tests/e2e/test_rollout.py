"""Rolling updates, as the original documents describe them."""

from __future__ import annotations

import pytest

from everynode.api.times import seconds
from everynode.decide.actions import CreatePod
from tests.e2e.conftest import Play
from tests.support.stage import daemonset

NATIVE = "apps/v1"
VERSIONS = ["apps/v1", "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"]
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_node_gets_one_pod_and_an_update_replaces_them(
    play: Play, version: str
) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(api_version=version)
        await stage.create(manifest)
        await stage.until_running("agent:v1", 4)
        seen = stage.observe(4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 4)
        await stage.until_complete(manifest)
        assert seen.most_down == 1
        assert seen.most_together == 1
        assert seen.moved == ["node-0004", "node-0003", "node-0002", "node-0001"]


@BOTH
async def test_max_unavailable_as_a_number_bounds_the_nodes_that_are_down(
    play: Play, version: str
) -> None:
    async with play(nodes=6) as stage:
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 2})
        await stage.start(manifest, 6)
        seen = stage.observe(6)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 6)
        assert seen.most_down == 2


@BOTH
async def test_max_unavailable_as_a_percentage_is_rounded_up(play: Play, version: str) -> None:
    async with play(nodes=7) as stage:
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": "30%"})
        await stage.start(manifest, 7)
        seen = stage.observe(7)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 7)
        assert seen.most_down == 3


@BOTH
async def test_on_delete_updates_a_node_once_its_pod_is_deleted(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=version, updateStrategy={"type": "OnDelete"})
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.settled(manifest)
        assert stage.running("agent:v1") == ["node-0001", "node-0002"]
        await stage.delete_pod(stage.pod_on("node-0001"))
        await stage.until_running("agent:v2", 1)
        assert stage.images() == {"node-0001": "agent:v2", "node-0002": "agent:v1"}
        await stage.until(lambda: stage.status(manifest).updated == 1, "one is updated")


@BOTH
async def test_min_ready_seconds_pass_before_the_next_node(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=version, minReadySeconds=1)
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        born = {
            node: seconds(stage.pod_on(node).metadata.creation_timestamp) or 0.0
            for node in ("node-0001", "node-0002")
        }
        assert born["node-0001"] - born["node-0002"] >= 1.0
        await stage.until_complete(manifest)


async def test_a_pod_is_available_only_after_min_ready_seconds(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=NATIVE, minReadySeconds=2)
        await stage.create(manifest)
        await stage.until(lambda: stage.status(manifest).ready == 1, "it is ready")
        assert stage.status(manifest).available == 0
        await stage.until(lambda: stage.status(manifest).available == 1, "it is available")


@BOTH
async def test_max_surge_starts_the_new_pod_before_the_old_one_goes(
    play: Play, version: str
) -> None:
    async with play(nodes=3) as stage:
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        manifest = daemonset(api_version=version, rolling=rolling)
        await stage.start(manifest, 3)
        seen = stage.observe(3)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 3)
        await stage.until(lambda: len(stage.all_pods()) == 3, "the old pods are gone")
        assert seen.most_down == 0
        assert seen.most_together == 2
        assert seen.most_doubled == 1


@pytest.mark.parametrize("key", ["rollingUpdateType", "type"])
async def test_surging_in_both_spellings_keeps_every_node_served(play: Play, key: str) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(
            api_version="apps.kruise.io/v1alpha1", rolling={key: "Surging", "maxSurge": "50%"}
        )
        await stage.start(manifest, 4)
        seen = stage.observe(4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 4)
        await stage.until(lambda: len(stage.all_pods()) == 4, "the old pods are gone")
        assert seen.most_down == 0
        assert seen.most_doubled == 2


async def test_standard_recreates_even_where_an_image_alone_changes(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling={"rollingUpdateType": "Standard"})
        await stage.start(manifest, 2)
        before = [pod.uid for pod in stage.all_pods()]
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        assert not set(before) & {pod.uid for pod in stage.all_pods()}


async def test_restart_by_annotation_recreates_every_pod(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 2)
        before = {pod.uid for pod in stage.all_pods()}
        stamp = {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}
        await stage.change_template(manifest, metadata=stamp)
        await stage.until(
            lambda: not before & {pod.uid for pod in stage.all_pods()}, "all pods are new"
        )
        await stage.until_complete(manifest)


async def test_burst_replicas_bound_the_creates_at_a_time(play: Play) -> None:
    async with play(nodes=6) as stage:
        most = 0

        def count(*_: object) -> None:
            nonlocal most
            assert stage.controller is not None
            for workload in stage.controller.informers.states.values():
                writes = workload.writes.values()
                most = max(most, sum(isinstance(each.action, CreatePod) for each in writes))

        stage.pods.subscribe(count)
        await stage.start(daemonset(burstReplicas=2), 6)
        assert 0 < most <= 2

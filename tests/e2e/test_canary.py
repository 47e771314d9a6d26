"""Updating some nodes first: selector, partition, pause, progressive creation."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.kube.resources import ADVANCED_V1ALPHA1
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset

CANARY = {"matchLabels": {"nodeType": "canary"}}
V1ALPHA1 = "apps.kruise.io/v1alpha1"
VERSIONS = pytest.mark.parametrize("version", [V1ALPHA1, "apps.kruise.io/v1beta1"])


async def label_canaries(stage: Stage, *numbers: int) -> None:
    for number in numbers:
        await stage.label_node(f"node-{number:04}", nodeType="canary")


@VERSIONS
async def test_a_selector_updates_only_the_nodes_it_selects(play: Play, version: str) -> None:
    async with play(nodes=4) as stage:
        await label_canaries(stage, 1, 3)
        manifest = daemonset(api_version=version, rolling={"selector": CANARY})
        await stage.start(manifest, 4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.settled(manifest)
        assert stage.running("agent:v2") == ["node-0001", "node-0003"]
        assert stage.running("agent:v1") == ["node-0002", "node-0004"]
        await label_canaries(stage, 2)
        await stage.until_running("agent:v2", 3)
        await stage.set_rolling(manifest, selector=None)
        await stage.until_running("agent:v2", 4)


@VERSIONS
async def test_a_partition_holds_nodes_back_until_it_is_lowered(play: Play, version: str) -> None:
    async with play(nodes=5) as stage:
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 5, "partition": 3})
        await stage.create(manifest)
        await stage.until_running("agent:v1", 5)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.settled(manifest)
        assert stage.running("agent:v2") == ["node-0004", "node-0005"]
        await stage.set_rolling(manifest, partition=0)
        await stage.until_running("agent:v2", 5)


async def test_a_partition_in_percent_is_rounded_down(play: Play) -> None:
    async with play(nodes=5) as stage:
        manifest = daemonset(rolling={"maxUnavailable": 5, "partition": "50%"})
        await stage.start(manifest, 5)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 3)
        await stage.settled(manifest)
        assert stage.running("agent:v1") == ["node-0001", "node-0002"]


async def test_selector_partition_and_max_unavailable_hold_together(play: Play) -> None:
    async with play(nodes=6) as stage:
        await label_canaries(stage, 1, 2, 3, 4)
        rolling = {"selector": CANARY, "partition": 3, "maxUnavailable": 2}
        manifest = daemonset(api_version=V1ALPHA1, rolling=rolling)
        await stage.start(manifest, 6)
        seen = stage.observe(6)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 3)
        await stage.settled(manifest)
        assert stage.running("agent:v2") == ["node-0002", "node-0003", "node-0004"]
        assert seen.most_down == 2


@VERSIONS
async def test_paused_starts_no_update_and_serves_new_nodes_as_they_were(
    play: Play, version: str
) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version, rolling={"paused": True})
        await stage.start(manifest, 3)
        await stage.set_image(manifest, "agent:v2")
        await stage.settled(manifest)
        assert len(stage.running("agent:v1")) == 3
        await stage.add_node("late-one")
        await stage.until(lambda: "late-one" in stage.images(), "the new node is served")
        assert stage.images()["late-one"] == "agent:v1"
        await stage.until(lambda: _says(stage, manifest, "Paused"), "the condition Paused")
        await stage.set_rolling(manifest, paused=False)
        await stage.until_running("agent:v2", 4)
        await stage.until_complete(manifest)
        assert not _says(stage, manifest, "Paused")


async def test_pausing_in_the_middle_lets_nothing_more_begin(play: Play) -> None:
    async with play(nodes=6) as stage:
        manifest = daemonset()
        await stage.start(manifest, 6)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: len(stage.running("agent:v2")) >= 1, "the first one is updated")
        await stage.set_rolling(manifest, paused=True)
        await stage.settled(manifest)
        await stage.until(lambda: len(stage.images()) == 6, "what was begun is finished")
        updated = len(stage.running("agent:v2"))
        await stage.settled(manifest)
        assert len(stage.running("agent:v2")) == updated < 6


async def test_an_updated_node_stays_updated_while_the_update_is_paused(play: Play) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(rolling={"partition": 3})
        await stage.start(manifest, 4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 1)
        await stage.set_rolling(manifest, partition=4, paused=True)
        await stage.settled(manifest)
        lost = stage.pod_on("node-0004")
        await stage.delete_pod(lost)
        await stage.until(
            lambda: [p.uid for p in stage.on("node-0004")] not in ([], [lost.uid]), "it is back"
        )
        await stage.until_running("agent:v2", 1)
        assert stage.running("agent:v2") == ["node-0004"]


@pytest.mark.parametrize("partition", [3, 1], ids=["a few canaries", "most nodes"])
async def test_a_canary_that_is_taken_back_says_what_held_nodes_keep(
    play: Play, partition: int
) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(rolling={"maxUnavailable": 4, "partition": partition})
        await stage.start(manifest, 4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 4 - partition)
        assert "taken back" not in _message(stage, manifest)
        # All nodes are held that have the version which is taken back.
        await stage.set_rolling(manifest, partition=4)
        await stage.set_image(manifest, "agent:v1")
        await stage.until(
            lambda: "held nodes keep the version that was taken back" in _message(stage, manifest),
            "the condition warns",
        )
        assert len(stage.running("agent:v2")) == 4 - partition
        await stage.set_rolling(manifest, partition=0)
        await stage.until_running("agent:v1", 4)
        await stage.until(lambda: "taken back" not in _message(stage, manifest), "no more")


async def test_a_node_that_joins_a_canary_by_number_is_warned_about(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(rolling={"partition": 2})
        await stage.start(manifest, 3)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 1)
        await stage.until(lambda: _is_held(stage, manifest), "the canary is held")
        await stage.add_node("joined")
        await stage.until_running("agent:v2", 2)
        event = await stage.until_event("CanaryGrew")
        assert event["type"] == "Warning"
        assert "is for 2 nodes now, 1 before" in event["message"]
        assert "4 nodes, 3 before, and partition 2 is a number" in event["message"]


async def test_a_node_that_joins_a_canary_by_percentage_is_held(play: Play) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(rolling={"partition": "75%"})
        await stage.start(manifest, 3)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: _is_held(stage, manifest), "the canary is held")
        await stage.add_node("joined")
        await stage.until_running("agent:v1", 3)
        await stage.settled(manifest)
        assert stage.running("agent:v2") == ["node-0003"]
        assert await stage.events("CanaryGrew") == []


async def test_after_a_complete_update_a_pause_brings_nothing_old_back(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(revisionHistoryLimit=0)
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until(lambda: len(stage.history()) == 1, "the revision before is not kept")
        await stage.set_rolling(manifest, paused=True)
        await stage.add_node("late-one")
        await stage.delete_pod(stage.pod_on("node-0001"))
        await stage.until_running("agent:v2", 3)


async def test_the_progressive_annotation_limits_creation_by_the_partition(play: Play) -> None:
    async with play(nodes=5) as stage:
        manifest = daemonset(api_version=V1ALPHA1, rolling={"partition": 3})
        annotations = {"daemonset.kruise.io/progressive-create-pod": "true"}
        manifest["metadata"]["annotations"] = annotations
        await stage.create(manifest)
        await stage.until_running("agent:v1", 2)
        await stage.settled(manifest)
        assert len(stage.all_pods()) == 2
        await stage.patch(
            ADVANCED_V1ALPHA1,
            "agent",
            {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}},
        )
        await stage.until_running("agent:v1", 5)


async def test_the_scale_strategy_limits_creation_by_the_partition(play: Play) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(
            rolling={"partition": "50%"}, scaleStrategy={"partitionedScaling": True}
        )
        await stage.create(manifest)
        await stage.until_running("agent:v1", 2)
        await stage.settled(manifest)
        assert len(stage.all_pods()) == 2
        await stage.change(manifest, scaleStrategy={"partitionedScaling": False})
        await stage.until_running("agent:v1", 4)


async def test_without_it_a_partition_withholds_no_pod(play: Play) -> None:
    async with play(nodes=3) as stage:
        await stage.start(daemonset(rolling={"partition": 3}), 3)


def _says(stage: Stage, manifest: dict[str, Any], kind: str) -> bool:
    condition = stage.condition(manifest, kind)
    return condition is not None and condition.status == "True"


def _is_held(stage: Stage, manifest: dict[str, Any]) -> bool:
    condition = stage.condition(manifest, "Ready")
    return condition is not None and (condition.status, condition.reason) == ("True", "Held")


def _message(stage: Stage, manifest: dict[str, Any]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.message if condition is not None else ""

"""Conditions of the status: complete, progressing, stalled, and what nodes wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everynode.kube.resources import ADVANCED_V1ALPHA1
from tests.e2e.conftest import Play
from tests.support.stage import PATIENCE, Stage, daemonset

TURNS = ("Started", "Aborted", "Complete")
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])


@BOTH
async def test_conditions_say_what_a_stuck_rollout_waits_for(play: Play, version: str) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 3)
        for_tools = {"Ready": "True", "Reconciling": "False", "Stalled": "False"}
        assert _statuses(stage, manifest) == {
            "Progressing": "True",
            "Available": "True",
            "Complete": "True",
            "Paused": "False",
        } | ({} if version == "apps/v1" else for_tools)
        await stage.set_image(manifest, "agent:non-existent")
        await stage.until(lambda: "Pull" in _reason(stage, manifest), "the cause is named")
        progressing = stage.condition(manifest, "Progressing")
        assert progressing is not None
        assert "node-0003" in progressing.message
        assert _statuses(stage, manifest)["Complete"] == "False"
        await stage.set_image(manifest, "agent:v3")
        await stage.until_complete(manifest)
        assert _reason(stage, manifest) == "NewRevisionAvailable"


async def test_events_tell_each_turn_of_a_rollout(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version="apps/v1")
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:non-existent")
        await stage.until(lambda: "Pull" in _reason(stage, manifest), "the cause is named")
        await stage.set_image(manifest, "agent:v3")
        await stage.until_complete(manifest)
        async with asyncio.timeout(PATIENCE):  # events are written in the background
            told: set[str] = set()
            while len(told) < 6:
                found = [await stage.events(f"Rollout{each}") for each in TURNS]
                told = {event["message"] for events in found for event in events}
        first, bad, good = (
            each.metadata.labels["controller-revision-hash"] for each in stage.history()
        )
        expected = {
            f"Rolling out revision {first} to 2 nodes",
            f"Revision {first} is available on all 2 nodes",
            f"Rolling out revision {bad} to 2 nodes",
            f"Revision {bad} was replaced by {good} before it was complete",
            f"Rolling out revision {good} to 2 nodes",
            f"Revision {good} is available on all 2 nodes",
        }
        assert told == expected


async def test_a_held_rollout_says_so(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling={"partition": 1})
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 1)
        await stage.until(lambda: _reason(stage, manifest) == "Held", "it is held")
        said = _statuses(stage, manifest)
        assert (said["Ready"], said["Complete"]) == ("True", "False")


async def test_a_gate_that_waits_for_ready_does_not_pass_a_broken_canary(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling={"partition": 1})
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:non-existent")
        await stage.until(lambda: "Pull" in _reason(stage, manifest), "the cause is named")
        said = _statuses(stage, manifest)
        assert (said["Ready"], said["Complete"]) == ("False", "False")
        assert stage.status(manifest).updated == 1
        await stage.set_image(manifest, "agent:v3")
        await stage.until(lambda: _statuses(stage, manifest)["Ready"] == "True", "it works")


async def test_the_status_names_the_target_in_both_versions(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version="apps.kruise.io/v1alpha1")
        await stage.start(manifest, 1)
        [revision] = stage.history()
        target = revision.metadata.labels["controller-revision-hash"]
        assert stage.status(manifest).update_revision == target
        old = await stage.get(ADVANCED_V1ALPHA1, "agent")
        assert old["status"]["daemonSetHash"] == target


def _statuses(stage: Stage, manifest: dict[str, Any]) -> dict[str, str]:
    return {each.type: each.status for each in stage.status(manifest).conditions}


def _reason(stage: Stage, manifest: dict[str, Any]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.reason if condition is not None else ""

"""The controller is killed during a rollout: nothing is lost, no promise is broken."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from everynode.components.kubelet.behaviour import Behaviour
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset
from tests.support.transports import DyingTransport

STRATEGIES: dict[str, dict[str, Any]] = {
    "standard": {"maxUnavailable": 2},
    "in place": {"maxUnavailable": 2, "rollingUpdateType": "InPlaceIfPossible"},
    "surge": {"maxSurge": 2, "maxUnavailable": 0},
}
# Slow enough for a process of its own to be killed in the middle.
SLOWER = Behaviour(speed=5.0)
KILLS = 5


@pytest.mark.parametrize("rolling", STRATEGIES.values(), ids=STRATEGIES.keys())
async def test_a_controller_that_dies_every_few_writes_finishes_the_rollout(
    play: Play, rolling: dict[str, Any]
) -> None:
    async with play(nodes=6) as stage:
        await stage.stop_controller()
        manifest = daemonset(rolling=rolling)
        await stage.create(manifest)
        deaths = await _die_until_running(stage, "agent:v1", 6)
        seen = stage.observe(6)
        await stage.set_image(manifest, "agent:v2")
        deaths += await _die_until_running(stage, "agent:v2", 6)
        stage.start_controller()
        await stage.until_complete(manifest)
        await stage.until(lambda: len(stage.all_pods()) == 6, "one pod is left on each node")
        assert deaths >= 5
        assert seen.most_down <= rolling["maxUnavailable"]
        assert seen.most_together <= (2 if "maxSurge" in rolling else 1)
        assert len(stage.history()) == 2


async def _die_until_running(stage: Stage, image: str, nodes: int) -> int:
    """Run one controller after the other, each dying at its next few writes, heard or not."""
    for death in range(60):
        dying = DyingTransport(stage.transport, dies_at=2 + death % 3, heard=death % 2 == 0)
        stage.start_controller(transport=dying)

        def over(dying: DyingTransport = dying) -> bool:
            return dying.dead or len(stage.running(image)) == nodes

        await stage.until(over, f"the controller dies, or {nodes} nodes run {image}")
        dying.dead = True
        await stage.stop_controller()
        if len(stage.running(image)) == nodes:
            return death
    raise AssertionError(f"sixty controllers did not roll out {image}\n{stage.describe()}")


async def test_the_process_is_killed_five_times_and_the_rollout_completes(
    play: Play, tmp_path: Path
) -> None:
    chance = random.Random(5)
    async with play(nodes=8, behaviour=SLOWER) as stage:
        manifest = daemonset(rolling={"maxUnavailable": 2})
        await stage.start(manifest, 8)
        await stage.stop_controller()
        assert stage.serve is not None
        kubeconfig = await stage.serve(tmp_path)
        seen = stage.observe(8)
        await stage.set_image(manifest, "agent:v2")
        changes = 0

        def count(*_: object) -> None:
            nonlocal changes
            changes += 1

        stage.pods.subscribe(count)
        for _ in range(KILLS):
            # Each pod changes about eight times, and there are eight of them.
            until = changes + chance.randint(1, 10)
            process = await _start(stage, kubeconfig)
            try:
                await stage.until(lambda until=until: changes >= until, "the rollout goes on")  # type: ignore[misc]
            finally:
                process.send_signal(signal.SIGKILL)
                await process.wait()
        process = await _start(stage, kubeconfig)
        try:
            await stage.until_running("agent:v2", 8)
            await stage.until_complete(manifest)
        finally:
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        assert seen.most_down <= 2
        assert seen.most_together == 1


async def _start(stage: Stage, kubeconfig: str) -> asyncio.subprocess.Process:
    """Start the program as people do."""
    arguments = ["--kubeconfig", kubeconfig, "--namespace", stage.namespace, "--native"]
    nowhere = ["--no-leader-elect", "--health-address", "0", "--metrics-address", "0"]
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "everynode", "run", *arguments, *nowhere, "--log-level", "error"
    )

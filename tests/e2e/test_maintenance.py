"""An update goes on around nodes in maintenance, at the size of a real fleet."""

from __future__ import annotations

import pytest

from everynode.kube import verbs
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import NODES
from tests.e2e.conftest import Play
from tests.support.stage import Object, Stage, daemonset

FLEET, ASIDE = 288, 20
OTHERS = FLEET - ASIDE
BUDGET = 15  # 5% of 288
LONG = 300.0  # seconds for 18 rounds of 15 nodes each, on a machine that is busy with other tests
pytestmark = pytest.mark.timeout(600)


async def maintain(stage: Stage, names: list[str], status: str) -> None:
    """Begin or end the maintenance of nodes."""
    body = {"status": {"conditions": [{"type": "MaintenanceInProgress", "status": status}]}}
    for name in names:
        request = verbs.patch(NODES, name, body, kind=STRATEGIC_PATCH, subresource="status")
        await stage.client.write(request, bytes)


def pods_on(stage: Stage, names: list[str]) -> set[str]:
    return {pod.uid for pod in stage.all_pods() if pod.node in names}


def counts(stage: Stage, manifest: Object) -> tuple[int, int, int]:
    status = stage.status(manifest)
    return status.desired, status.updated, status.available


async def test_288_nodes_with_20_in_maintenance_finish_on_the_others(play: Play) -> None:
    async with play(nodes=FLEET) as stage:
        manifest = daemonset(rolling={"maxUnavailable": "5%"})
        await stage.start(manifest, FLEET)
        aside = [node.name for node in stage.all_nodes()][::14][:ASIDE]
        assert len(aside) == ASIDE
        await maintain(stage, aside, "True")
        before, seen = pods_on(stage, aside), stage.observe(FLEET)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(
            lambda: len(stage.running("agent:v2")) == OTHERS,
            f"{OTHERS} nodes run agent:v2, ready",
            patience=LONG,
        )
        await stage.until(lambda: counts(stage, manifest) == (FLEET, OTHERS, FLEET), "it is told")
        assert seen.most_down <= BUDGET
        assert pods_on(stage, aside) == before
        complete = stage.condition(manifest, "Complete")
        assert complete is not None
        assert (complete.status, complete.reason) == ("False", "Maintenance")
        await maintain(stage, aside, "False")
        await stage.until_complete(manifest)
        assert len(stage.running("agent:v2")) == FLEET

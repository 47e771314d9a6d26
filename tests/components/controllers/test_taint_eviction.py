"""Taint eviction: how long pods stay on nodes with a NoExecute taint."""

from __future__ import annotations

import pytest

from everynode.api.objects import Taint
from everynode.components.controllers.taint_eviction import tolerated_seconds
from everynode.components.objects import TimedToleration
from everynode.components.timers import NEVER
from everynode.kube.resources import NODES, PODS
from tests.support.components_cluster import condition, pod_body, running, virtual

LOST = Taint("lost", effect="NoExecute")
BROKEN = Taint("broken", effect="NoExecute")


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], 0.0),
        ([TimedToleration("lost", "Exists")], 0.0),
        ([TimedToleration(operator="Exists")], NEVER),
        ([TimedToleration(operator="Exists", toleration_seconds=30)], 30.0),
        ([TimedToleration(operator="Exists", toleration_seconds=-5)], 0.0),
        (
            [
                TimedToleration("lost", "Exists", toleration_seconds=60),
                TimedToleration("broken", "Exists", toleration_seconds=20),
            ],
            20.0,
        ),
        (
            [
                TimedToleration("lost", "Exists"),
                TimedToleration("broken", "Exists", toleration_seconds=20),
            ],
            20.0,
        ),
    ],
)
def test_the_shortest_toleration_of_all_taints_decides(
    tolerations: list[TimedToleration], expected: float
) -> None:
    assert tolerated_seconds((LOST, BROKEN), tolerations) == expected


TAINT = {"spec": {"taints": [{"key": "lost", "effect": "NoExecute"}]}}


@virtual
async def test_pods_go_at_once_later_or_never_as_they_tolerate() -> None:
    async with running() as world:
        for name, tolerations in (
            ("never", [{"key": "lost", "operator": "Exists"}]),
            ("later", [{"key": "lost", "operator": "Exists", "tolerationSeconds": 60}]),
            ("now", []),
        ):
            for toleration in tolerations:
                toleration["effect"] = "NoExecute"
            await world.create(PODS, pod_body(name, node="node-0001", tolerations=tolerations))
            await world.ready(name)
        await world.patch(NODES, "node-0001", TAINT)
        await world.pass_time(0.5)
        leaving = await world.pod("now")
        assert condition(leaving, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
        await world.pass_time(2)
        assert await world.pod_names() == ["later", "never"]
        await world.pass_time(57)
        assert await world.pod_names() == ["later", "never"]
        await world.pass_time(3)
        assert await world.pod_names() == ["never"]
        assert "TaintManagerEviction" in await world.reasons("now")


@virtual
async def test_a_taint_removed_in_time_evicts_no_pod() -> None:
    async with running() as world:
        toleration = {"key": "lost", "operator": "Exists", "tolerationSeconds": 60}
        toleration["effect"] = "NoExecute"
        await world.create(PODS, pod_body("one", node="node-0001", tolerations=[toleration]))
        await world.ready("one")
        await world.patch(NODES, "node-0001", TAINT)
        await world.pass_time(30)
        await world.patch(NODES, "node-0001", {"spec": {"taints": None}})
        await world.pass_time(120)
        assert await world.pod_names() == ["one"]


@virtual
async def test_a_pod_without_tolerations_is_evicted_from_a_silent_node_after_five_minutes() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(40 + 295)
        assert "deletionTimestamp" not in (await world.pod("one"))["metadata"]
        await world.pass_time(10)
        # Its kubelet cannot confirm it, so it stays until another client does.
        assert "deletionTimestamp" in (await world.pod("one"))["metadata"]

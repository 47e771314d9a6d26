"""A real node that shuts down gracefully; kubelets up to 1.37.1 have no condition that says so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from everynode.api.objects import Pod
from everynode.decide.node.availability import is_ready
from everynode.kube.resources import NODES
from everynode.localkube.control_plane import ControlPlane
from everynode.localkube.node import RealNode
from tests.node.conftest import IMAGES, define, play_on
from tests.node.logind import logind
from tests.node.test_scenarios import NODE, V1, container
from tests.support.stage import Object, Stage, daemonset

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("node"),
]
KINDS: Final = {"native": "apps/v1", "advanced": "apps.kruise.io/v1beta1"}
# Pods that end at once are otherwise created again after 1, 2, 4 and 8 seconds.
LONG_ENOUGH: Final = 30.0


def agent(name: str) -> Object:
    """A DaemonSet that is wanted on a node which is not ready, as most agents are."""
    spec = {"containers": [container()], "tolerations": [{"operator": "Exists"}]}
    made = daemonset(name, api_version=KINDS[name], image=V1)
    made["spec"]["template"]["spec"] = {**spec, "terminationGracePeriodSeconds": 1}
    return made


async def shuts_down(stage: Stage) -> bool:
    conditions = (await stage.get(NODES, NODE))["status"]["conditions"]
    [ready] = [each for each in conditions if each["type"] == "Ready"]
    return ready["status"] == "False" and "node is shutting down" in ready["message"]


async def test_at_most_two_pods_come_while_a_node_shuts_down(
    possible: None, tmp_path: Path
) -> None:
    created: Counter[str] = Counter()

    def count(before: Pod | None, after: Pod | None) -> None:
        if before is None and after is not None:
            created[after.metadata.labels["app"]] += 1

    with logind(tmp_path) as login:
        async with ControlPlane() as plane:
            await define(plane)
            async with (
                RealNode(plane, images=IMAGES, system_bus=login.socket),
                play_on(plane) as stage,
            ):
                for name in KINDS:
                    await stage.start(agent(name), 1)
                stage.pods.subscribe(count)
                login.announce(shutdown=True)
                await stage.until(lambda: not any(map(is_ready, stage.all_pods())), "none runs")
                assert await shuts_down(stage)
                with pytest.raises(AssertionError, match="never seen: a third pod"):
                    await stage.until(
                        lambda: max(created.values(), default=0) > 2,
                        "a third pod",
                        patience=LONG_ENOUGH,
                    )
                login.announce(shutdown=False)
                await stage.until_running(V1, 1)
                for name in KINDS:
                    await stage.until_complete(agent(name))

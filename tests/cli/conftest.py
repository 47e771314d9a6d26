"""One cluster with a rollout in every state, for all tests that only read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from everynode.cli.access.cluster import Cluster, open_cluster
from everynode.cli.access.daemonset_names import find_daemonset
from everynode.cli.access.options import ClusterOptions
from everynode.inspect.evaluate import evaluate
from everynode.inspect.live import LiveSnapshot
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED, DAEMONSETS, NODES
from tests.cli.test_up import ask
from tests.support.commands import Up, started
from tests.support.stage import daemonset

Object = dict[str, Any]
# What is expected of each set, by the name one types.
EXPECTED = {
    "ads/done": "complete",
    "ads/held": "held",
    "ads/stuck": "waiting",
    "ads/net": "complete",
    "ds/net": "complete",
}


@pytest.fixture(scope="session")
def rollouts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Six nodes in three zones; node-0001 is tainted. Nothing changes any more."""
    with started(tmp_path_factory.mktemp("rollouts"), "--nodes", "6", "--speed", "50") as up:
        taint = {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
        ask(up, verbs.patch(NODES, "node-0001", taint))
        for manifest in (daemonset("done"), daemonset("net"), _native("net"), _held(), _stuck()):
            _create(up, manifest)
        for name in EXPECTED:
            _wait(up, name, "complete")
        _set_image(up, "held", "a:2")
        _set_image(up, "stuck", "a:never-ready")
        for name, state in EXPECTED.items():
            _wait(up, name, state)
        yield up


def _native(name: str) -> Object:
    return daemonset(name, api_version="apps/v1")


def _held() -> Object:
    return daemonset("held", rolling={"partition": 3})


def _stuck() -> Object:
    return daemonset("stuck", rolling={"maxUnavailable": "20%"})


def _create(up: Up, manifest: Object) -> None:
    native = manifest["apiVersion"] == "apps/v1"
    manifest["metadata"]["annotations"] = {"kubernetes.io/change-cause": "first"}
    ask(up, verbs.create(DAEMONSETS if native else ADVANCED, manifest, namespace="default"))


def _set_image(up: Up, name: str, image: str) -> None:
    body = {
        "metadata": {"annotations": {"kubernetes.io/change-cause": f"image {image}"}},
        "spec": {"template": {"spec": {"containers": [{"name": "agent", "image": image}]}}},
    }
    ask(up, verbs.patch(ADVANCED, name, body, namespace="default"))


def _wait(up: Up, name: str, state: str) -> None:
    """Wait until a rollout stands like this."""

    async def look() -> None:
        async with open_cluster(ClusterOptions(str(up.kubeconfig))) as cluster:
            found = await find_daemonset(cluster, name)
            live = LiveSnapshot(cluster.client.transport, cluster.clock, found.ds)
            watching = asyncio.create_task(live.run())
            async with asyncio.timeout(120):
                while not (live.begun and _state(live, cluster) == state):
                    live.changed.clear()
                    await live.changed.wait()
            watching.cancel()
            await asyncio.wait([watching])

    asyncio.run(look())


def _state(live: LiveSnapshot, cluster: Cluster) -> str:
    snapshot = live.current()
    assert snapshot is not None
    return evaluate(snapshot, cluster.clock.now()).fleet.state.value

"""Migrating a DaemonSet between kube-controller-manager and Everynode, on a real control plane."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from everynode.api.daemonset import Flavour
from everynode.api.objects import Pod
from everynode.cli.access.cluster import open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.cli.migration.plan import OTHER, owned_pods
from everynode.cli.migration.run import Migration
from everynode.controller.run import ControllerOptions
from everynode.inspect.evaluate import is_complete
from everynode.kube.resources import ADVANCED, DAEMONSETS
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.e2e.conftest import play_real
from tests.support.kubernetes import running
from tests.support.stage import Stage, daemonset

NODES = 5
FINALIZER = "example.com/backup"
RESOURCES = {Flavour.NATIVE: DAEMONSETS, Flavour.ADVANCED: ADVANCED}
pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """With the native controller at work."""
    with running(ControlPlaneOptions(controllers="*")) as started:
        yield started


async def test_no_pod_is_replaced_or_doubled_in_either_direction(plane: ControlPlane) -> None:
    async with play_real(plane, nodes=NODES) as stage:
        await stage.stop_controller()
        stage.start_controller(ControllerOptions(namespace=stage.namespace, forgiving=False))
        ever = remember_pods(stage)
        await stage.create(daemonset(api_version="apps/v1"))
        flavour = Flavour.NATIVE
        pods = await settled(stage, flavour)
        for _ in range(4):
            await migrate(plane, stage, flavour)
            flavour = OTHER[flavour]
            assert await settled(stage, flavour) == pods
        assert ever == pods  # also none that came and went


async def test_a_finalizer_is_waited_for(
    plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    async with play_real(plane, nodes=2) as stage:
        await stage.stop_controller()
        stage.start_controller(ControllerOptions(namespace=stage.namespace, forgiving=False))
        manifest = daemonset()
        manifest["metadata"]["finalizers"] = [FINALIZER]
        ever = remember_pods(stage)
        await stage.create(manifest)
        pods = await settled(stage, Flavour.ADVANCED)
        migrating = asyncio.create_task(migrate(plane, stage, Flavour.ADVANCED))
        await stage.until(lambda: not any(map(owner, stage.all_pods())), "the pods have no owner")
        held = await stage.get(ADVANCED, "agent")
        assert FINALIZER in held["metadata"]["finalizers"]  # beside `orphan`, for a moment
        assert not stage.natives.all()
        await stage.patch(ADVANCED, "agent", {"metadata": {"finalizers": None}})
        await migrating
        assert await settled(stage, Flavour.NATIVE) == pods == ever
        native = await stage.get(DAEMONSETS, "agent")
        assert "finalizers" not in native["metadata"]
    assert "ds/agent has adopted the same 2 pods" in capsys.readouterr().out


async def migrate(plane: ControlPlane, stage: Stage, flavour: Flavour) -> None:
    options = ClusterOptions(str(plane.kubeconfig), namespace=stage.namespace)
    async with open_cluster(options) as cluster:
        await Migration(cluster, "agent", flavour).run()


def owner(pod: Pod) -> bool:
    return any(each.controller for each in pod.metadata.owner_references)


def remember_pods(stage: Stage) -> set[str]:
    """Return the uids of all pods that ever belonged to a node, from now on."""
    ever: set[str] = set()

    def changed(before: Pod | None, after: Pod | None) -> None:
        ever.update(pod.uid for pod in (before, after) if pod is not None and pod.node)

    stage.pods.subscribe(changed)
    return ever


async def settled(stage: Stage, flavour: Flavour) -> set[str]:
    """Wait until the DaemonSet is complete; return the uids of its pods."""

    def complete() -> bool:
        cache = stage.natives if flavour is Flavour.NATIVE else stage.sets
        ds = cache.get(f"{stage.namespace}/agent")
        return ds is not None and is_complete(ds) and ds.status.desired == len(stage.all_nodes())

    await stage.until(complete, "the DaemonSet is complete")
    live = await stage.get(RESOURCES[flavour], "agent")
    found = await stage.raw_pods()
    return owned_pods([pod["metadata"] for pod in found], live["metadata"]["uid"])

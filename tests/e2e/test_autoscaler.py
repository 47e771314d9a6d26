"""A node that cluster-autoscaler or Karpenter is about to delete; kube-controller-manager too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from everynode.kube import verbs
from everynode.kube.resources import PODS
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.e2e.conftest import Play, play_real
from tests.support.kubernetes import running
from tests.support.stage import Stage, daemonset, kind_of

NATIVE, ADVANCED = "apps/v1", "apps.kruise.io/v1beta1"
TAINTS = ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"]
NODE = "node-0001"


@pytest.fixture(scope="module")
def with_native_controller() -> Iterator[ControlPlane]:
    """A control plane whose own DaemonSet controller is at work."""
    with running(ControlPlaneOptions(controllers="*")) as plane:
        yield plane


@pytest.mark.parametrize("version", [NATIVE, ADVANCED])
@pytest.mark.parametrize("taint", TAINTS)
async def test_an_evicted_pod_does_not_come_back_before_the_taint_goes(
    play: Play, taint: str, version: str
) -> None:
    async with play(nodes=2) as stage:
        await delete_a_node(stage, taint, daemonset(api_version=version))


@pytest.mark.kubernetes
@pytest.mark.timeout(300)
@pytest.mark.parametrize("taint", TAINTS)
async def test_it_is_the_same_with_kube_controller_manager(
    with_native_controller: ControlPlane, taint: str
) -> None:
    async with play_real(with_native_controller, nodes=2) as stage:
        await stage.stop_controller()  # ours
        await delete_a_node(stage, taint, daemonset(api_version=NATIVE), recount=recount)


async def recount(stage: Stage, manifest: dict[str, Any]) -> None:
    """Have kube-controller-manager count until it knows of the taint.

    At a node that changes it (1.37) looks for pods to add or remove only, so that this taint does
    not make it count. A change of the set does, even before the node's change has reached it.
    """
    for number in range(90):
        annotations = {"metadata": {"annotations": {"count": str(number)}}}
        await stage.patch(kind_of(manifest), manifest["metadata"]["name"], annotations)
        with suppress(AssertionError):
            await stage.until(lambda: counts(stage, manifest) == (1, 1), "counted", patience=1.0)
            return


async def no_matter(stage: Stage, manifest: dict[str, Any]) -> None:
    """Everynode counts by itself."""


async def delete_a_node(
    stage: Stage,
    taint: str,
    manifest: dict[str, Any],
    *,
    recount: Callable[[Stage, dict[str, Any]], Awaitable[None]] = no_matter,
) -> None:
    """Taint a node, evict its pods, and change one's mind; beside a set that tolerates it all."""
    everywhere = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    brave = daemonset(
        "brave", api_version=manifest["apiVersion"], image="brave:1", template=everywhere
    )
    await stage.create(brave)
    await stage.create(manifest)
    await stage.until_running("agent:v1", 2)
    await stage.until_running("brave:1", 2)
    first = {pod.metadata.labels["app"]: pod for pod in stage.on(NODE)}

    await stage.taint_node(NODE, {"key": taint, "effect": "NoSchedule"})
    await recount(stage, manifest)
    await stage.until(lambda: counts(stage, manifest) == (1, 1), "the pod stays where it is")
    assert {pod.uid for pod in stage.on(NODE)} == {pod.uid for pod in first.values()}

    for pod in first.values():
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
        evict = verbs.create(
            PODS, body, namespace=stage.namespace, name=pod.name, subresource="eviction"
        )
        await stage.client.write(evict, bytes)
    # Written by a controller that knows that the pod is gone.
    await stage.until(lambda: counts(stage, manifest) == (1, 0), "no pod is misplaced")
    evicted = {pod.uid for pod in first.values()}
    await stage.until(
        lambda: stage.on(NODE) and not evicted & {pod.uid for pod in stage.on(NODE)},
        "the pod that tolerates the taint is replaced",
    )
    [again] = stage.on(NODE)
    assert again.metadata.labels["app"] == "brave"

    await stage.taint_node(NODE)
    await stage.until_running("agent:v1", 2)
    assert stage.pods.get(f"{stage.namespace}/{again.name}") is not None


def counts(stage: Stage, manifest: dict[str, Any]) -> tuple[int, int]:
    """Return how many nodes should have a pod, and how many should not but have one."""
    status = stage.status(manifest)
    return status.desired, status.misscheduled

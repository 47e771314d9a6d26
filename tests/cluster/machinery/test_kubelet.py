"""What a kubelet does with pods, seen through the API."""

from __future__ import annotations

from tests.cluster.machinery.world import condition, pod_body, running, virtual

from everynode.kube.resources import PODS


@virtual
async def test_a_pod_is_started_and_becomes_ready() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0002"))
        pod = await world.ready("one")
        status = pod["status"]
        assert pod["spec"]["nodeName"] == "node-0002"
        assert status["phase"] == "Running"
        assert status["podIP"].startswith("10.64.1.")
        assert status["hostIP"] == "172.16.0.1"
        [container] = status["containerStatuses"]
        assert container["ready"] is True
        assert container["image"] == "agent:v1"
        assert container["imageID"].startswith("agent@sha256:")
        assert container["containerID"].startswith("containerd://")
        assert container["restartCount"] == 0
        kinds = [each["type"] for each in status["conditions"]]
        assert sorted(kinds) == [
            "ContainersReady",
            "Initialized",
            "PodReadyToStartContainers",
            "PodScheduled",
            "Ready",
        ]
        assert all(condition(pod, kind)["status"] == "True" for kind in kinds)


@virtual
async def test_starting_a_pod_costs_a_binding_and_two_status_writes() -> None:
    async with running() as world:
        world.ledger.writes.clear()
        await world.create(PODS, pod_body("one", node="node-0002"))
        await world.ready("one")
        assert world.ledger.paths() == ["POST binding", "PATCH status", "PATCH status"]


@virtual
async def test_a_deleted_pod_is_stopped_and_then_removed() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        world.ledger.writes.clear()
        await world.delete(PODS, "one")
        took = await world.gone("one")
        assert 0.9 <= took <= 1.2
        assert world.ledger.paths() == ["PATCH status", "DELETE one"]

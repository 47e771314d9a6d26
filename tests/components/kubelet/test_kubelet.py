"""What a kubelet does with pods, seen through the API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions
from everynode.kube.requests import JSON_PATCH
from everynode.kube.resources import PODS
from tests.support.components_cluster import World, condition, pod_body, running, virtual

Object = dict[str, Any]
NODE = "node-0001"


async def start(world: World, name: str = "one", **spec: Any) -> Object:
    await world.create(PODS, pod_body(name, **{"node": NODE, **spec}))
    return await world.ready(name)


def container(pod: Object) -> Object:
    [found] = pod["status"]["containerStatuses"]
    return dict(found)


@virtual
async def test_a_pod_is_started_and_becomes_ready() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0002"))
        pod = await world.ready("one")
        status = pod["status"]
        assert pod["spec"]["nodeName"] == "node-0002"
        assert status["phase"] == "Running"
        assert status["podIP"].startswith("10.64.1.")
        assert status["hostIP"] == "172.16.0.2"
        found = container(pod)
        assert found["ready"] is True
        assert found["image"] == "agent:v1"
        assert found["imageID"].startswith("agent@sha256:")
        assert found["containerID"].startswith("containerd://")
        assert found["restartCount"] == 0
        kinds = [each["type"] for each in status["conditions"]]
        assert sorted(kinds) == [
            "ContainersReady",
            "Initialized",
            "PodReadyToStartContainers",
            "PodScheduled",
            "Ready",
        ]
        assert all(condition(pod, kind)["status"] == "True" for kind in kinds)
        assert await world.reasons("one") == [
            "Scheduled",
            "Pulling",
            "Pulled",
            "Created",
            "Started",
        ]


@virtual
async def test_starting_a_pod_costs_a_binding_and_two_status_writes() -> None:
    async with running() as world:
        world.ledger.writes.clear()
        await start(world)
        assert world.ledger.paths() == ["POST binding", "PATCH status", "PATCH status"]


@virtual
async def test_a_watcher_sees_pending_then_a_node_then_creating_then_running() -> None:
    async with running() as world:
        rows: list[str] = []
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(world.rows(rows))
            await start(world)
            await world.delete(PODS, "one")
            await world.gone("one")
            watching.cancel()
        assert rows == [
            "0/1 Pending <none> <none>",
            "0/1 Pending <none> node-0001",
            "0/1 ContainerCreating <none> node-0001",
            "1/1 Running 10.64.0.2 node-0001",
            "1/1 Terminating 10.64.0.2 node-0001",
            "0/1 Terminating 10.64.0.2 node-0001",
        ]


@virtual
async def test_an_image_is_pulled_once_per_node() -> None:
    async with running() as world:
        await start(world, "one")
        begun = world.clock.monotonic()
        await start(world, "two")
        assert world.clock.monotonic() - begun < 1.2
        begun = world.clock.monotonic()
        await start(world, "three", node="node-0002")
        assert world.clock.monotonic() - begun >= 2.0


@virtual
async def test_pods_have_addresses_of_their_own_unless_they_use_the_hosts_network() -> None:
    async with running() as world:
        one, two = await start(world, "one"), await start(world, "two")
        assert one["status"]["podIP"] != two["status"]["podIP"]
        host = await start(world, "host", hostNetwork=True)
        assert host["status"]["podIP"] == host["status"]["hostIP"]


@virtual
async def test_a_deleted_pod_is_stopped_and_then_removed() -> None:
    async with running() as world:
        await start(world)
        world.ledger.writes.clear()
        await world.delete(PODS, "one")
        took = await world.gone("one")
        assert 0.9 <= took <= 1.2
        assert world.ledger.paths() == ["PATCH status", "DELETE one"]


@virtual
async def test_a_hook_delays_the_end_but_never_beyond_the_grace_period() -> None:
    async with running() as world:
        hook = {"preStop": {"sleep": {"seconds": 5}}}
        containers = [{"name": "agent", "image": "agent:v1", "lifecycle": hook}]
        await start(world, "one", containers=containers)
        await start(world, "two", containers=containers, terminationGracePeriodSeconds=5)
        await world.delete(PODS, "one")
        await world.delete(PODS, "two")
        assert 4.9 <= await world.gone("two") <= 5.2
        assert 0.8 <= await world.gone("one") <= 1.2


@virtual
async def test_a_second_delete_shortens_the_grace_period() -> None:
    async with running() as world:
        await start(world, annotations={"sim.everynode.io/behaviour": "stop=20"})
        await world.delete(PODS, "one")
        await world.pass_time(3)
        await world.delete(PODS, "one", grace_seconds=1)
        assert await world.gone("one") <= 1.2


@virtual
async def test_a_pod_with_a_finalizer_stays_until_it_is_taken_away() -> None:
    async with running() as world:
        await start(world, finalizers=["example.io/hold"])
        await world.delete(PODS, "one")
        await world.pass_time(30)
        pod = await world.pod("one")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
        assert container(pod)["state"]["terminated"]["exitCode"] == 0
        world.ledger.writes.clear()
        await world.pass_time(60)
        assert world.ledger.paths() == []
        await world.patch(
            PODS,
            "one",
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.io/hold"]}},
        )
        assert await world.pod_names() == []


@virtual
async def test_a_pod_is_ready_only_when_its_gates_are() -> None:
    async with running() as world:
        gates = [{"conditionType": "example.io/warm"}]
        await world.create(PODS, pod_body("one", node=NODE, readinessGates=gates))
        await world.pass_time(10)
        pod = await world.pod("one")
        assert condition(pod, "ContainersReady")["status"] == "True"
        ready = condition(pod, "Ready")
        assert ready["status"] == "False"
        assert ready["reason"] == "ReadinessGatesNotReady"
        assert ready["message"] == (
            'corresponding condition of pod readiness gate "example.io/warm" does not exist.'
        )
        for status in ("True", "False", "True"):
            gate = {"type": "example.io/warm", "status": status}
            await world.patch(PODS, "one", {"status": {"conditions": [gate]}}, subresource="status")
            await world.pass_time(0.5)
            pod = await world.pod("one")
            assert condition(pod, "Ready")["status"] == status
            assert condition(pod, "example.io/warm")["status"] == status
        assert "reason" not in condition(pod, "Ready")


@virtual
async def test_conditions_keep_their_time_while_they_stay_the_same() -> None:
    async with running() as world:
        before = await start(world)
        await world.pass_time(60)
        await world.patch(
            PODS, "one", {"spec": {"containers": [{"name": "agent", "image": "b:2"}]}}
        )
        await world.pass_time(10)
        after = await world.ready("one")
        for kind in ("Initialized", "PodScheduled", "PodReadyToStartContainers"):
            assert (
                condition(after, kind)["lastTransitionTime"]
                == (condition(before, kind)["lastTransitionTime"])
            )
        assert (
            condition(after, "Ready")["lastTransitionTime"]
            > (condition(before, "Ready")["lastTransitionTime"])
        )


@virtual
async def test_a_probe_delays_readiness() -> None:
    async with running() as world:
        probe = {"tcpSocket": {"port": 80}, "initialDelaySeconds": 7}
        spec = [{"name": "agent", "image": "agent:v1", "readinessProbe": probe}]
        await world.create(PODS, pod_body("one", node=NODE, containers=spec))
        await world.pass_time(5)
        pod = await world.pod("one")
        assert pod["status"]["phase"] == "Running"
        assert condition(pod, "Ready")["reason"] == "ContainersNotReady"
        await world.pass_time(6)
        assert condition(await world.pod("one"), "Ready")["status"] == "True"


@virtual
async def test_another_image_restarts_the_container_and_keeps_the_pod() -> None:
    async with running() as world:
        before = await start(world)
        world.ledger.writes.clear()
        change = {"spec": {"containers": [{"name": "agent", "image": "agent:v2"}]}}
        await world.patch(PODS, "one", change)
        await world.pass_time(1.5)
        between = await world.pod("one")
        assert condition(between, "Ready")["status"] == "False"
        assert container(between)["state"]["terminated"]["exitCode"] == 0
        after = await world.ready("one")
        old, new = container(before), container(after)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["podIP"] == before["status"]["podIP"]
        assert (new["image"], new["restartCount"]) == ("agent:v2", 1)
        assert new["imageID"] != old["imageID"]
        assert new["containerID"] != old["containerID"]
        assert new["lastState"]["terminated"]["containerID"] == old["containerID"]
        assert after["status"]["observedGeneration"] == after["metadata"]["generation"]
        assert len(world.ledger.paths()) <= 3


@virtual
async def test_an_image_that_does_not_exist_alternates_between_error_and_back_off() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node=NODE, image="agent:non-existent"))
        seen: list[str] = []
        for _ in range(400):
            await world.pass_time(0.25)
            waiting = container(await world.pod("one"))["state"]["waiting"]["reason"]
            if waiting not in seen[-1:]:
                seen.append(waiting)
        assert seen[:5] == [
            "ContainerCreating",
            "ErrImagePull",
            "ImagePullBackOff",
            "ErrImagePull",
            "ImagePullBackOff",
        ]
        pod = await world.pod("one")
        assert pod["status"]["phase"] == "Pending"
        assert "Failed" in await world.reasons("one")
        change = {"spec": {"containers": [{"name": "agent", "image": "agent:v1"}]}}
        await world.patch(PODS, "one", change)
        assert (await world.ready("one", within=5))["status"]["phase"] == "Running"


@virtual
async def test_a_crashing_container_is_restarted_with_longer_and_longer_pauses() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node=NODE, image="agent:crash-loop"))
        restarts = {}
        for second in range(200):
            await world.pass_time(1)
            restarts[container(await world.pod("one"))["restartCount"]] = second
        pod = await world.pod("one")
        found = container(pod)
        assert pod["status"]["phase"] == "Running"
        assert found["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert found["lastState"]["terminated"]["exitCode"] == 1
        # Two seconds each for the start and the life of a run, then 10, 20, 40, 80 of waiting.
        assert max(restarts) == 5
        assert condition(pod, "Ready")["status"] == "False"


@virtual
async def test_a_container_that_ends_well_lets_its_pod_succeed_unless_it_is_to_be_restarted() -> (
    None
):
    async with running() as world:
        for name, image in (("once", "job:run-once"), ("bad", "job:crash-loop")):
            body = pod_body(name, restartPolicy="Never", node=NODE, image=image)
            await world.create(PODS, body)
        await world.pass_time(10)
        once, bad = await world.pod("once"), await world.pod("bad")
        assert once["status"]["phase"] == "Succeeded"
        assert condition(once, "Ready")["reason"] == "PodCompleted"
        assert bad["status"]["phase"] == "Failed"
        assert container(bad)["state"]["terminated"]["reason"] == "Error"


@virtual
async def test_init_containers_come_first() -> None:
    async with running() as world:
        init = [{"name": "setup", "image": "setup:v1"}]
        await world.create(PODS, pod_body("one", node=NODE, initContainers=init))
        await world.pass_time(1.5)
        pod = await world.pod("one")
        assert condition(pod, "Initialized")["status"] == "False"
        assert container(pod)["state"]["waiting"]["reason"] == "PodInitializing"
        pod = await world.ready("one")
        [setup] = pod["status"]["initContainerStatuses"]
        assert setup["state"]["terminated"]["reason"] == "Completed"


RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}


def resized(cpu: str) -> Object:
    resources = {
        "requests": {"cpu": cpu, "memory": "1Gi"},
        "limits": {"cpu": "100", "memory": "1Gi"},
    }
    return {"spec": {"containers": [{"name": "agent", "resources": resources}]}}


@virtual
async def test_a_resize_is_carried_out_without_a_restart() -> None:
    async with running() as world:
        spec = [{"name": "agent", "image": "agent:v1", "resources": RESOURCES}]
        before = await start(world, containers=spec)
        assert container(before)["resources"] == RESOURCES
        await world.patch(PODS, "one", resized("1500m"), subresource="resize")
        await world.pass_time(0.5)
        between = await world.pod("one")
        assert condition(between, "PodResizeInProgress")["status"] == "True"
        assert container(between)["resources"]["requests"]["cpu"] == "1"
        await world.pass_time(2)
        after = await world.pod("one")
        assert condition(after, "PodResizeInProgress")["status"] == "Unknown"
        assert container(after)["resources"]["requests"]["cpu"] == "1500m"
        assert container(after)["containerID"] == container(before)["containerID"]
        assert condition(after, "Ready")["status"] == "True"


@virtual
async def test_a_resize_that_the_node_can_never_hold_is_infeasible() -> None:
    async with running() as world:
        spec = [{"name": "agent", "image": "agent:v1", "resources": RESOURCES}]
        await start(world, containers=spec)
        await world.patch(PODS, "one", resized("64"), subresource="resize")
        await world.pass_time(5)
        pod = await world.pod("one")
        pending = condition(pod, "PodResizePending")
        assert (pending["status"], pending["reason"]) == ("True", "Infeasible")
        assert pending["message"] == (
            "Node didn't have enough capacity: cpu, requested: 64000, capacity: 8000"
        )
        assert container(pod)["resources"]["requests"]["cpu"] == "1"


@virtual
async def test_a_resize_that_does_not_fit_now_waits_for_others_to_leave() -> None:
    async with running() as world:
        spec = [{"name": "agent", "image": "agent:v1", "resources": RESOURCES}]
        await start(world, "one", containers=spec)
        big = {"requests": {"cpu": "6"}}
        await start(world, "two", containers=[{"name": "a", "image": "a:1", "resources": big}])
        await world.patch(PODS, "one", resized("4"), subresource="resize")
        await world.pass_time(5)
        assert condition(await world.pod("one"), "PodResizePending")["reason"] == "Deferred"
        await world.delete(PODS, "two")
        await world.pass_time(5)
        pod = await world.pod("one")
        assert condition(pod, "PodResizePending")["status"] == "Unknown"
        assert container(pod)["resources"]["requests"]["cpu"] == "4"


@virtual
async def test_a_kubelet_refuses_a_pod_that_does_not_fit_and_was_not_scheduled() -> None:
    async with running() as world:
        spec = [{"name": "agent", "image": "agent:v1", "resources": {"requests": {"cpu": "9"}}}]
        await world.create(PODS, pod_body("one", nodeName=NODE, containers=spec))
        await world.pass_time(1)
        pod = await world.pod("one")
        assert pod["status"]["phase"] == "Failed"
        assert pod["status"]["reason"] == "OutOfcpu"
        assert pod["status"]["message"] == (
            "Pod was rejected: Node didn't have enough resource: cpu, "
            "requested: 9000, used: 0, capacity: 8000"
        )


@virtual
async def test_words_in_an_annotation_of_the_pod_change_its_behaviour() -> None:
    async with running() as world:
        note = "sim.everynode.io/behaviour"
        body = pod_body("one", node=NODE, annotations={note: "fail=probe start=3"})
        await world.create(PODS, body)
        await world.pass_time(20)
        pod = await world.pod("one")
        assert pod["status"]["phase"] == "Running"
        assert condition(pod, "Ready")["status"] == "False"
        change = [{"op": "remove", "path": "/metadata/annotations"}]
        await world.patch(PODS, "one", change, kind=JSON_PATCH)
        await world.ready("one", within=2)


@virtual
async def test_words_that_cannot_be_parsed_become_an_event() -> None:
    async with running() as world:
        note = {"sim.everynode.io/behaviour": "fail=everything"}
        await world.create(PODS, pod_body("one", node=NODE, annotations=note))
        await world.ready("one")
        assert "BadBehaviour" in await world.reasons("one")


@virtual
async def test_kubelets_that_come_back_find_their_pods_running() -> None:
    async with running() as world:
        before = await start(world)
        api = world.api
    async with running(api=api) as world:
        world.ledger.writes.clear()
        await world.pass_time(5)
        after = await world.pod("one")
        assert container(after) == container(before)
        assert after["status"]["podIP"] == before["status"]["podIP"]
        fresh = await start(world, "two")
        assert fresh["status"]["podIP"] != before["status"]["podIP"]


@virtual
async def test_kubelets_that_come_back_end_what_was_deleted_meanwhile() -> None:
    async with running() as world:
        await start(world)
        api = world.api
    async with running(ComponentOptions(nodes=0, controllers=False), api=api) as world:
        pass
    await world.delete(PODS, "one")
    async with running(api=api) as world:
        await world.gone("one", within=5)


@pytest.mark.parametrize(("final", "phase"), [(False, "Running"), (True, "Succeeded")])
@virtual
async def test_the_phase_of_a_stopped_pod_is_a_matter_of_the_kubelets_age(
    final: bool, phase: str
) -> None:
    behaviour = Behaviour(final_phase=final)
    async with running(ComponentOptions(nodes=1, behaviour=behaviour)) as world:
        await start(world, finalizers=["example.io/hold"])
        await world.delete(PODS, "one")
        await world.pass_time(5)
        assert (await world.pod("one"))["status"]["phase"] == phase


@virtual
async def test_speed_divides_every_duration() -> None:
    async with running(ComponentOptions(nodes=1, behaviour=Behaviour(speed=10))) as world:
        begun = world.clock.monotonic()
        await start(world)
        assert world.clock.monotonic() - begun < 0.4

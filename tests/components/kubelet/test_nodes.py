"""Nodes: registration, and adoption of nodes that others created."""

from __future__ import annotations

from everynode.components.kubelet.registration import Machine, node_name, node_object
from everynode.components.run import ComponentOptions
from everynode.kube.resources import NODES, PODS
from tests.support.components_cluster import condition, pod_body, running, virtual


@virtual
async def test_nodes_look_like_nodes() -> None:
    async with running(ComponentOptions(nodes=4, zones=("zone-a", "zone-b", "zone-c"))) as world:
        nodes = await world.all(NODES)
        assert [node["metadata"]["name"] for node in nodes] == [
            "node-0001",
            "node-0002",
            "node-0003",
            "node-0004",
        ]
        zone = "topology.kubernetes.io/zone"
        assert [node["metadata"]["labels"][zone] for node in nodes] == [
            "zone-a",
            "zone-b",
            "zone-c",
            "zone-a",
        ]
        first = nodes[0]
        assert first["metadata"]["labels"]["kubernetes.io/hostname"] == "node-0001"
        assert first["status"]["allocatable"]["pods"] == "110"
        assert first["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
        assert first["spec"]["podCIDR"] == "10.64.0.0/24"
        assert all(condition(node, "Ready")["status"] == "True" for node in nodes)
        addresses = [node["status"]["addresses"][0]["address"] for node in nodes]
        assert len(set(addresses)) == 4


@virtual
async def test_what_is_there_already_is_not_created_again() -> None:
    async with running() as world:
        api = world.api
    async with running(ComponentOptions(nodes=5), api=api) as world:
        created = [each for each in world.ledger.paths() if each == "POST nodes"]
        assert len(created) == 2
        assert len(await world.all(NODES)) == 5


@virtual
async def test_a_node_created_by_another_client_is_simulated_too() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        await world.create(NODES, {"metadata": {"name": "edge", "labels": {"place": "roof"}}})
        await world.pass_time(1)
        node = await world.get(NODES, "edge")
        assert condition(node, "Ready")["status"] == "True"
        assert node["status"]["allocatable"]["cpu"] == "8"
        assert node["spec"].get("taints") is None
        await world.create(PODS, pod_body("one", nodeSelector={"place": "roof"}))
        pod = await world.ready("one")
        other = await world.get(NODES, "node-0001")
        assert pod["status"]["hostIP"] != other["status"]["addresses"][0]["address"]


@virtual
async def test_a_node_that_was_deleted_and_comes_back_is_played_on() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        await world.delete(NODES, "node-0001")
        await world.create(NODES, {"metadata": {"name": "node-0001"}})
        await world.pass_time(1)
        assert condition(await world.get(NODES, "node-0001"), "Ready")["status"] == "True"
        await world.create(PODS, pod_body("two", node="node-0001"))
        await world.ready("two")
        assert (await world.pod("one"))["status"]["phase"] == "Running"


def test_names_are_padded_so_that_they_sort() -> None:
    assert node_name(0, 3) == "node-0001"
    assert node_name(11_999, 12_000) == "node-12000"


def test_a_node_reports_the_capacity_of_its_machine() -> None:
    node = node_object("n", 0, zone="z", now=0.0, machine=Machine(cpus=4, memory_gib=1, pods=5))
    assert node["status"]["capacity"]["cpu"] == "4"
    assert node["status"]["capacity"]["memory"] == "1048576Ki"
    assert node["status"]["allocatable"]["pods"] == "5"


@virtual
async def test_a_reboot_restarts_every_container_and_keeps_the_pods() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        await world.create(PODS, pod_body("one"))
        before = await world.ready("one")
        boot = {"metadata": {"annotations": {"sim.everynode.io/boot": "1"}}}
        await world.patch(NODES, "node-0001", boot)
        await world.pass_time(10)
        silent = await world.get(PODS, "one")
        assert silent["status"]["containerStatuses"][0]["restartCount"] == 0
        await world.pass_time(15)
        after = await world.ready("one")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        [status] = after["status"]["containerStatuses"]
        assert status["restartCount"] == 1
        assert status["lastState"]["terminated"]["exitCode"] == 255
        await world.patch(NODES, "node-0001", {"metadata": {"annotations": {"other": "x"}}})
        await world.pass_time(60)
        again = await world.get(PODS, "one")
        assert again["status"]["containerStatuses"][0]["restartCount"] == 1

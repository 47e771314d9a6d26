from __future__ import annotations

from tests.support.api_client import CORE, Cluster

SERVICES = f"{CORE}/namespaces/default/services"


async def test_service_gets_an_address_of_its_own(cluster: Cluster) -> None:
    ports = [{"port": 80}]
    one = await cluster.create(SERVICES, {"metadata": {"name": "a"}, "spec": {"ports": ports}})
    two = await cluster.create(SERVICES, {"metadata": {"name": "b"}, "spec": {"ports": ports}})
    assert one["spec"]["clusterIP"] != two["spec"]["clusterIP"]
    assert one["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert one["spec"]["type"] == "ClusterIP"
    assert one["status"] == {"loadBalancer": {}}


async def test_headless_and_external_services_get_none(cluster: Cluster) -> None:
    headless = {"clusterIP": "None", "ports": [{"port": 80}]}
    made = await cluster.create(SERVICES, {"metadata": {"name": "a"}, "spec": headless})
    assert made["spec"]["clusterIP"] == "None"
    outside = {"type": "ExternalName", "externalName": "example.test"}
    made = await cluster.create(SERVICES, {"metadata": {"name": "b"}, "spec": outside})
    assert "clusterIP" not in made["spec"]


async def test_address_is_kept_and_cannot_be_changed(cluster: Cluster) -> None:
    spec = {"ports": [{"port": 80}]}
    made = await cluster.create(SERVICES, {"metadata": {"name": "a"}, "spec": spec})
    again = await cluster.put(f"{SERVICES}/a", {"metadata": {"name": "a"}, "spec": spec})
    assert again.body["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    answer = await cluster.patch(f"{SERVICES}/a", {"spec": {"clusterIP": "10.96.9.9"}})
    assert (answer.status, "may not change once set" in answer.message) == (422, True)


async def test_several_ports_need_names(cluster: Cluster) -> None:
    spec = {"ports": [{"port": 80}, {"port": 81}]}
    answer = await cluster.post(SERVICES, {"metadata": {"name": "a"}, "spec": spec})
    assert "spec.ports[0].name: Required value" in answer.message
    empty = await cluster.post(SERVICES, {"metadata": {"name": "a"}, "spec": {}})
    assert "spec.ports: Required value" in empty.message


async def test_deleting_a_service_answers_with_it(cluster: Cluster) -> None:
    spec = {"ports": [{"port": 80}]}
    await cluster.create(SERVICES, {"metadata": {"name": "a"}, "spec": spec})
    assert (await cluster.delete(f"{SERVICES}/a")).body["kind"] == "Service"

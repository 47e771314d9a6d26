from __future__ import annotations

from typing import Any

import msgspec

from everynode.api.times import format_time
from everynode.apiserver.storage.store import Store
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.forecast.seeded_cluster import SeededNodes, Seeding
from everynode.inspect.stored_objects import StoredObjects
from everynode.kube.client import Client
from everynode.sim.plans.plan import Timing
from tests.support.scripted_server import ManualClock

Object = dict[str, Any]
NOW = 1_767_225_600.0
BEHAVIOUR = "sim.everynode.io/behaviour"


def node(name: str, *, ready: str = "True", cpu: str = "8") -> Object:
    conditions = [{"type": "Ready", "status": ready}]
    status = {"conditions": conditions, "allocatable": {"cpu": cpu, "pods": "110"}}
    return {"metadata": {"name": name, "uid": name}, "spec": {}, "status": status}


def pod(name: str, on: str, *, ready: bool = True, reason: str = "") -> Object:
    state: Object = {"waiting": {"reason": reason}} if reason else {"running": {}}
    return {
        "metadata": {
            "name": name,
            "namespace": "agents",
            "uid": name,
            "creationTimestamp": format_time(NOW - 9000),
            "annotations": {BEHAVIOUR: "fail=crash", "kept": "yes"},
        },
        "spec": {"nodeName": on, "containers": [{"name": "a", "image": "agent:v1"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [
                {"name": "a", "image": "docker.io/library/agent:v1", "state": state}
            ],
        },
    }


def seeded(*objects: Object, used: Any = None) -> tuple[Store, SeededNodes]:
    """Put nodes and pods into a store."""
    clock = ManualClock()
    api = Api(clock=clock)
    pods = [msgspec.json.encode(each) for each in objects if "nodeName" in each["spec"]]
    nodes = [msgspec.json.encode(each) for each in objects if "nodeName" not in each["spec"]]
    stored = StoredObjects(ds=None, nodes=tuple(nodes), pods=tuple(pods), now=NOW, used=used)
    seeding = Seeding(api.store, Client(LocalTransport(api), clock), stored)
    found = seeding.add_nodes()
    seeding.add_pods(Timing(start=5.0, ready=10.0, stop=5.0))
    return api.store, found


def body(store: Store, collection: str, name: str) -> Object:
    record = store.collection(collection).get("agents" if collection == "pods" else "", name)
    assert record is not None
    found: Object = msgspec.json.decode(record.body)
    return found


def test_a_pod_keeps_what_it_is_and_images_are_named_as_in_its_spec() -> None:
    """A container runtime reports a longer name, which would be taken for another image."""
    store, _ = seeded(node("n1"), pod("p1", "n1"))
    stored = body(store, "pods", "p1")
    assert stored["metadata"]["uid"] == "p1"
    assert stored["status"]["containerStatuses"][0]["image"] == "agent:v1"
    assert stored["metadata"]["annotations"] == {"kept": "yes"}


def test_a_pod_that_fails_goes_on_failing() -> None:
    store, found = seeded(node("n1"), pod("p1", "n1", ready=False, reason="ImagePullBackOff"))
    annotations = body(store, "pods", "p1")["metadata"]["annotations"]
    assert annotations == {"kept": "yes", BEHAVIOUR: "fail=pull"}
    assert found.failing == {"n1"}


def test_sick_nodes_are_told_apart() -> None:
    store, found = seeded(
        node("n1"), node("n2", ready="Unknown"), node("n3", ready="False"), pod("p2", "n2")
    )
    assert found == SeededNodes(silent=("n2",), not_ready=frozenset({"n3"}))
    stopped = body(store, "nodes", "n2")["metadata"]["annotations"]
    assert stopped == {"sim.everynode.io/stopped": "true"}
    assert "annotations" not in body(store, "nodes", "n1")["metadata"]


def test_nodes_have_as_much_less_as_the_pods_of_others_request() -> None:
    used = {"n1": {"cpu": 2500, "pods": 10, "memory": 1}}
    store, _ = seeded(node("n1"), node("n2"), used=used)
    assert body(store, "nodes", "n1")["status"]["allocatable"] == {"cpu": "5500m", "pods": "100"}
    assert body(store, "nodes", "n2")["status"]["allocatable"] == {"cpu": "8", "pods": "110"}

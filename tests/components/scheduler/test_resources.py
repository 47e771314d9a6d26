"""Resources: which pods fit on which nodes."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api.resources import parse_amounts
from everynode.components.objects import FullPod
from everynode.components.scheduler.resources import (
    AllocatedResources,
    PodRequests,
    fit_errors,
    pod_requests,
)

OFFER = parse_amounts({"cpu": "2", "memory": "1Gi", "pods": 3, "example.com/gpu": "1"})


def pod(**spec: Any) -> FullPod:
    return msgspec.convert({"metadata": {}, "spec": spec}, FullPod)


def container(name: str, *ports: dict[str, Any], **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}, "ports": list(ports)}


def test_containers_add_up_and_init_containers_count_by_the_largest() -> None:
    demand = pod_requests(
        pod(
            containers=[container("a", cpu="100m", memory="64Mi"), container("b", cpu="200m")],
            initContainers=[container("i", cpu="1"), container("j", cpu="500m")],
            overhead={"cpu": "50m"},
        )
    )
    assert demand.amounts == {"cpu": 1050, "memory": 64 << 20}


def test_sidecars_stay_beside_everything_that_comes_after_them() -> None:
    sidecar = {**container("s", cpu="300m"), "restartPolicy": "Always"}
    demand = pod_requests(
        pod(
            containers=[container("a", cpu="1")],
            initContainers=[sidecar, container("i", cpu="900m")],
        )
    )
    assert demand.amounts == {"cpu": 1300}


def test_resources_of_the_whole_pod_replace_those_of_its_containers() -> None:
    whole = pod(containers=[container("a", cpu="1")], resources={"requests": {"cpu": "3"}})
    assert pod_requests(whole).amounts == {"cpu": 3000}


def test_every_shortage_is_named_in_the_usual_order() -> None:
    load = AllocatedResources()
    for _ in range(3):
        load.add(PodRequests({"cpu": 600}))
    wanted = PodRequests({"memory": 2 << 30, "cpu": 300, "example.com/gpu": 2})
    assert fit_errors(wanted, load, OFFER) == [
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient example.com/gpu",
    ]
    load.remove(PodRequests({"cpu": 600}))
    assert fit_errors(PodRequests({"cpu": 300}), load, OFFER) == []


def test_host_ports_collide_by_protocol_number_and_address() -> None:
    load = AllocatedResources()
    load.add(PodRequests({}, (("127.0.0.1", "TCP", 80),)))
    taken = ["node(s) didn't have free ports for the requested pod ports"]
    assert fit_errors(PodRequests({}, (("0.0.0.0", "TCP", 80),)), load, OFFER) == taken
    assert fit_errors(PodRequests({}, (("127.0.0.1", "TCP", 80),)), load, OFFER) == taken
    assert fit_errors(PodRequests({}, (("127.0.0.2", "TCP", 80),)), load, OFFER) == []
    assert fit_errors(PodRequests({}, (("0.0.0.0", "UDP", 80),)), load, OFFER) == []
    assert fit_errors(PodRequests({}, (("0.0.0.0", "TCP", 81),)), load, OFFER) == []
    load.remove(PodRequests({}, (("127.0.0.1", "TCP", 80),)))
    assert load == AllocatedResources()


def test_what_is_no_quantity_counts_as_nothing() -> None:
    assert parse_amounts({"cpu": "much", "memory": "1Ki"}) == {"memory": 1024}

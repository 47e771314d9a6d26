"""What a pod requests in total, and whether a node has room for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.resources import (
    add_amounts,
    format_amount,
    growing_resources,
    missing_room,
    parse_amounts,
    pod_requests,
    read_spec,
)

OFFER = parse_amounts({"cpu": "2", "memory": "1Gi", "pods": 3, "example.com/gpu": "1"})


def container(*, limits: dict[str, Any] | None = None, **requests: Any) -> dict[str, Any]:
    return {"name": "a", "resources": {"requests": requests or None, "limits": limits}}


def test_requests_add_up_over_containers_init_containers_sidecars_and_overhead() -> None:
    spec = {
        "containers": [container(cpu="100m", memory="64Mi"), container(cpu=0.2)],
        "initContainers": [
            {**container(cpu="50m"), "restartPolicy": "Always"},
            {"resources": {"requests": {"cpu": "900m", "ephemeral-storage": "1Gi"}}},
        ],
        "overhead": {"cpu": "25m"},
    }
    assert pod_requests(read_spec(spec)) == {
        "cpu": 50 + 900 + 25,
        "memory": 64 << 20,
        "ephemeral-storage": 1 << 30,
    }


def test_requests_of_the_whole_pod_replace_those_of_its_containers() -> None:
    spec = {
        "containers": [container(cpu="1", memory="1Gi")],
        "resources": container(cpu="3")["resources"],
    }
    assert pod_requests(read_spec(spec)) == {"cpu": 3000, "memory": 1 << 30}


def test_a_limit_without_a_request_is_requested() -> None:
    limited = container(limits={"cpu": "300m", "memory": "1Gi"}, memory="64Mi")
    assert pod_requests(read_spec({"containers": [limited]})) == {"cpu": 300, "memory": 64 << 20}


def test_fields_that_are_null_request_nothing() -> None:
    spec = {"containers": [{"name": "a", "resources": None}], "initContainers": None}
    assert pod_requests(read_spec(spec)) == {}


def test_a_spec_of_the_wrong_shape_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        read_spec({"containers": "all"})


def test_growing_resources_are_those_of_which_more_is_requested() -> None:
    before = {"cpu": 100, "memory": 64, "pods": 1}
    assert growing_resources(before, {"cpu": 100, "memory": 63}) == []
    assert growing_resources(before, {"memory": 65, "cpu": 150, "a/b": 1}) == [
        "cpu",
        "memory",
        "a/b",
    ]
    assert growing_resources({}, {"cpu": 0}) == []


def test_a_pod_that_takes_exactly_what_is_left_fits() -> None:
    assert missing_room(OFFER, {"cpu": 1850}, {"cpu": 150}) == ()
    assert missing_room(OFFER, {"cpu": 1850, "pods": 2}, {"cpu": 150, "pods": 1}) == ()


def test_every_shortage_is_named_in_the_order_of_the_scheduler() -> None:
    used = add_amounts([{"cpu": 1000, "pods": 1}, {"cpu": 880, "pods": 2, "memory": 1 << 30}])
    wanted = {"memory": 1 << 20, "cpu": 150, "example.com/gpu": 2, "example.com/nic": 1, "pods": 1}
    assert [str(each) for each in missing_room(OFFER, used, wanted)] == [
        "Too many pods",
        "Insufficient cpu: 150m needed, 120m free",
        "Insufficient memory: 1Mi needed, 0 free",
        "Insufficient example.com/gpu: 2 needed, 1 free",
        "Insufficient example.com/nic: 1 needed, 0 free",
    ]


def test_a_pod_that_requests_nothing_fits_on_an_overcommitted_node() -> None:
    assert missing_room(OFFER, {"cpu": 9000}, {"cpu": 0}) == ()
    [short] = missing_room(OFFER, {"cpu": 9000}, {"cpu": 1})
    assert str(short) == "Insufficient cpu: 1m needed, -7 free"


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 96 << 20, "96Mi"),
        ("hugepages-2Mi", 2 << 20, "2Mi"),
        ("example.com/gpu", 2000, "2k"),
    ],
)
def test_amounts_are_printed_as_people_write_them(name: str, amount: int, text: str) -> None:
    assert format_amount(name, amount) == text

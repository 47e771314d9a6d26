from __future__ import annotations

from typing import Any

import pytest

from everynode.api import keys
from everynode.api.times import format_time
from everynode.decide.node.availability import available_at, is_ready
from tests.support.samples import NOW, Object, condition, pod

GATES = (keys.INPLACE_UPDATE_READY, keys.KRUISE_POD_READY)


def conditions(**times: float) -> list[Object]:
    kinds = (keys.READY, keys.CONTAINERS_READY, *GATES)
    return [condition(kind, since=times.get(kind, NOW - 100)) for kind in kinds]


def test_a_pod_is_available_minreadyseconds_after_it_became_ready() -> None:
    assert available_at(pod(), 30) == NOW - 70


@pytest.mark.parametrize("kind", [keys.READY, *GATES])
def test_the_latest_change_counts(kind: str) -> None:
    assert available_at(pod(conditions=conditions(**{kind: NOW - 10})), 30) == NOW + 20


def test_without_minreadyseconds_ready_is_enough_whatever_the_clocks_say() -> None:
    assert available_at(pod(conditions=conditions(Ready=NOW + 3600)), 0) == 0.0


def test_ready_without_a_time_counts_from_the_start_of_the_pod() -> None:
    timeless = [condition(kind, since=None) for kind in (keys.READY, *GATES)]
    assert available_at(pod(conditions=timeless), 30) == NOW - 900 + 30
    unstarted = pod(conditions=timeless, startTime=None)
    assert available_at(unstarted, 30) == NOW - 1000 + 30


@pytest.mark.parametrize(
    "made",
    [
        {"conditions": []},
        {"conditions": [condition(keys.READY, "False")]},
        {"conditions": [condition(keys.READY, "Unknown")]},
        {"conditions": [condition(keys.READY)]},
        {"conditions": [*conditions()[:-1], condition(keys.KRUISE_POD_READY, "False")]},
        {"gates": ("mine",), "conditions": [condition(keys.READY)]},
    ],
    ids=[
        "no condition",
        "not ready",
        "unknown",
        "gates without conditions",
        "gate closed",
        "foreign gate",
    ],
)
@pytest.mark.parametrize("min_ready_seconds", [0, 30])
def test_a_pod_is_not_available(made: dict[str, Any], min_ready_seconds: int) -> None:
    assert available_at(pod(**made), min_ready_seconds) is None


def test_an_unfinished_in_place_update_stands_against_it() -> None:
    state = '{"revision":"b","lastContainerStatuses":{"agent":{"imageID":"sha256:old"}}}'
    status = {"image": "registry.example/agent:0", "imageID": "sha256:old"}
    statuses = [{"name": "agent", **status}]
    begun = pod(annotations={keys.INPLACE_STATE: state}, statuses=statuses)
    assert is_ready(begun)
    assert available_at(begun, 0) is None


def test_a_resize_counts_from_when_it_was_asked_for() -> None:
    state = (
        '{"revision":"b","updateResources":true,"lastContainerStatuses":null,'
        f'"containerBatchesRecord":[{{"timestamp":"{format_time(NOW - 5)}","containers":["a"]}}]}}'
    )
    resized = pod(annotations={keys.INPLACE_STATE: state})
    assert available_at(resized, 30) == NOW + 25


def test_an_unreadable_record_stops_nothing() -> None:
    assert available_at(pod(annotations={keys.INPLACE_STATE: "{"}), 30) == NOW - 70

"""Preemption: which pods are deleted for a pod of higher priority."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.components.objects import FullNode, FullPod
from everynode.components.scheduler.filters import NodeInfo, PodInfo
from everynode.components.scheduler.preemption import candidate_on, choose_candidate


def wish(name: str, cpu: int, priority: int, born: str = "2024-01-01T00:00:00Z") -> PodInfo:
    requests = {"requests": {"cpu": str(cpu)}}
    body: dict[str, Any] = {
        "metadata": {"name": name, "uid": name, "creationTimestamp": born},
        "spec": {"containers": [{"name": "c", "resources": requests}]},
    }
    return PodInfo(msgspec.convert(body, FullPod), priority)


def spot(name: str, *wishes: PodInfo, cpu: int = 8) -> NodeInfo:
    made = NodeInfo()
    status = {"allocatable": {"cpu": str(cpu), "pods": "10"}}
    made.update(msgspec.convert({"metadata": {"name": name}, "status": status}, FullNode))
    for each in wishes:
        made.add_pod(each)
    return made


def victims(above: PodInfo, *spots: NodeInfo) -> list[str]:
    chosen = choose_candidate(above, spots)
    return [] if chosen is None else [victim.pod.metadata.name for victim in chosen.victims]


def test_as_few_as_possible_go_and_the_important_stay() -> None:
    here = spot("a", wish("low", 2, 1), wish("middle", 2, 5), wish("high", 2, 9), wish("big", 2, 1))
    assert victims(wish("new", 2, 10), here) == ["low"]
    assert victims(wish("new", 4, 10), here) == ["big", "low"]


def test_no_pod_is_preempted_for_one_of_the_same_priority() -> None:
    assert candidate_on(wish("new", 8, 5), spot("a", wish("old", 8, 5))) is None


def test_no_pod_is_preempted_if_the_node_is_still_too_small() -> None:
    here = spot("a", wish("low", 2, 1), wish("high", 6, 100))
    assert candidate_on(wish("new", 4, 50), here) is None


def test_the_node_whose_victims_matter_least_is_chosen() -> None:
    important = spot("a", wish("important", 8, 7))
    several = spot("b", *(wish(f"p{n}", 4, 3) for n in range(2)))
    one = spot("c", wish("single", 8, 3))
    assert victims(wish("new", 8, 10), important, several, one) == ["single"]


def test_among_equals_the_youngest_goes() -> None:
    here = spot(
        "a",
        wish("old", 4, 1, "2024-01-01T00:00:00Z"),
        wish("young", 4, 1, "2024-06-01T00:00:00Z"),
    )
    assert victims(wish("new", 4, 10), here) == ["young"]

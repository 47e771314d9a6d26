from __future__ import annotations

from datetime import UTC, datetime

import pytest

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, IntOrPercent, UpdateStrategy
from everynode.api.objects import Condition, Node, NodeMeta, Pod, PodMeta, PodSpec, PodStatus
from everynode.inspect.evaluate import evaluate, is_complete, summarise
from everynode.inspect.fleet import RolloutState
from everynode.inspect.snapshot import Snapshot
from tests.support.samples import NOW, advanced, template


def sample(**more: object) -> DaemonSet:
    return advanced(template(), metadata={"generation": 1}, **more)


def node(name: str) -> Node:
    return Node(NodeMeta(name=name))


def pod(on: str, revision: str, *, ready_for: float | None) -> Pod:
    """A pod of the sample; Ready for some seconds, or not at all."""
    moment = datetime.fromtimestamp(NOW - (ready_for or 0.0), UTC)
    status = "False" if ready_for is None else "True"
    return Pod(
        PodMeta(
            name=f"agent-{on}",
            namespace="system",
            uid=f"uid-{on}",
            labels={"app": "agent", "controller-revision-hash": revision},
            creation_timestamp=moment,
        ),
        PodSpec(node_name=on),
        PodStatus("Running", conditions=(Condition("Ready", status, last_transition_time=moment),)),
    )


def target_of(ds: DaemonSet) -> str:
    return evaluate(Snapshot(ds, (), (), ()), NOW).fleet.target


def test_pace_and_time_to_go_come_from_the_pods_that_were_updated() -> None:
    ds = sample(status=DaemonSetStatus(observed_generation=1))
    target = target_of(ds)
    nodes = tuple(node(f"n{i}") for i in range(9))
    new = [pod(f"n{8 - i}", target, ready_for=10.0 * (5 - i)) for i in range(5)]
    old = [pod(f"n{i}", "old", ready_for=5000.0) for i in range(4)]
    fleet = evaluate(Snapshot(ds, nodes, (*new, *old), ()), NOW).fleet
    assert fleet.state is RolloutState.PROGRESSING  # the next node can be taken
    assert fleet.per_minute == pytest.approx(4 / 50 * 60)
    assert fleet.seconds_left == pytest.approx(4 / (4 / 50))


def test_queued_nodes_have_places_by_name_descending_and_sick_ones_first() -> None:
    ds = sample(
        strategy=UpdateStrategy(max_unavailable=IntOrPercent(1)),
        status=DaemonSetStatus(observed_generation=1),
    )
    nodes = tuple(node(name) for name in ("a", "b", "c"))
    pods = (
        pod("a", "old", ready_for=None),
        pod("b", "old", ready_for=900.0),
        pod("c", "old", ready_for=900.0),
    )
    fleet = evaluate(Snapshot(ds, nodes, pods, ()), NOW).fleet
    assert [(row.node, row.place) for row in fleet.rows] == [("a", 1), ("b", 3), ("c", 2)]


def test_a_spec_that_no_controller_has_seen_is_reported_as_unobserved() -> None:
    fleet = evaluate(Snapshot(sample(), (node("a"),), (), ()), NOW).fleet
    assert fleet.state is RolloutState.UNOBSERVED


def test_a_complete_set_is_summarised_from_its_status() -> None:
    done = DaemonSetStatus(observed_generation=1, desired=3, updated=3, available=3, ready=3)
    assert is_complete(sample(status=done))
    fleet = summarise(sample(status=done))
    assert (fleet.state, fleet.counts.available) == (RolloutState.COMPLETE, 3)
    assert fleet.images == ("registry.example/agent:1",)
    assert not is_complete(sample())

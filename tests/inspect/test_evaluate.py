from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    Flavour,
    IntOrPercent,
    UpdateStrategy,
)
from everynode.api.objects import (
    Condition,
    ContainerState,
    ContainerStatus,
    Node,
    NodeMeta,
    Pod,
    PodMeta,
    PodSpec,
    PodStatus,
    StateWaiting,
)
from everynode.inspect.evaluate import Evaluator, evaluate, is_complete, summarise
from everynode.inspect.fleet import NodeStanding, RolloutState
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


def test_pods_that_an_undo_did_not_touch_are_no_part_of_the_pace() -> None:
    began = datetime.fromtimestamp(NOW - 60, UTC)
    complete = Condition("Complete", "False", last_transition_time=began)
    ds = sample(status=DaemonSetStatus(observed_generation=1, conditions=(complete,)))
    target = target_of(ds)
    nodes = tuple(node(f"n{i}") for i in range(9))
    kept = [pod(f"n{i}", target, ready_for=3000.0) for i in range(4)]
    back = [pod(f"n{8 - i}", target, ready_for=10.0 * (4 - i)) for i in range(2)]
    few = evaluate(Snapshot(ds, nodes, (*kept, *back), ()), NOW).fleet
    assert few.per_minute is None  # two are too few to tell
    more = [*back, pod("n6", target, ready_for=20.0)]
    fleet = evaluate(Snapshot(ds, nodes, (*kept, *more), ()), NOW).fleet
    assert fleet.per_minute == pytest.approx(2 / 40 * 60)


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


def test_right_after_a_first_installation_no_node_counts_as_down() -> None:
    ds = sample(
        strategy=UpdateStrategy(max_unavailable=IntOrPercent(1)),
        status=DaemonSetStatus(observed_generation=1),
    )
    pods = tuple(pod(name, target_of(ds), ready_for=0.5) for name in ("a", "b", "c"))
    nodes = tuple(node(name) for name in ("a", "b", "c"))
    assert evaluate(Snapshot(ds, nodes, pods, ()), NOW).fleet.budget.used == 0
    # While another node waits for its turn, pods that have proved nothing yet count.
    waiting = (*pods[:2], pod("c", "old", ready_for=900.0))
    assert evaluate(Snapshot(ds, nodes, waiting, ()), NOW).fleet.budget.used == 2


def test_a_broken_pod_of_the_target_does_not_count_as_updated() -> None:
    ds = sample(status=DaemonSetStatus(observed_generation=1))
    target = target_of(ds)
    nodes = tuple(node(name) for name in ("a", "b", "c"))
    pods = (
        pod("a", "old", ready_for=900.0),
        pod("b", target, ready_for=None),
        pod("c", target, ready_for=900.0),
    )
    fleet = evaluate(Snapshot(ds, nodes, pods, ()), NOW).fleet
    standings = [row.standing for row in fleet.rows]
    assert fleet.counts.updated == standings.count(NodeStanding.UPDATED) == 1
    assert fleet.status.updated == 2  # as kubectl shows it


@pytest.mark.parametrize(
    ("quiet", "state"),
    [(10.0, RolloutState.WAITING), (299.0, RolloutState.WAITING), (301.0, RolloutState.STALLED)],
)
@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_rollout_waits_until_nothing_has_moved_for_five_minutes(
    flavour: Flavour, quiet: float, state: RolloutState
) -> None:
    """As the condition Stalled says; the native kind has none, and its pods tell it."""
    since = datetime.fromtimestamp(NOW - quiet, UTC)
    conditions = tuple(
        Condition(kind, "False", "Waiting", last_transition_time=since)
        for kind in (("Ready", "Reconciling") if flavour is Flavour.ADVANCED else ())
    )
    status = DaemonSetStatus(observed_generation=1, conditions=conditions)
    strategy = UpdateStrategy(max_unavailable=IntOrPercent(1))
    ds = replace(sample(strategy=strategy, status=status), flavour=flavour)
    waits = ContainerState(waiting=StateWaiting("ImagePullBackOff"))
    broken = pod("b", target_of(ds), ready_for=None)
    times = (Condition("Ready", "False", last_transition_time=since),)
    broken = replace(
        broken,
        metadata=replace(broken.metadata, creation_timestamp=since),
        status=PodStatus(
            "Pending", conditions=times, container_statuses=(ContainerStatus("a", state=waits),)
        ),
    )
    pods = (pod("a", "old", ready_for=5000.0), broken)
    fleet = evaluate(Snapshot(ds, (node("a"), node("b")), pods, ()), NOW).fleet
    assert fleet.state is state
    assert fleet.state.ends_watch == (state is RolloutState.STALLED)


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


# For each node: whether it exists, which pod it has, and for how long that is Ready.
PLACES = st.tuples(st.booleans(), st.sampled_from(["", "old", "target"]), st.booleans())
STEPS = st.lists(
    st.tuples(
        st.lists(PLACES, min_size=5, max_size=5), st.integers(0, 3), st.booleans(), st.booleans()
    ),
    min_size=2,
    max_size=5,
)


def snapshots(
    steps: list[tuple[list[tuple[bool, str, bool]], int, bool, bool]],
) -> Iterator[tuple[Snapshot, float]]:
    """One snapshot after the other, and when; what did not change is the same object."""
    target = target_of(sample())
    known: dict[object, Pod | Node] = {}
    for number, (places, partition, paused, blind) in enumerate(steps):
        ds = sample(
            strategy=UpdateStrategy(
                max_unavailable=IntOrPercent(2), partition=IntOrPercent(partition), paused=paused
            ),
            status=DaemonSetStatus(observed_generation=1),
        )
        nodes: list[Node] = []
        pods: list[Pod] = []
        for index, (exists, kind, ready) in enumerate(places):
            name = f"n{index}"
            if exists:
                found = known.setdefault(name, node(name))
                assert isinstance(found, Node)
                nodes.append(found)
            if kind:
                hash = target if kind == "target" else kind
                made = pod(name, hash, ready_for=900.0 if ready else None)
                here = known.setdefault((name, kind, ready), made)
                assert isinstance(here, Pod)
                pods.append(here)
        yield Snapshot(ds, None if blind else tuple(nodes), tuple(pods), ()), NOW + 40.0 * number


@given(STEPS)
def test_an_evaluator_that_saw_other_snapshots_says_the_same_as_a_new_one(
    steps: list[tuple[list[tuple[bool, str, bool]], int, bool, bool]],
) -> None:
    seasoned = Evaluator()
    for seen, now in snapshots(steps):
        again, anew = seasoned.evaluate(seen, now), evaluate(seen, now)
        assert again.fleet == anew.fleet
        assert again.assessments == anew.assessments


def test_a_label_of_a_node_that_changes_is_seen() -> None:
    ds, evaluator = sample(status=DaemonSetStatus(observed_generation=1)), Evaluator()
    here = (pod("n1", target_of(ds), ready_for=900.0),)
    for rack in ("a", "b"):
        labelled = Node(NodeMeta(name="n1", labels={"rack": rack}))
        [row] = evaluator.evaluate(Snapshot(ds, (labelled,), here, ()), NOW).fleet.rows
        assert row.labels == {"rack": rack}

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from everynode.api.daemonset import DaemonSetStatus
from everynode.api.objects import Condition
from everynode.dashboard.cells import (
    MAX_REASONS,
    CellState,
    cell_state,
    label_of,
    legend,
    state_of,
    with_reason,
)
from everynode.dashboard.model import (
    ModelCache,
    build_model,
    group_labels,
    set_summary,
    state_by_status,
)
from everynode.decide.fleet.conditions import FleetSummary, build_conditions, describe_fleet
from everynode.decide.node import reasons
from everynode.inspect.evaluate import Evaluator, evaluate
from everynode.inspect.fleet import NodeRow, NodeStanding, RolloutState
from tests.inspect.test_evaluate import STEPS, snapshots
from tests.support.samples import advanced, template


def row(standing: NodeStanding, **more: object) -> NodeRow:
    made = {"node": "n1", "pod": "agent-n1", "revision": "new"} | more
    return NodeRow(standing=standing, **made)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "more", "expected"),
    [
        (row(NodeStanding.NOT_ELIGIBLE), {"unreachable": True}, CellState.NOT_ELIGIBLE),
        (row(NodeStanding.UPDATED), {"unreachable": True}, CellState.UPDATED),
        (row(NodeStanding.QUEUED), {}, CellState.OLD),
        (row(NodeStanding.HELD), {}, CellState.HELD),
        (row(NodeStanding.HELD), {"unreachable": True}, CellState.UNREACHABLE),
        (row(NodeStanding.WAITING), {}, CellState.WAITING),
        (row(NodeStanding.WAITING), {"given_up": True}, CellState.SET_ASIDE),
        (row(NodeStanding.UPDATING, reason=reasons.STARTING), {}, CellState.STARTING),
        (row(NodeStanding.UPDATING, reason=reasons.TERMINATING), {}, CellState.TAKEN),
        (row(NodeStanding.UPDATING, revision="old"), {}, CellState.TAKEN),
        (row(NodeStanding.UPDATING, pod="", revision=""), {}, CellState.TAKEN),
    ],
)
def test_a_node_is_shown_as_it_stands(
    shown: NodeRow, more: dict[str, bool], expected: CellState
) -> None:
    assert cell_state(shown, "new", **more) is expected


def test_the_legend_explains_every_state() -> None:
    assert [each["state"] for each in legend()] == [int(state) for state in CellState]
    assert all(each["label"] and each["meaning"] for each in legend())


@pytest.mark.parametrize(("number", "kept"), [(1, 1), (15, 15), (99, MAX_REASONS)])
def test_a_byte_holds_the_state_and_the_number_of_the_reason(number: int, kept: int) -> None:
    byte = with_reason(CellState.WAITING, number)
    assert 0 < byte < 256
    assert (state_of(byte), byte >> 4, label_of(byte)) == (CellState.WAITING, kept, "waiting")


def test_labels_group_nodes_where_they_have_few_values() -> None:
    zone = "topology.kubernetes.io/zone"
    rows = [
        NodeRow(
            node=f"n{i}",
            standing=NodeStanding.UPDATED,
            labels={"host": f"n{i}", "same": "x"} | ({zone: f"z{i % 2}"} if i else {}),
        )
        for i in range(300)
    ]
    made = group_labels(rows)
    assert list(made) == [zone]
    assert made[zone]["values"] == ["z0", "z1"]
    assert made[zone]["of"][:4] == [-1, 1, 0, 1]


def test_groups_follow_a_label_that_changes() -> None:
    def rows(rack: str) -> list[NodeRow]:
        labels = ({"rack": rack}, {"rack": "b"})
        return [
            NodeRow(node=f"n{i}", standing=NodeStanding.UPDATED, labels=each)
            for i, each in enumerate(labels)
        ]

    cache = ModelCache()
    assert cache.labels(rows("a")) is cache.labels(rows("a"))
    assert cache.labels(rows("a"))["rack"]["values"] == ["a", "b"]
    assert cache.labels(rows("c"))["rack"]["values"] == ["b", "c"]


def conditions(**reason: str) -> tuple[Condition, ...]:
    return tuple(
        Condition(kind, "True" if why.startswith("+") else "False", why.lstrip("+"), f"{why} text")
        for kind, why in reason.items()
    )


@pytest.mark.parametrize(
    ("seen", "said", "expected"),
    [
        (0, conditions(), RolloutState.UNOBSERVED),
        (1, conditions(Complete="+Done"), RolloutState.COMPLETE),
        (1, conditions(Complete="R", Progressing="+RollingOut"), RolloutState.PROGRESSING),
        (1, conditions(Complete="P", Progressing="Paused"), RolloutState.PAUSED),
        (1, conditions(Complete="H", Progressing="Held"), RolloutState.HELD),
        (1, conditions(Complete="O", Progressing="OnDelete"), RolloutState.ON_DELETE),
        (1, conditions(Complete="I", Progressing="ImagePullBackOff"), RolloutState.WAITING),
        (
            1,
            conditions(Complete="I", Progressing="ImagePullBackOff", Stalled="+ImagePullBackOff"),
            RolloutState.STALLED,
        ),
        (
            1,
            conditions(Complete="N", Progressing="NodeNotReady", Ready="+AllButSilent"),
            RolloutState.ALL_BUT_SILENT,
        ),
        # What waits besides is excused: all is as declared.
        (1, conditions(Complete="N", Progressing="NodeNotReady", Ready="+Held"), RolloutState.HELD),
        (
            1,
            conditions(Complete="N", Progressing="NodeNotReady", Ready="+OnDelete"),
            RolloutState.ON_DELETE,
        ),
        (1, (), RolloutState.PROGRESSING),  # another controller, which writes no conditions
    ],
)
def test_the_list_shows_a_set_by_its_status(
    seen: int, said: tuple[Condition, ...], expected: RolloutState
) -> None:
    status = DaemonSetStatus(
        observed_generation=seen, desired=3, updated=1, available=2, conditions=said
    )
    ds = advanced(template(), status=status)
    assert state_by_status(ds) is expected
    summary = set_summary(ds)
    assert (summary["kind"], summary["state"], summary["updated"]) == ("ads", expected.value, 1)
    assert summary["message"]


def test_the_list_counts_as_updated_what_is_available_too() -> None:
    """As the page of the set does: a canary that crashes everywhere is no progress."""
    counts = FleetSummary(
        desired=9, done=1, available_any=6, max_unavailable=3, waiting={"Crash": ["a"]}
    )
    said = build_conditions(counts, describe_fleet(counts))
    crashing = DaemonSetStatus(
        observed_generation=1, desired=9, updated=4, available=6, conditions=said
    )
    shown = set_summary(advanced(template(), status=crashing))
    assert (shown["updated"], shown["desired"], shown["available"]) == (1, 9, 6)
    native = DaemonSetStatus(observed_generation=1, desired=9, updated=4, available=3)
    assert set_summary(advanced(template(), status=native))["updated"] == 3


def test_a_complete_set_with_nodes_that_wait_besides_says_so_in_the_list() -> None:
    for waiting, expected in (
        ({}, "All 2 nodes are updated and available."),
        (
            {"NodeNotReady": ["n"]},
            (
                "2 of 2 nodes are updated and available; "
                "besides them 1 node waits: 1 NodeNotReady (n)."
            ),
        ),
    ):
        counts = FleetSummary(
            desired=2, done=2, available_any=2, max_unavailable=1, waiting=waiting
        )
        said = build_conditions(counts, describe_fleet(counts))
        status = DaemonSetStatus(observed_generation=1, desired=2, updated=2, available=2)
        status = msgspec.structs.replace(status, conditions=said)
        shown = set_summary(advanced(template(), status=status))
        assert (shown["state"], shown["message"]) == ("complete", expected)


@given(STEPS)
def test_a_model_after_others_is_that_of_a_new_page(
    steps: list[tuple[list[tuple[bool, str, bool]], int, bool, bool]],
) -> None:
    evaluator, cache = Evaluator(), ModelCache()
    for seen, now in snapshots(steps):
        again = build_model(evaluator.evaluate(seen, now), [], now, cache=cache)
        assert again == build_model(evaluate(seen, now), [], now)

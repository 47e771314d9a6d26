from __future__ import annotations

from everynode.sim.explore.campaign import play_safely
from everynode.sim.explore.shrink import can_converge, shrink
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing

UPDATE = Action("set-image", at=8.31, args={"image": "agent:v2"})
NOISE = (
    Action("touch-as-alpha", at=3.2),
    Action("label-node", at=4.7, args={"node": 1, "labels": {"a": "b"}}),
    Action("cut-watch", at=5.1),
    Action("lose-answer", at_request=3),
)


def impatient() -> Plan:
    """A plan with too little time for an update that takes a minute per node."""
    slow = daemonset(rolling={"maxUnavailable": 1, "partition": 0}, min_ready=60)
    return Plan(
        7,
        nodes=3,
        manifests=(slow, daemonset("other")),
        timing=Timing(pull=0.0, start=3.0),
        controllers=2,
        actions=(*NOISE, UPDATE),
        quiet_at=30.0,
        patience=20.0,
        name="impatient",
    )


def test_only_what_is_needed_to_break_the_promise_stays() -> None:
    plan = impatient()
    assert play_safely(plan).violations[0].promise == "L1"
    small = shrink(plan, "L1")
    assert play_safely(small).violations[0].promise == "L1"
    assert (small.nodes, small.controllers, small.long_idle) == (1, 1, False)
    assert len(small.manifests) == 1
    assert small.manifests[0]["spec"]["updateStrategy"]["rollingUpdate"] == {}
    assert small.manifests[0]["spec"]["minReadySeconds"] == 60
    assert small.actions == () or small.actions[0].name == "set-image"
    assert small.timing == Timing()
    assert (small.seed, small.name, small.patience) == (7, "impatient", 20.0)


def test_the_number_of_plays_is_bounded() -> None:
    plays: list[int] = []
    shrink(impatient(), "L1", most=5, on_play=plays.append)
    assert plays == [1, 2, 3, 4, 5]


def test_a_plan_that_breaks_another_promise_stays_as_it_is() -> None:
    plan = Plan(1, nodes=1, manifests=(daemonset(),), actions=(), quiet_at=5.0)
    assert shrink(plan, "S2", most=10) == plan


def with_actions(*actions: Action, **rolling: object) -> Plan:
    return Plan(1, nodes=1, manifests=(daemonset(rolling=rolling),), actions=actions)


BAD = Action("set-image", at=5.0, args={"image": "agent:crash-loop"})
GOOD = Action("set-image", at=9.0, args={"image": "agent:v3"})
RELEASE = {"updateStrategy": {"rollingUpdate": {"partition": 0, "paused": False}}}


def test_a_version_that_cannot_work_must_be_mended() -> None:
    assert can_converge(with_actions(UPDATE))
    assert not can_converge(with_actions(BAD))
    assert can_converge(with_actions(BAD, GOOD))


def test_nodes_must_not_be_held_at_a_version_that_cannot_work() -> None:
    release = Action("apply", at=8.0, args={"spec": RELEASE})
    pause = {"updateStrategy": {"rollingUpdate": {"paused": True}}}
    paused = Action("apply", at=6.0, args={"spec": pause})
    assert not can_converge(with_actions(BAD, GOOD, partition=1))
    assert can_converge(with_actions(BAD, release, GOOD, partition=1))
    assert not can_converge(with_actions(BAD, paused, GOOD))
    assert can_converge(with_actions(BAD, paused, release, GOOD))

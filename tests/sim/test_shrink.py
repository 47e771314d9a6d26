from __future__ import annotations

from everynode.sim.campaign import judge
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan, Timing
from everynode.sim.shrink import is_fair, shrink

UPDATE = Happening("set-image", at=8.31, args={"image": "agent:v2"})
NOISE = (
    Happening("touch-as-alpha", at=3.2),
    Happening("label-node", at=4.7, args={"node": 1, "labels": {"a": "b"}}),
    Happening("cut-watch", at=5.1),
    Happening("lose-answer", call=3),
)


def impatient() -> Plan:
    """A world that is given too little time for an update that takes a minute on every node."""
    slow = daemonset(rolling={"maxUnavailable": 1, "partition": 0}, min_ready=60)
    return Plan(
        7,
        nodes=3,
        manifests=(slow, daemonset("other")),
        timing=Timing(pull=0.0, start=3.0),
        controllers=2,
        happenings=(*NOISE, UPDATE),
        quiet_at=30.0,
        patience=20.0,
        name="impatient",
    )


def test_only_what_is_needed_to_break_the_promise_stays() -> None:
    plan = impatient()
    assert judge(plan).breaches[0].promise == "L1"
    small = shrink(plan, "L1")
    assert judge(small).breaches[0].promise == "L1"
    assert (small.nodes, small.controllers, small.tail) == (1, 1, False)
    assert len(small.manifests) == 1
    assert small.manifests[0]["spec"]["updateStrategy"]["rollingUpdate"] == {}
    assert small.manifests[0]["spec"]["minReadySeconds"] == 60
    assert small.happenings == () or small.happenings[0].what == "set-image"
    assert small.timing == Timing()
    assert (small.seed, small.name, small.patience) == (7, "impatient", 20.0)


def test_the_number_of_plays_is_bounded() -> None:
    plays: list[int] = []
    shrink(impatient(), "L1", most=5, told=plays.append)
    assert plays == [1, 2, 3, 4, 5]


def test_a_plan_that_breaks_another_promise_stays_as_it_is() -> None:
    plan = Plan(1, nodes=1, manifests=(daemonset(),), happenings=(), quiet_at=5.0)
    assert shrink(plan, "S2", most=10) == plan


def with_happenings(*happenings: Happening, **rolling: object) -> Plan:
    return Plan(1, nodes=1, manifests=(daemonset(rolling=rolling),), happenings=happenings)


BAD = Happening("set-image", at=5.0, args={"image": "agent:crash-loop"})
GOOD = Happening("set-image", at=9.0, args={"image": "agent:v3"})
RELEASE = {"updateStrategy": {"rollingUpdate": {"partition": 0, "paused": False}}}


def test_a_version_that_cannot_work_must_be_mended() -> None:
    assert is_fair(with_happenings(UPDATE))
    assert not is_fair(with_happenings(BAD))
    assert is_fair(with_happenings(BAD, GOOD))


def test_nodes_must_not_be_held_at_a_version_that_cannot_work() -> None:
    release = Happening("apply", at=8.0, args={"spec": RELEASE})
    pause = {"updateStrategy": {"rollingUpdate": {"paused": True}}}
    paused = Happening("apply", at=6.0, args={"spec": pause})
    assert not is_fair(with_happenings(BAD, GOOD, partition=1))
    assert is_fair(with_happenings(BAD, release, GOOD, partition=1))
    assert not is_fair(with_happenings(BAD, paused, GOOD))
    assert is_fair(with_happenings(BAD, paused, release, GOOD))

"""No pod is taken on a node that has no room for its successor (R4)."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.api.daemonset import (
    DaemonSetStatus,
    Flavour,
    IntOrPercent,
    RollingUpdateType,
    UpdateStrategy,
)
from everynode.decide.actions import PatchPod
from everynode.decide.decision import Decision
from everynode.decide.ledger import Ledger
from everynode.decide.node.room import Room
from everynode.decide.plan import Plan
from everynode.decide.pods.build import build_pod
from everynode.decide.view import NodeView
from tests.support.fleet import (
    NEW,
    NOW,
    OLD,
    as_made,
    assessment_of,
    brief,
    make,
    node,
    pod,
    revision,
    said_of,
    see,
)

ONE = UpdateStrategy(max_unavailable=IntOrPercent(1))
SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))
IN_PLACE = UpdateStrategy(rolling=RollingUpdateType.IN_PLACE, max_unavailable=IntOrPercent(1))
FULL = "Insufficient cpu: 150m needed, 120m free"


def _containers(cpu: str, image: str = "agent:1") -> list[dict[str, Any]]:
    return [{"name": "agent", "image": image, "resources": {"requests": {"cpu": cpu}}}]


def _plan(strategy: UpdateStrategy = ONE, *, old: str = "100m", new: str = "150m") -> Plan:
    return make(
        strategy=strategy,
        old=revision(OLD, containers=_containers(old)),
        new=revision(NEW, containers=_containers(new, "agent:2")),
        flavour=Flavour.ADVANCED,
    )


def _room(name: str, *, free: int = 120, at: float = NOW, **more: Any) -> Room:
    """The room of a node: `free` is what is left once the old pod is gone."""
    return Room(
        NEW,
        at,
        requests={"cpu": 150},
        allocatable={"cpu": 1000, "pods": 10},
        used={"cpu": 1000 - free, "pods": 1},
        own={f"uid-agent-{name}-{OLD}": {"cpu": 100, "pods": 1}},
        **more,
    )


def _view(name: str, room: Room | None = None, **traits: Any) -> NodeView:
    return see(name, pod(OLD, on=name, **traits), room=room)


def _decide(ledger: Ledger, now: float = NOW) -> Decision:
    return ledger.decide(now, DaemonSetStatus(), check_rooms=True)


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("strategy", [ONE, SURGE])
def test_a_room_is_observed_before_a_pod_is_taken(strategy: UpdateStrategy, ready: bool) -> None:
    ledger = Ledger(_plan(strategy), [_view(name, ready=ready) for name in ("n1", "n2", "n3")])
    asked = _decide(ledger)
    assert asked.actions == ()
    assert asked.room_checks == ("n3",)  # as many as may be taken
    assert said_of(asked, "Progressing").status == "True"
    assert _decide(ledger).room_checks == ("n3",)  # until it is known
    ledger.observe(_view("n3", _room("n3", free=900), ready=ready))
    answered = _decide(ledger)
    assert [action.node for action in answered.actions] == ["n3"]
    assert answered.room_checks == ()


@pytest.mark.parametrize("strategy", [ONE, IN_PLACE])
def test_no_room_is_observed_where_requests_do_not_grow(strategy: UpdateStrategy) -> None:
    for new in ("100m", "50m"):
        decision = _decide(Ledger(_plan(strategy, new=new), [_view("n1")]))
        assert decision.room_checks == ()
        assert len(decision.actions) == 1


def test_with_surge_a_room_is_observed_although_requests_do_not_grow() -> None:
    decision = _decide(Ledger(_plan(SURGE, new="50m"), [_view("n1")]))
    assert (decision.actions, decision.room_checks) == ((), ("n1",))


def test_a_node_without_room_is_named_and_the_others_go_on() -> None:
    ledger = Ledger(_plan(), [_view("n1"), _view("n2"), _view("n3", _room("n3"))])
    decision = _decide(ledger)
    assert decision.room_checks == ("n2",)
    held = assessment_of(ledger, "n3")
    assert (held.reason.code, held.reason.text) == ("InsufficientResources", FULL)
    assert (held.counts.down, held.counts.not_started) == (0, 1)
    ledger.observe(_view("n2", _room("n2", free=150)))
    taken = _decide(ledger)
    assert brief(taken.actions) == ["delete n2 agent-n2-v1 Update"]
    waiting = "1 node waits: 1 InsufficientResources (n3)"
    assert said_of(taken, "Progressing").message.startswith(waiting)


def test_a_fleet_that_waits_for_room_alone_does_not_progress() -> None:
    decision = _decide(Ledger(_plan(), [_view("n1", _room("n1"))]))
    progressing = said_of(decision, "Progressing")
    assert (progressing.status, progressing.reason) == ("False", "InsufficientResources")
    assert said_of(decision, "Ready").reason == "Waiting"
    assert decision.wake_at == NOW + 10


def test_a_full_node_is_observed_again_after_a_while_and_still_named_meanwhile() -> None:
    ledger = Ledger(_plan(), [_view("n1", _room("n1"))])
    assert _decide(ledger, NOW + 9).room_checks == ()
    again = _decide(ledger, NOW + 10)
    assert (again.actions, again.room_checks) == ((), ("n1",))
    assert said_of(again, "Progressing").reason == "InsufficientResources"
    ledger.observe(_view("n1", _room("n1", free=150, at=NOW + 10, attempt=2)))
    assert len(_decide(ledger, NOW + 11).actions) == 1


def test_nodes_that_had_no_room_are_observed_again_after_the_others() -> None:
    late = NOW + 10
    ledger = Ledger(_plan(), [_view("n1"), _view("n2", _room("n2")), _view("n3", _room("n3"))])
    assert _decide(ledger, late).room_checks == ("n1",)
    ledger.observe(_view("n1", _room("n1", at=late)))
    assert _decide(ledger, late).room_checks == ("n3",)


def test_a_sick_pod_is_not_taken_either_where_its_successor_has_no_room() -> None:
    ledger = Ledger(_plan(), [_view("n1", _room("n1"), ready=False)])
    assert _decide(ledger).actions == ()
    assert assessment_of(ledger, "n1").reason.code == "InsufficientResources"


def test_a_pod_of_an_unknown_revision_counts_as_a_smaller_one() -> None:
    stray = see("n1", pod("v9", on="n1"))
    assert _decide(Ledger(_plan(new="50m"), [stray])).room_checks == ("n1",)
    bare = make(strategy=ONE, flavour=Flavour.ADVANCED)
    assert _decide(Ledger(bare, [stray])).room_checks == ()


def test_a_pod_that_is_resized_in_place_needs_no_room_here() -> None:
    resized = make(
        strategy=IN_PLACE,
        old=revision(OLD, containers=_containers("100m")),
        new=revision(NEW, containers=_containers("150m")),
        flavour=Flavour.ADVANCED,
    )
    body = build_pod(resized.ds, resized.revisions[OLD], "n1")
    old = as_made(pod(OLD), body["spec"])
    decision = _decide(Ledger(resized, [see("n1", old)]))
    assert decision.room_checks == ()
    assert [type(action) for action in decision.actions] == [PatchPod]
    refused = see("n1", old, unresizable=(old.uid, OLD))
    assert _decide(Ledger(resized, [refused])).room_checks == ("n1",)


def test_a_room_that_cannot_be_observed_stops_no_update() -> None:
    unknown = Room(NEW, NOW, unknown=True)
    assert len(_decide(Ledger(_plan(), [_view("n1", unknown)])).actions) == 1


def test_nodes_that_are_set_aside_are_not_observed() -> None:
    silent = see(node("n1", ready="Unknown"), pod(OLD))
    assert _decide(Ledger(_plan(), [silent])).room_checks == ()


def test_a_ledger_that_is_built_anew_decides_the_same() -> None:
    views = [_view("n1"), _view("n2", _room("n2", free=200)), _view("n3", _room("n3"))]
    kept = Ledger(_plan(), [_view(name) for name in ("n1", "n2", "n3")])
    _decide(kept)
    for view in views:
        kept.observe(view)
    fresh = Ledger(_plan(), views)
    assert _decide(kept) == _decide(fresh)

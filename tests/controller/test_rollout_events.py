"""Each turn of a rollout is reported once, and none is repeated after a restart."""

from __future__ import annotations

import msgspec

from everynode.api.daemonset import (
    DaemonSetStatus,
    IntOrPercent,
    UpdateStrategy,
    UpdateStrategyType,
)
from everynode.api.objects import Condition
from everynode.controller.rollout_events import (
    Canary,
    ReportedRollout,
    find_canary,
    report_rollout,
    stored_rollout,
)
from tests.support.fleet import make

DS = make().ds


def status(*conditions: tuple[str, bool, str], target: str = "") -> DaemonSetStatus:
    made = tuple(
        Condition(kind, "True" if holds else "False", reason, f"about {reason}")
        for kind, holds, reason in conditions
    )
    return DaemonSetStatus(
        observed_generation=1, desired=4, conditions=made, update_revision=target
    )


ROLLING = status(("Progressing", True, "RollingOut"), ("Complete", False, "RollingOut"))
DONE = status(("Progressing", True, "NewRevisionAvailable"), ("Complete", True, "AllNodesUpdated"))
PAUSED = status(("Paused", True, "Paused"), ("Complete", False, "Paused"))
HELD = status(("Ready", True, "Held"), ("Complete", False, "Held"))
WAITING = status(("Progressing", False, "ImagePullBackOff"), ("Stalled", False, "NotStalled"))
STALLED = status(("Progressing", False, "ImagePullBackOff"), ("Stalled", True, "ImagePullBackOff"))


def play(
    *steps: tuple[str, DaemonSetStatus],
    before: ReportedRollout | None = None,
) -> list[str]:
    """The reasons of the events, in order."""
    known, reasons = before or ReportedRollout(""), []
    for target, now in steps:
        known, notices = report_rollout(known, target, now)
        reasons += [each.reason for each in notices]
    return reasons


def test_a_rollout_starts_and_completes_once() -> None:
    steps = (("v1", ROLLING), ("v1", ROLLING), ("v1", DONE), ("v1", DONE))
    assert play(*steps) == ["RolloutStarted", "RolloutComplete"]


def test_a_pod_that_dies_after_the_rollout_starts_none() -> None:
    assert play(("v1", DONE), ("v1", ROLLING), ("v1", DONE)) == [
        "RolloutStarted",
        "RolloutComplete",
    ]


def test_a_newer_template_aborts_a_rollout_and_not_a_complete_one() -> None:
    assert play(("v1", ROLLING), ("v2", ROLLING)) == [
        "RolloutStarted",
        "RolloutAborted",
        "RolloutStarted",
    ]
    after = ReportedRollout("v1", complete=True)
    assert play(("v2", ROLLING), before=after) == ["RolloutStarted"]


def test_pause_and_hold_are_reported_when_they_begin() -> None:
    begun = ReportedRollout("v1")
    steps = (("v1", PAUSED), ("v1", PAUSED), ("v1", ROLLING), ("v1", HELD), ("v1", HELD))
    assert play(*steps, before=begun) == ["RolloutPaused", "RolloutResumed", "RolloutHeld"]
    assert play(("v1", PAUSED), before=ReportedRollout("v1", complete=True)) == []


def test_stuck_is_reported_once_for_each_reason() -> None:
    begun = ReportedRollout("v1")
    steps = (("v1", WAITING), ("v1", STALLED), ("v1", ROLLING), ("v1", STALLED))
    assert play(*steps, before=begun) == ["RolloutStuck"]
    other = status(("Stalled", True, "Unschedulable"))
    assert play(("v1", STALLED), ("v1", other), before=begun) == ["RolloutStuck"] * 2
    _, (notice,) = report_rollout(begun, "v1", STALLED)
    assert notice.message == "ImagePullBackOff: about ImagePullBackOff"


def grown(before: Canary | None, after: Canary | None, now: DaemonSetStatus = HELD) -> list[str]:
    known = ReportedRollout("v1", standing="Held", canary=before)
    reported, notices = report_rollout(known, "v1", now, after)
    assert reported.canary == after
    return [each.reason for each in notices if each.reason == "CanaryGrew"]


def test_a_canary_that_nodes_let_grow_is_reported() -> None:
    canary = Canary(partition=4, desired=6, released=2)
    assert grown(canary, Canary(4, 7, 3)) == ["CanaryGrew"]
    assert grown(canary, Canary(4, 6, 2)) == []
    assert grown(canary, Canary(4, 7, 2)) == []  # the selector does not select the new node
    assert grown(canary, Canary(3, 7, 4)) == []  # the user lowered the partition
    assert grown(canary, Canary(4, 6, 3)) == []  # the user labelled one more node
    assert grown(canary, None) == grown(None, canary) == []
    assert grown(canary, Canary(4, 7, 3), DONE) == []


def test_only_a_number_of_nodes_makes_a_canary_that_grows() -> None:
    four = UpdateStrategy(partition=IntOrPercent(4))
    assert find_canary(four, desired=6, held=4) == Canary(4, 6, 2)
    for other in (
        UpdateStrategy(),
        UpdateStrategy(partition=IntOrPercent(60, percent=True)),
        msgspec.structs.replace(four, paused=True),
        msgspec.structs.replace(four, type=UpdateStrategyType.ON_DELETE),
    ):
        assert find_canary(other, desired=6, held=4) is None


def test_a_canary_that_grew_while_no_controller_ran_is_reported() -> None:
    strategy = UpdateStrategy(partition=IntOrPercent(3))
    ds = msgspec.structs.replace(DS, strategy=strategy)
    held = msgspec.structs.replace(
        HELD, updated=1, observed_generation=ds.metadata.generation, update_revision="v1"
    )
    known = stored_rollout(msgspec.structs.replace(ds, status=held), "v1", completed=False)
    assert known.canary == Canary(partition=3, desired=4, released=1)
    older = msgspec.structs.replace(held, observed_generation=ds.metadata.generation - 1)
    known = stored_rollout(msgspec.structs.replace(ds, status=older), "v1", completed=False)
    assert known.canary is None


def test_a_controller_that_starts_repeats_nothing() -> None:
    for stored in (ROLLING, DONE, PAUSED, HELD, STALLED):
        ds = msgspec.structs.replace(DS, status=stored)
        known = stored_rollout(ds, "v1", completed=False)
        assert play(("v1", stored), before=known) == []


def test_a_template_that_changed_while_no_controller_ran_is_a_new_rollout() -> None:
    stored = msgspec.structs.replace(DONE, update_revision="v1")
    ds = msgspec.structs.replace(DS, status=stored)
    known = stored_rollout(ds, "v2", completed=False)
    assert play(("v2", ROLLING), before=known) == ["RolloutStarted"]

from __future__ import annotations

import msgspec

from everynode.api.daemonset import DaemonSetStatus
from everynode.api.objects import Condition, Node
from everynode.controller.pending_writes import WriteStage
from everynode.controller.scheduling import DEFER_DELAY
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import Cause, CreatePod, DeletePod
from everynode.decide.ledger import Ledger
from tests.support.fleet import NEW, OLD, at, make, node, pod

NOW = 1000.0


def state(*nodes: str) -> tuple[DaemonSetState, dict[str, Node]]:
    known = {name: node(name) for name in nodes}
    plan = make()
    made = DaemonSetState(plan.ds, known)
    made.ledger = Ledger(plan)
    made.evaluate_all()
    return made, known


def create(on: str = "n1") -> CreatePod:
    return CreatePod(on, NEW, f"agent-{on}", {}, Cause.MISSING)


def test_pods_are_known_by_node_and_counted_by_the_revision_they_carry() -> None:
    made, _ = state("n1", "n2")
    old, new = pod(OLD, on="n1"), pod(NEW, on="n2")
    made.pod_changed(None, old)
    made.pod_changed(None, new)
    assert made.pods_on("n1") == (old,)
    assert dict(made.revision_counts) == {OLD: 1, NEW: 1}
    made.pod_changed(old, None)
    assert dict(made.revision_counts) == {NEW: 1}
    assert made.pods() == [new]


def test_a_view_shows_the_node_its_pods_and_the_write_under_way() -> None:
    made, known = state("n1")
    old = pod(OLD, on="n1")
    made.pod_changed(None, old)
    made.begin_write(create(), NOW)
    view = made.view("n1")
    assert (view.node, view.pods, len(view.writes)) == (known["n1"], (old,), 1)


def test_that_a_deleted_pod_was_sick_is_known_until_its_successor_is_seen() -> None:
    made, _ = state("n1")
    old = pod(OLD, on="n1")
    made.pod_changed(None, old)
    for sick in (False, True):
        delete = DeletePod("n1", old.name, old.uid, "1", Cause.UPDATE, sick=sick)
        write = made.begin_write(delete, NOW)
        made.pod_changed(old, None)
        made.refresh_ledger(0, NOW)
        assert made.view("n1").emptied_sick is sick
        made.pod_changed(None, old)
        assert not made.view("n1").emptied_sick
        # The answer may come after the events of the pod and of its successor.
        made.write_committed("n1", write, uid=old.uid, version=9, now=NOW)
        assert not made.view("n1").emptied_sick


def test_a_refused_write_is_tried_again_later_and_later() -> None:
    made, _ = state("n1")
    delays = []
    for _ in range(12):
        write = made.begin_write(create(), NOW)
        made.write_refused("n1", write, message="quota", now=NOW)
        delays.append(made.refusals["n1"].retry_at - NOW)
    assert delays[:3] == [0.5, 1.0, 2.0]
    assert delays[-1] == 300.0
    assert made.view("n1").trouble == "quota"
    assert "n1" not in made.writes


def test_a_conflict_is_retried_at_once_and_is_not_reported() -> None:
    made, _ = state("n1")
    made.write_refused("n1", made.begin_write(create(), NOW), message="", now=NOW)
    assert made.refusals["n1"].retry_at == NOW + 0.05
    assert made.view("n1").trouble == ""


def test_creates_start_slowly_double_with_success_and_fall_back_with_a_refusal() -> None:
    made, _ = state("n1")
    limits = [made.create_limit]
    for version in range(3):
        write = made.begin_write(create(), NOW)
        made.write_committed("n1", write, uid="u", version=version, now=NOW)
        limits.append(made.create_limit)
    made.write_refused("n1", made.begin_write(create(), NOW), message="quota", now=NOW)
    assert [*limits, made.create_limit] == [1, 2, 4, 8, 1]


def test_a_write_that_is_seen_is_forgotten_and_one_that_is_not_stays() -> None:
    made, _ = state("n1", "n2")
    new = pod(NEW, on="n1")
    for name, uid in (("n1", new.uid), ("n2", "not-seen")):
        made.write_committed(name, made.begin_write(create(name), NOW), uid=uid, version=9, now=NOW)
    made.pod_changed(None, new)
    made.refresh_ledger(5, NOW + DEFER_DELAY)
    assert list(made.writes) == ["n2"]


def shown(made: DaemonSetState, now: float) -> tuple[str, ...]:
    """The uids of the pods on n1 that the ledger goes by after a look at that time."""
    assert made.ledger is not None
    made.refresh_ledger(0, now)
    made.ledger.decide(now, made.ds.status)
    return tuple(each.uid for each in made.ledger._views["n1"].pods)


def test_an_own_new_pod_is_reconciled_together_with_other_changes() -> None:
    made, _ = state("n1")
    shown(made, NOW)
    made.begin_write(create(), NOW)
    new = pod(NEW, on="n1", ready=False)
    made.pod_changed(None, new)
    assert (shown(made, NOW), shown(made, NOW + DEFER_DELAY)) == ((), (new.uid,))


def test_a_pod_that_becomes_ready_or_is_removed_is_reconciled_at_once() -> None:
    made, _ = state("n1")
    made.begin_write(create(), NOW)
    made.pod_changed(None, pod(NEW, on="n1", ready=False))
    ready = pod(NEW, on="n1")
    made.pod_changed(pod(NEW, on="n1", ready=False), ready)
    seen = shown(made, NOW)
    made.pod_changed(ready, None)
    assert (seen, shown(made, NOW)) == ((ready.uid,), ())


def test_a_pod_that_fails_is_evaluated_with_the_next_reconcile() -> None:
    made, _ = state("n1")
    before, after = pod(OLD, on="n1"), pod(OLD, on="n1", ready=False)
    made.pod_changed(None, before)
    shown(made, NOW)
    made.pod_changed(before, after)
    shown(made, NOW)
    assert made.ledger is not None
    assert made.ledger.sums.available == 0


def test_an_old_pod_that_fails_beside_a_new_one_is_looked_at_with_the_next_decision() -> None:
    made, _ = state("n1")
    before, after = pod(OLD, on="n1"), pod(OLD, on="n1", ready=False)
    made.pod_changed(None, before)
    made.begin_write(create(), NOW)
    made.pod_changed(before, after)
    shown(made, NOW)
    assert made.ledger is not None
    assert made.ledger.sums.available == 0


def test_that_a_pod_of_ours_ends_is_no_news_until_it_is_gone() -> None:
    made, _ = state("n1")
    old, ending = pod(OLD, on="n1"), pod(OLD, on="n1", deleting=NOW)
    made.pod_changed(None, old)
    shown(made, NOW)
    made.begin_write(DeletePod("n1", old.name, old.uid, "1", Cause.UPDATE), NOW)
    made.pod_changed(old, ending)
    shown(made, NOW)
    unseen = list(made.writes)
    made.pod_changed(ending, None)
    assert (unseen, shown(made, NOW), list(made.writes)) == (["n1"], (), [])


def test_unseen_writes_are_overdue_after_a_while_and_only_then() -> None:
    made, _ = state("n1", "n2")
    unknown = made.begin_write(create("n1"), NOW)
    made.write_outcome_unknown("n1", unknown, now=NOW)
    made.begin_write(create("n2"), NOW)  # still on its way: its answer will come
    assert made.overdue_writes(NOW + 4) == []
    assert made.overdue_writes(NOW + 6) == [("n1", unknown)]
    assert unknown.stage is WriteStage.UNKNOWN


def test_writes_that_wait_are_decided_again_when_the_spec_changes() -> None:
    made, _ = state("n1", "n2", "n3")
    made.begin_write(create("n1"), NOW)
    sent = made.begin_write(create("n2"), NOW)
    assert made.start_write("n2", NOW) is sent
    shown(made, NOW)
    paused = msgspec.structs.replace(
        made.ds, metadata=msgspec.structs.replace(made.ds.metadata, generation=99)
    )
    made.daemonset_changed(paused)
    assert list(made.writes) == ["n2"]
    assert made.start_write("n1", NOW) is None


def test_a_write_that_waited_for_long_is_decided_again() -> None:
    made, _ = state("n1")
    made.begin_write(create("n1"), NOW)
    assert made.start_write("n1", NOW + 1.5) is None
    assert made.writes == {}


def test_a_write_is_sent_once() -> None:
    made, _ = state("n1")
    made.begin_write(create("n1"), NOW)
    assert made.start_write("n1", NOW) is not None
    assert made.start_write("n1", NOW) is None


def test_a_pending_write_is_read_again_only_after_the_same_delay() -> None:
    made, _ = state("n1")
    unknown = made.begin_write(create("n1"), NOW)
    made.write_outcome_unknown("n1", unknown, now=NOW)
    assert made.overdue_writes(NOW + 6) == [("n1", unknown)]
    assert made.overdue_writes(NOW + 10) == []
    assert made.overdue_writes(NOW + 12) == [("n1", unknown)]


def test_many_lost_writes_are_read_live_a_few_at_a_time() -> None:
    names = [f"n{number:02d}" for number in range(25)]
    made, _ = state(*names)
    for name in names:
        made.write_outcome_unknown(name, made.begin_write(create(name), NOW), now=NOW)
    found = [
        [node for node, _ in made.overdue_writes(NOW + 6 + pause)] for pause in (0, 0.1, 1, 2, 3)
    ]
    assert found == [names[:10], [], names[10:20], names[20:], []]


def test_a_node_that_vanished_with_its_pods_is_forgotten() -> None:
    made, known = state("n1", "n2")
    made.refresh_ledger(0, NOW)
    assert made.ledger is not None
    made.ledger.decide(NOW, made.ds.status)
    del known["n2"]
    made.node_changed("n2")
    made.refresh_ledger(0, NOW)
    made.ledger.decide(NOW, made.ds.status)
    assert [each.name for each in made.ledger.assessments()] == ["n1"]


def test_the_last_pod_of_an_empty_node_is_known() -> None:
    made, _ = state("n1")
    old, new = pod(OLD, on="n1"), pod(NEW, on="n1")
    made.pod_changed(None, old)
    made.pod_changed(None, new)
    made.pod_changed(old, None)
    assert made.view("n1").last_pod is None
    made.pod_changed(new, None)
    assert made.view("n1").last_pod == new
    made.pod_changed(None, old)
    assert made.view("n1").last_pod is None


def test_the_last_pod_is_forgotten_with_its_node() -> None:
    made, known = state("n1")
    old = pod(OLD, on="n1")
    made.pod_changed(None, old)
    made.pod_changed(old, None)
    replaced = msgspec.structs.replace(known["n1"].metadata, uid="another")
    known["n1"] = msgspec.structs.replace(known["n1"], metadata=replaced)
    assert made.view("n1").last_pod is None
    there = known.pop("n1")
    made.node_changed("n1")
    made.refresh_ledger(0, NOW)
    known["n1"] = there
    assert made.view("n1").last_pod is None


def test_a_pod_that_is_gone_again_and_again_is_created_later_and_later() -> None:
    made, _ = state("n1")
    now, pauses = NOW, []
    for version in range(9):
        made.write_committed(
            "n1", made.begin_write(create(), now), uid="u", version=version, now=now
        )
        pauses.append(max(0.0, made.view("n1").retry_at - now))
        now += pauses[-1] + 0.1
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_pod_that_lasted_is_created_again_at_once() -> None:
    made, _ = state("n1")
    for now in (NOW, NOW + 60.0, NOW + 120.0):
        made.write_committed("n1", made.begin_write(create(), now), uid="u", version=1, now=now)
        assert made.view("n1").retry_at <= now


def test_nothing_is_read_live_once_every_write_is_seen() -> None:
    made, _ = state("n1")
    write = made.begin_write(create(), NOW)
    made.write_committed("n1", write, uid="made", version=7, now=NOW)
    made.refresh_ledger(6, NOW + DEFER_DELAY)
    assert made.verify_at is not None
    made.node_changed("n1")
    made.refresh_ledger(7, NOW + DEFER_DELAY)
    assert made.verify_at is None


# --- Clocks that are wrong ---------------------------------------------------------------------

HOUR = 3600.0
THEN = 1_700_000_000.0


def patient(*nodes: str) -> DaemonSetState:
    """A set whose pods must be Ready for ten seconds."""
    plan = make(min_ready_seconds=10)
    made = DaemonSetState(plan.ds, {name: node(name) for name in nodes})
    made.ledger = Ledger(plan)
    made.evaluate_all()
    return made


def available(made: DaemonSetState, now: float) -> int:
    assert made.ledger is not None
    made.refresh_ledger(1, now)
    return made.ledger.decide(now, DaemonSetStatus()).status.available


def test_a_ready_time_in_the_future_counts_from_when_it_was_seen() -> None:
    made = patient("n1")
    made.pod_changed(None, pod(NEW, on="n1", since=THEN + HOUR, created=THEN - 60))
    assert available(made, THEN) == 0
    assert made.take_unreported_ahead() == {"n1": HOUR}
    assert available(made, THEN + 9) == 0
    assert available(made, THEN + 10) == 1
    # Nor does it begin anew when that time comes.
    made.node_changed("n1")
    assert available(made, THEN + HOUR + 1) == 1


def test_a_pod_that_is_ready_anew_waits_anew_though_its_clock_is_ahead() -> None:
    made = patient("n1")
    first = pod(NEW, on="n1", since=THEN + HOUR, created=THEN - 60)
    made.pod_changed(None, first)
    assert (available(made, THEN), available(made, THEN + 10)) == (0, 1)
    again = pod(NEW, on="n1", since=THEN + HOUR + 20, created=THEN - 60)
    made.pod_changed(first, again)
    assert [available(made, THEN + passed) for passed in (20, 29, 30)] == [0, 0, 1]


def test_another_time_in_the_future_does_not_make_a_pod_available_early() -> None:
    made = patient("n1")
    far = Condition("PodScheduled", "True", last_transition_time=at(THEN + HOUR))
    waiting = pod(NEW, on="n1", ready=False, since=THEN - 50, created=THEN - 60, conditions=(far,))
    made.pod_changed(None, waiting)
    assert available(made, THEN) == 0
    ready = pod(NEW, on="n1", since=THEN + 100, created=THEN - 60, conditions=(far,))
    made.pod_changed(waiting, ready)
    assert [available(made, THEN + passed) for passed in (100, 109, 110)] == [0, 0, 1]


def test_what_waits_for_our_clock_waits_no_longer_when_it_is_set_back() -> None:
    made = patient("n1", "n2", "n3")
    made.pod_changed(None, pod(NEW, on="n1", since=THEN - 4, created=THEN - 60))
    made.pod_changed(None, pod(NEW, on="n2", since=THEN - 400, created=THEN - 600))
    made.write_refused("n3", made.begin_write(create("n3"), THEN), message="quota", now=THEN)
    assert available(made, THEN) == 1
    made.clock_set_back(HOUR, THEN - HOUR)
    assert available(made, THEN - HOUR) == 1  # the one that was available is so still
    assert available(made, THEN - HOUR + 5) == 1
    assert available(made, THEN - HOUR + 6) == 2
    assert made.refusals["n3"].retry_at == THEN - HOUR + 0.5


def test_a_pod_that_ended_in_the_future_is_replaced_after_the_normal_pause() -> None:
    made = patient("n1")
    failed = pod(
        NEW, on="n1", phase="Failed", ended=THEN + HOUR, created=THEN - 60, failures="3@v2"
    )
    made.pod_changed(None, failed)
    assert made.ledger is not None
    created = []
    for passed in (0, 7, 8):
        made.refresh_ledger(1, THEN + passed)
        made.node_changed("n1")
        created.append(len(made.ledger.decide(THEN + passed, DaemonSetStatus()).actions))
    assert created == [0, 0, 1]


def test_a_time_that_a_pod_no_longer_carries_is_forgotten() -> None:
    made = patient("n1")
    first = pod(NEW, on="n1", since=THEN + HOUR, created=THEN - 60)
    made.pod_changed(None, first)
    available(made, THEN)
    assert made.view("n1").ahead == ((THEN + HOUR, THEN),)
    made.pod_changed(first, pod(NEW, on="n1", since=THEN, created=THEN - 60))
    available(made, THEN)
    assert made.view("n1").ahead == ()


def test_a_clock_that_is_set_right_makes_no_pod_available_early() -> None:
    made = patient("n1")
    made.pod_changed(None, pod(NEW, on="n1", since=THEN + 5, created=THEN - 60))
    assert available(made, THEN) == 0
    made.clock_set_forward(5)
    assert [available(made, THEN + passed) for passed in (5, 14, 15)] == [0, 0, 1]

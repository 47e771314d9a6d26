from __future__ import annotations

import msgspec

from everynode.api.daemonset import LabelSelector, UpdateStrategy, UpdateStrategyType
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Queue
from everynode.decide.node.evaluate import target_facts
from everynode.decide.view import NodeView, OwnWrite, WriteKind
from tests.support.fleet import (
    GPU,
    NEW,
    NOW,
    OLD,
    assess,
    make,
    node,
    pod,
    revision,
    see,
    stands,
)

DELETE = OwnWrite(WriteKind.DELETE, uid="uid-agent-n1-v1")
CREATE = OwnWrite(WriteKind.CREATE, revision=NEW)


# --- How a node stands -------------------------------------------------------------------------


def test_a_node_holds_the_target_with_any_pod_of_it() -> None:
    plan = make()
    for held in (pod(NEW), pod(NEW, deleting=NOW), pod(NEW, phase="Failed")):
        assert stands(plan, see("n1", pod(OLD), held))[0]
    assert not stands(plan, see("n1", pod(OLD)))[0]


def test_an_own_create_that_is_not_seen_counts_as_if_it_were_there() -> None:
    assert stands(make(), see("n1", writes=(CREATE,)))[0]
    other = OwnWrite(WriteKind.CREATE, revision=OLD)
    assert not stands(make(), see("n1", writes=(other,)))[0]


def test_a_node_is_wanted_by_the_target_and_selected_by_its_labels() -> None:
    plan = make(strategy=UpdateStrategy(selector=LabelSelector({"canary": "yes"})))
    assert stands(plan, see("n1")) == (False, True, False)
    canary = node("n1", labels={"canary": "yes"}, taints=(GPU,))
    assert stands(plan, see(canary)) == (False, False, True)


def test_a_node_that_does_not_exist_stands_for_nothing() -> None:
    found = target_facts(make(), NodeView("n1", None, (pod(NEW),)))
    assert (found.holds_target, found.eligibility.should_run, found.selected) == (
        False,
        False,
        False,
    )


# --- Own writes --------------------------------------------------------------------------------


def test_a_node_with_an_unseen_write_is_left_alone() -> None:
    for view in (see("n1", writes=(CREATE,)), see("n1", pod(OLD), writes=(DELETE,))):
        made = assess(make(), view)
        assert (made.queue, made.steps, made.reason.code) == (Queue.NONE, (), reasons.WRITING)


def test_a_pod_we_have_deleted_counts_as_gone_at_once() -> None:
    made = assess(make(), see("n1", pod(OLD), writes=(DELETE,)))
    assert (made.counts.down, made.counts.under_way, made.counts.changing) == (1, 1, 1)
    assert made.counts.available == 1  # the status says what is seen


def test_a_pod_we_have_created_is_not_available_yet() -> None:
    made = assess(make(), see("n1", writes=(CREATE,)))
    assert (made.counts.down, made.counts.under_way, made.counts.creating) == (1, 1, 1)


def test_after_a_refusal_nothing_is_tried_before_its_time() -> None:
    view = see("n1", retry_at=NOW + 7, trouble="pods is forbidden: exceeded quota")
    made = assess(make(), view)
    assert (made.queue, made.wake_at) == (Queue.NONE, NOW + 7)
    assert made.reason == reasons.Reason(reasons.REFUSED, "pods is forbidden: exceeded quota")
    later = assess(make(), view, now=NOW + 7)
    assert (later.queue, later.reason.code) == (Queue.CREATE, reasons.REFUSED)


def test_trouble_is_forgotten_where_nothing_is_wanted_any_more() -> None:
    made = assess(make(), see("n1", pod(NEW), trouble="pods is forbidden"))
    assert made.reason.code == reasons.DONE


def test_trouble_is_forgotten_at_once_where_the_node_is_held_now() -> None:
    view = see("n1", pod(OLD), retry_at=NOW + 60, trouble="pods is forbidden")
    made = assess(make(), view, in_scope=False)
    assert (made.reason.code, made.wake_at) == (reasons.HELD, NOW + 60)


def test_trouble_is_forgotten_where_the_node_is_gone_and_its_pod_is_left_to_others() -> None:
    bound = NodeView("n1", None, (pod(OLD),), retry_at=NOW + 60, trouble="pods is forbidden")
    assert assess(make(), bound).reason.code == reasons.NOT_ELIGIBLE
    waiting = msgspec.structs.replace(bound, pods=(pod(OLD, scheduled=False),))
    assert assess(make(), waiting).reason.code == reasons.REFUSED


def test_trouble_stays_while_the_next_attempt_is_under_way() -> None:
    made = assess(make(), see("n1", writes=(CREATE,), trouble="pods is forbidden"))
    assert made.reason.code == reasons.REFUSED


# --- Reasons -----------------------------------------------------------------------------------


def test_an_updated_node_needs_nothing() -> None:
    made = assess(make(), see("n1", pod(NEW)))
    assert (made.queue, made.reason.code, made.wake_at) == (Queue.NONE, reasons.DONE, None)


def test_an_unfit_node_says_why() -> None:
    made = assess(make(), see(node("n1", taints=(GPU,))))
    assert made.reason.code == reasons.NOT_ELIGIBLE
    assert made.reason.text == "taint gpu=true:NoSchedule is not tolerated"


def test_a_held_node_says_what_it_is_held_at() -> None:
    made = assess(make(), see("n1", pod(OLD)), in_scope=False)
    assert (made.reason.code, made.reason.text) == (reasons.HELD, "held at revision v1")
    assert made.revision == OLD


def test_a_held_node_whose_pod_is_broken_says_that() -> None:
    made = assess(make(), see("n1", pod(OLD, waiting="CrashLoopBackOff")), in_scope=False)
    assert made.reason.code == "CrashLoopBackOff"


def test_a_ready_old_pod_waits_for_its_turn() -> None:
    made = assess(make(), see("n1", pod(OLD)))
    assert (made.queue, made.reason.code) == (Queue.UPDATE_READY, reasons.TURN)


def test_with_on_delete_an_old_pod_waits_for_its_deletion() -> None:
    plan = make(strategy=UpdateStrategy(type=UpdateStrategyType.ON_DELETE))
    assert assess(plan, see("n1", pod(OLD))).reason.code == reasons.ON_DELETE


def test_a_pod_that_starts_too_long_is_named() -> None:
    young = see("n1", pod(NEW, waiting="ContainerCreating", created=NOW - 10))
    made = assess(make(), young)
    assert made.reason.code == reasons.STARTING
    assert made.wake_at == NOW + 290
    assert assess(make(), young, now=NOW + 290).reason.code == reasons.NOT_STARTING


def test_what_is_malformed_is_said_and_stops_nothing() -> None:
    made = assess(make(), see("n1", pod(NEW, failures="seven")))
    assert made.reason.code == reasons.DONE
    assert made.reason.text == "annotation everynode.io/failures is invalid: seven"
    noted = pod(OLD)
    annotations = msgspec.structs.replace(noted.metadata.annotations, inplace_state="{")
    meta = msgspec.structs.replace(noted.metadata, annotations=annotations)
    made = assess(make(), see("n1", msgspec.structs.replace(noted, metadata=meta)))
    assert made.queue is Queue.UPDATE_READY
    assert "cannot be read and is ignored" in made.reason.text


def test_a_template_that_cannot_be_read_leaves_its_pods_alone() -> None:
    plan = make(new=revision(NEW, template=b'{"spec": 1}'))
    for view in (see("n1"), see("n1", pod(NEW)), see("n1", pod(OLD))):
        assert assess(plan, view).steps == ()
    assert assess(plan, see("n1")).reason.text.startswith("the template cannot be read")


def test_a_pod_of_a_revision_that_is_lost_is_held_as_it_is() -> None:
    made = assess(make(), see("n1", pod("lost")), in_scope=False)
    assert (made.revision, made.steps) == (OLD, ())

from __future__ import annotations

from everynode.controller.writes import SETTLE_AFTER, SHOWN_AFTER, Stage, Write, parse_version
from everynode.decide.actions import Because, CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.view import Pending
from tests.decide.fleet import NEW, pod

CREATE = CreatePod("n1", NEW, "agent-new", {}, Because.MISSING)


def write(action: PodAction, stage: Stage = Stage.SENT, uid: str = "", version: int = 0) -> Write:
    return Write(action, since=100.0, stage=stage, uid=uid, version=version)


def test_a_create_is_seen_when_the_pod_is_in_the_cache() -> None:
    made = pod(NEW)
    create = write(CREATE, Stage.ANSWERED, made.uid, 7)
    assert not create.seen((), 6)
    assert create.seen((made,), 6)


def test_a_create_is_seen_when_the_cache_has_gone_past_it() -> None:
    assert write(CREATE, Stage.ANSWERED, "gone-already", 7).seen((), 7)


def test_a_create_without_an_answer_is_never_taken_for_seen() -> None:
    assert not write(CREATE).seen((), 1000)
    assert not write(CREATE, Stage.UNKNOWN).seen((), 1000)


def test_a_delete_is_seen_when_the_pod_is_terminating_or_gone() -> None:
    old, going = pod(), pod(deleting=200.0)
    delete = write(DeletePod("n1", old.name, old.uid, "1", Because.UPDATE))
    assert not delete.seen((old,), 1000)
    assert delete.seen((going,), 0)
    assert delete.seen((), 0)


def test_a_patch_is_seen_when_the_cached_pod_is_at_least_that_new() -> None:
    old = pod()
    patch = PatchPod("n1", old.name, old.uid, {}, Because.GATE)
    assert write(patch, Stage.ANSWERED, old.uid, 1).seen((old,), 0)
    assert not write(patch, Stage.ANSWERED, old.uid, 2).seen((old,), 0)


def test_the_decision_sees_what_kind_of_write_is_under_way() -> None:
    old = pod()
    assert write(CREATE).view().kind is Pending.CREATE
    assert write(CREATE).view().revision == NEW
    delete = write(DeletePod("n1", old.name, old.uid, "1", Because.UPDATE)).view()
    assert (delete.kind, delete.uid) == (Pending.DELETE, old.uid)
    assert write(PatchPod("n1", old.name, old.uid, {}, Because.GATE)).view().kind is Pending.PATCH


def test_a_write_is_looked_for_live_a_while_after_its_answer() -> None:
    assert write(CREATE).settle_at() == 100.0 + SETTLE_AFTER
    answered = write(CREATE)
    answered.stage = Stage.ANSWERED
    assert answered.settle_at() == 100.0 + SHOWN_AFTER


def test_versions_that_are_no_numbers_count_as_none() -> None:
    assert [parse_version(text) for text in ("12", "", "abc")] == [12, 0, 0]


def test_a_write_on_a_pod_that_is_no_more_is_seen_when_the_cache_lacks_it_too() -> None:
    old = pod()
    delete = DeletePod("n1", old.name, old.uid, "1", Because.UPDATE)
    patch = PatchPod("n1", old.name, old.uid, {}, Because.GATE)
    for action in (delete, patch):
        assert not write(action, Stage.GONE).seen((old,), 1000)
        assert write(action, Stage.GONE).seen((), 0)

from __future__ import annotations

from everynode.controller.pending_writes import (
    VERIFY_COMMITTED_AFTER,
    VERIFY_UNKNOWN_AFTER,
    PendingWrite,
    WriteStage,
)
from everynode.decide.actions import Cause, CreatePod, DeletePod, PatchPod, PodAction
from tests.support.fleet import NEW, pod

CREATE = CreatePod("n1", NEW, "agent-new", {}, Cause.MISSING)


def write(
    action: PodAction, stage: WriteStage = WriteStage.SENT, uid: str = "", version: int = 0
) -> PendingWrite:
    return PendingWrite(action, since=100.0, stage=stage, uid=uid, version=version)


def test_a_create_is_seen_when_the_pod_is_in_the_cache() -> None:
    made = pod(NEW)
    create = write(CREATE, WriteStage.ANSWERED, made.uid, 7)
    assert not create.seen((), 6)
    assert create.seen((made,), 6)


def test_a_create_is_seen_when_the_cache_has_gone_past_it() -> None:
    assert write(CREATE, WriteStage.ANSWERED, "gone-already", 7).seen((), 7)


def test_a_create_without_an_answer_is_never_taken_for_seen() -> None:
    assert not write(CREATE).seen((), 1000)
    assert not write(CREATE, WriteStage.UNKNOWN).seen((), 1000)


def test_a_delete_is_seen_when_the_pod_is_terminating_or_gone() -> None:
    old, going = pod(), pod(deleting=200.0)
    delete = write(DeletePod("n1", old.name, old.uid, "1", Cause.UPDATE))
    assert not delete.seen((old,), 1000)
    assert delete.seen((going,), 0)
    assert delete.seen((), 0)


def test_a_patch_is_seen_when_the_cached_pod_is_at_least_that_new() -> None:
    old = pod()
    patch = PatchPod("n1", old.name, old.uid, {}, Cause.GATE)
    assert write(patch, WriteStage.ANSWERED, old.uid, 1).seen((old,), 0)
    assert not write(patch, WriteStage.ANSWERED, old.uid, 2).seen((old,), 0)


def test_a_pending_write_is_read_live_some_time_after_its_response() -> None:
    assert write(CREATE).verify_at() == 100.0 + VERIFY_UNKNOWN_AFTER
    answered = write(CREATE)
    answered.stage = WriteStage.ANSWERED
    assert answered.verify_at() == 100.0 + VERIFY_COMMITTED_AFTER


def test_a_write_on_a_pod_that_is_no_more_is_seen_when_the_cache_lacks_it_too() -> None:
    old = pod()
    delete = DeletePod("n1", old.name, old.uid, "1", Cause.UPDATE)
    patch = PatchPod("n1", old.name, old.uid, {}, Cause.GATE)
    for action in (delete, patch):
        assert not write(action, WriteStage.GONE).seen((old,), 1000)
        assert write(action, WriteStage.GONE).seen((), 0)

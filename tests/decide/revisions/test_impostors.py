"""Forged revisions that look like the target: no pod is created from them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, DaemonSetStatus
from everynode.api.objects import ControllerRevision, ObjectMeta
from everynode.decide.plan import make_plan
from everynode.decide.pods.build import build_pod
from everynode.decide.revisions.target import Revision, choose_target, read_without_template
from tests.support.samples import advanced, native, revision, template_with

OURS = template_with(image="registry.example/agent:1")
THEIRS = template_with(image="evil:1", securityContext={"privileged": True})
SPELLED_OUT = template_with(image="registry.example/agent:1", imagePullPolicy="IfNotPresent")


def kruise(template: bytes, *, hash: str = "aaa") -> DaemonSet:
    status = DaemonSetStatus(observed_generation=1, update_revision=hash)
    return advanced(template, metadata={"generation": 1}, status=status)


BOTH = pytest.mark.parametrize("ds", [native(OURS), kruise(OURS)], ids=["native", "advanced"])


def image_of(ds: DaemonSet, target: Revision, revisions: list[Revision]) -> str:
    """What the next pod of the target runs."""
    plan = make_plan(ds, target, revisions, None)
    made = build_pod(plan.ds, plan.revisions[plan.target_hash], "n1")
    image: str = made["spec"]["containers"][0]["image"]
    return image


@BOTH
def test_a_target_whose_revision_holds_another_template_is_made_of_the_spec(ds: DaemonSet) -> None:
    forged = revision(THEIRS, "aaa", target_generation=1)
    choice = choose_target(ds, [forged], {"aaa": 3})
    assert choice.target.hash == "aaa"  # nothing restarts
    assert choice.actions == ()
    assert image_of(ds, choice.target, [forged]) == "registry.example/agent:1"
    [fault] = choice.faults
    assert fault.path == "ControllerRevision agent-aaa: data"
    assert "Delete the revision" in fault.message


@BOTH
def test_a_target_that_means_the_same_is_no_impostor(ds: DaemonSet) -> None:
    choice = choose_target(ds, [revision(SPELLED_OUT, "aaa", target_generation=1)], {"aaa": 3})
    assert (choice.actions, choice.faults) == ((), ())


@BOTH
@pytest.mark.parametrize("number", [0, 9])
def test_a_second_revision_of_the_same_hash_is_named_and_not_used(
    ds: DaemonSet, number: int
) -> None:
    true = revision(OURS, "aaa", number=5, target_generation=1)
    forged = revision(THEIRS, "aaa", name="agent-x", number=number, target_generation=1)
    for revisions in ([true, forged], [forged, true]):
        choice = choose_target(ds, revisions, {"aaa": 3})
        assert choice.target.name == true.name
        assert choice.actions == ()
        assert image_of(ds, choice.target, revisions) == "registry.example/agent:1"
        assert [fault.path for fault in choice.faults] == ["ControllerRevision agent-x: data"]


@BOTH
def test_a_record_of_this_generation_on_another_template_is_named_and_not_believed(
    ds: DaemonSet,
) -> None:
    true = revision(OURS, "aaa", number=5, target_generation=1)
    forged = revision(THEIRS, "xxx", number=9, target_generation=1)
    choice = choose_target(ds, [true, forged], {"aaa": 3})
    assert (choice.target.hash, choice.actions) == ("aaa", ())
    assert [fault.path for fault in choice.faults] == ["ControllerRevision agent-xxx: data"]


@BOTH
def test_a_recorded_generation_in_the_future_does_not_cause_a_write_at_every_reconcile(
    ds: DaemonSet,
) -> None:
    true = revision(OURS, "aaa", number=5, target_generation=1)
    forged = revision(THEIRS, "xxx", number=9, target_generation=1000)
    choice = choose_target(ds, [true, forged], {"aaa": 3})
    assert (choice.target.hash, choice.actions) == ("aaa", ())


def unreadable(hash: str, **annotations: str) -> Revision:
    stored = ControllerRevision(
        metadata=ObjectMeta(
            name=f"agent-{hash}",
            uid=f"uid-{hash}",
            labels={keys.REVISION_HASH: hash},
            annotations=annotations,
        ),
        revision=1,
        data=msgspec.Raw(b'{"spec":7}'),
    )
    return read_without_template(stored, "ds-uid")


@BOTH
def test_a_target_whose_revision_cannot_be_read_is_made_of_the_spec(ds: DaemonSet) -> None:
    broken = unreadable("aaa", **{keys.TARGET_GENERATION: "1/ds-uid"})
    choice = choose_target(ds, [], {"aaa": 3}, unreadable=[broken])
    # To create it anew would meet the broken one again and again.
    assert (choice.target.hash, choice.actions) == ("aaa", ())
    assert image_of(ds, choice.target, []) == "registry.example/agent:1"


def test_a_new_target_avoids_the_name_of_a_revision_that_cannot_be_read() -> None:
    ds: Any = native(OURS)
    [made] = choose_target(ds, [], {}).actions
    broken = unreadable(made.name.removeprefix("agent-"))
    [other] = choose_target(ds, [], {}, unreadable=[broken]).actions
    assert other.name != made.name


def test_of_several_old_revisions_with_one_hash_the_newest_counts_in_any_order() -> None:
    ds = kruise(OURS, hash="aaa")
    target = revision(OURS, "aaa", number=3)
    old = [revision(SPELLED_OUT, "old", number=1), revision(THEIRS, "old", number=2)]
    plans = [make_plan(ds, target, some, "old") for some in (old, old[::-1])]
    assert plans[0] == plans[1]
    assert plans[0].revisions["old"].template == THEIRS

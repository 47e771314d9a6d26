from __future__ import annotations

import pytest

from everynode.api.daemonset import IntOrPercent, LifecycleHook, UpdateStrategy
from everynode.decide.actions import Cause, CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.node.steps import Step, StepKind, build_actions, removal_step, to_own_write
from everynode.decide.pods.name import pod_name
from everynode.decide.view import OwnWrite, WriteKind
from tests.support.fleet import NEW, NOW, OLD, decide, make, pod, see

HOOK = LifecycleHook(labels={"hold": "true"})


def test_a_delete_carries_the_uid_of_the_pod_that_was_evaluated() -> None:
    [action] = decide(make(), [see("n1", pod(OLD))]).actions
    assert isinstance(action, DeletePod)
    assert (action.uid, action.resource_version) == ("uid-agent-n1-v1", "1")


def test_foreign_pods_that_hold_the_name_make_another_one() -> None:
    [action] = decide(make(), [see("n1", name_holders=("foreign",))]).actions
    assert isinstance(action, CreatePod)
    assert action.name == pod_name("agent", "ds", "n1", NEW, (), ("foreign",))
    assert action.body["metadata"]["name"] == action.name


@pytest.mark.parametrize("carried", [OLD, ""])
def test_a_pod_of_another_revision_that_holds_the_name_makes_another_one(carried: str) -> None:
    # It was made of the target once and updated in place since, or has lost its hash.
    holder = pod(carried, name=pod_name("agent", "ds", "n1", NEW))
    plan = make(strategy=UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1)))
    [action] = decide(plan, [see("n1", holder)]).actions
    assert isinstance(action, CreatePod)
    assert action.name == pod_name("agent", "ds", "n1", NEW, (holder.uid,))
    assert action.body["metadata"]["name"] == action.name


def test_a_removal_waits_behind_its_hook() -> None:
    hooked, marked = pod(OLD, labels=HOOK.labels), pod(OLD)
    plan = make(pre_delete=HOOK)
    assert removal_step(plan, marked, Cause.UPDATE) == Step(StepKind.DELETE, Cause.UPDATE, marked)
    assert removal_step(plan, hooked, Cause.UPDATE) == Step(
        StepKind.MARK_PREPARING_DELETE, Cause.HOOK, hooked
    )
    assert removal_step(make(), hooked, Cause.UPDATE) == Step(StepKind.DELETE, Cause.UPDATE, hooked)


def test_a_refresh_with_nothing_to_do_does_nothing() -> None:
    view = see("n1", pod(OLD))
    assert build_actions(make(), view, Step(StepKind.MAINTAIN, Cause.GATE, view.pods[0]), NOW) == ()


@pytest.mark.parametrize(
    ("action", "write"),
    [
        (CreatePod("n1", NEW, "a", {}, Cause.MISSING), OwnWrite(WriteKind.CREATE, revision=NEW)),
        (DeletePod("n1", "a", "u", "1", Cause.UPDATE), OwnWrite(WriteKind.DELETE, uid="u")),
        (PatchPod("n1", "a", "u", {}, Cause.GATE), OwnWrite(WriteKind.PATCH, uid="u")),
    ],
)
def test_an_action_counts_as_a_write_under_way(action: PodAction, write: OwnWrite) -> None:
    assert to_own_write(action) == write

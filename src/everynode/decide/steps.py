"""What a node wants done next, and how that is written as an action."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from everynode.api.objects import Pod
from everynode.decide.actions import Because, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.failures import write_failures
from everynode.decide.inplace import next_step, refresh
from everynode.decide.lifecycle import is_hooked, is_preparing, mark_preparing
from everynode.decide.plan import Plan
from everynode.decide.pod import build_pod
from everynode.decide.view import NodeView, OwnWrite, Pending


class Do(enum.Enum):
    """The sorts of steps."""

    CREATE = "create"
    DELETE = "delete"
    MARK = "mark PreparingDelete"
    REFRESH = "open gates, or carry on what was begun in place"
    ADVANCE = "carry on towards the target in place"
    UPDATE = "take for the target, in place or by deletion"


class Step(msgspec.Struct, frozen=True, gc=False):
    """One wish of one node; bodies are only built for wishes that are granted."""

    do: Do
    because: Because
    pod: Pod | None = None  # the one to be deleted or changed
    revision: str = ""  # hash of the one to be created
    replaced: tuple[str, ...] = ()  # uids that make its name a new one
    failures: int = 0  # how often its predecessors failed in a row


def remove(plan: Plan, pod: Pod, because: Because) -> Step | None:
    """The next step of a pod's removal: past its hook, if it has one; None while that waits."""
    hook = plan.hook
    if hook is None or not is_hooked(pod, hook):
        return Step(Do.DELETE, Because.HOOK_DONE if is_preparing(pod) else because, pod)
    # What is returned does not depend on the time, only its timestamps do.
    return Step(Do.MARK, Because.HOOK, pod) if mark_preparing(pod, hook, 0.0) else None


def remove_all(plan: Plan, pods: Iterable[Pod], because: Because) -> tuple[Step, ...]:
    """The next steps of the removal of several pods."""
    steps = (remove(plan, pod, because) for pod in pods)
    return tuple(step for step in steps if step is not None)


def build(plan: Plan, view: NodeView, step: Step, now: float) -> tuple[PodAction, ...]:
    """The actions of a step."""
    if step.do is Do.CREATE:
        return (_create(plan, view, step),)
    assert step.pod is not None
    if step.do is Do.DELETE:
        return (_delete(view, step.pod, step.because),)
    if step.do is Do.REFRESH:
        patch = refresh(step.pod, now=now)
        return () if patch is None else (patch,)
    if step.do is Do.MARK:
        assert plan.hook is not None
        return mark_preparing(step.pod, plan.hook, now)
    return _update(plan, view, step, now)


def _update(plan: Plan, view: NodeView, step: Step, now: float) -> tuple[PodAction, ...]:
    """In place where the strategy asks for it and the change allows it, else past the hook."""
    pod = step.pod
    assert pod is not None
    unresizable = (pod.uid, pod.hash) == view.unresizable
    if (plan.in_place or step.do is Do.ADVANCE) and not unresizable:
        made = next_step(pod, plan.revision_of(pod), plan.target, now=now)
        if isinstance(made, PatchPod):
            return (made,)
    removal = remove(plan, pod, Because.UPDATE) if step.do is Do.UPDATE else None
    return () if removal is None else build(plan, view, removal, now)


def _create(plan: Plan, view: NodeView, step: Step) -> CreatePod:
    failures = write_failures(step.failures, plan.target_hash) if step.failures else None
    body = build_pod(
        plan.ds,
        plan.revisions[step.revision],
        view.name,
        replaced=step.replaced,
        strangers=view.strangers,
        failures=failures,
        by_scheduler=plan.by_scheduler,
    )
    name = body["metadata"]["name"]
    # A pod that stays may have been made of this revision and carry another hash since: it was
    # updated in place, or somebody took its label. Then the new one needs a name of its own.
    held = tuple(pod.uid for pod in view.pods if pod.name == name)
    if held:
        return _create(plan, view, msgspec.structs.replace(step, replaced=(*step.replaced, *held)))
    return CreatePod(view.name, step.revision, name, body, step.because)


def _delete(view: NodeView, pod: Pod, because: Because) -> DeletePod:
    return DeletePod(
        node=view.name,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
        because=because,
        notice=_notice(view, pod) if because is Because.FINISHED else None,
    )


def _notice(view: NodeView, pod: Pod) -> Notice:
    where = f"{pod.metadata.namespace}/{pod.name} on node {view.name}"
    if pod.status.phase == "Failed":
        message = f"Found failed daemon pod {where}, will try to kill it"
        return Notice("Warning", "FailedDaemonPod", message)
    message = f"Found succeeded daemon pod {where}, will try to delete it"
    return Notice("Normal", "SucceededDaemonPod", message)


def as_write(action: PodAction) -> OwnWrite:
    """The action as a write under way, the way the node is counted until it is seen."""
    if isinstance(action, CreatePod):
        return OwnWrite(Pending.CREATE, revision=action.revision)
    kind = Pending.DELETE if isinstance(action, DeletePod) else Pending.PATCH
    return OwnWrite(kind, uid=action.uid)

"""Steps: the next writes that a node needs, and the actions that perform them."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.decide.actions import Cause, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.inplace.update import maintenance_patch
from everynode.decide.node.failures import write_failures
from everynode.decide.plan import Plan
from everynode.decide.pods.build import build_pod
from everynode.decide.pods.lifecycle import is_hooked, is_preparing, mark_preparing
from everynode.decide.view import NodeView, OwnWrite, WriteKind


class StepKind(enum.Enum):
    """The kinds of steps."""

    CREATE = "create"
    DELETE = "delete"
    MARK_PREPARING_DELETE = "mark PreparingDelete"
    MAINTAIN = "open gates, or carry on what was begun in place"
    ADVANCE_IN_PLACE = "carry on towards the target in place"
    UPDATE = "take for the target, in place or by deletion"


class Step(msgspec.Struct, frozen=True, gc=False):
    """One write that a node needs; its body is built only when the limits allow the write."""

    kind: StepKind
    cause: Cause
    pod: Pod | None = None  # the pod to delete or change
    revision: str = ""  # hash of the revision to create a pod of
    replaced: tuple[str, ...] = ()  # uids of the pods it replaces; its name depends on them
    failures: int = 0  # how many pods before it failed in a row
    sick: bool = False  # the pod to take, or the one that is replaced, is sick (R4)
    check_room: bool = False  # the room of the node has to be observed first (R4)


def removal_step(plan: Plan, pod: Pod, cause: Cause) -> Step | None:
    """Return the next step to remove a pod: mark it for its hook, then delete it.

    None while the hook has not released the pod.
    """
    hook = plan.hook
    if hook is None or not is_hooked(pod, hook):
        return Step(StepKind.DELETE, Cause.HOOK_DONE if is_preparing(pod) else cause, pod)
    # Only the timestamps of the patch depend on the time, and they are not used here.
    return (
        Step(StepKind.MARK_PREPARING_DELETE, Cause.HOOK, pod)
        if mark_preparing(pod, hook, 0.0)
        else None
    )


def removal_steps(plan: Plan, pods: Iterable[Pod], cause: Cause) -> tuple[Step, ...]:
    """Return the next steps to remove several pods."""
    steps = (removal_step(plan, pod, cause) for pod in pods)
    return tuple(step for step in steps if step is not None)


def build_actions(plan: Plan, view: NodeView, step: Step, now: float) -> tuple[PodAction, ...]:
    """Return the actions of a step."""
    if step.kind is StepKind.CREATE:
        return (_create(plan, view, step),)
    assert step.pod is not None
    if step.kind is StepKind.DELETE:
        return (_delete(view, step.pod, step.cause, sick=step.sick),)
    if step.kind is StepKind.MAINTAIN:
        patch = maintenance_patch(step.pod, now=now, ahead=view.ahead)
        return () if patch is None else (patch,)
    if step.kind is StepKind.MARK_PREPARING_DELETE:
        assert plan.hook is not None
        return mark_preparing(step.pod, plan.hook, now)
    return _update(plan, view, step, now)


def _update(plan: Plan, view: NodeView, step: Step, now: float) -> tuple[PodAction, ...]:
    """Update in place if the strategy and the change allow it; otherwise remove the pod."""
    pod = step.pod
    assert pod is not None
    unresizable = (pod.uid, pod.hash) == view.unresizable
    if (plan.in_place or step.kind is StepKind.ADVANCE_IN_PLACE) and not unresizable:
        in_place = plan.next_in_place_step(pod, now=now, ahead=view.ahead)
        if isinstance(in_place, PatchPod):
            return (_note_sick(in_place, plan.target_hash) if step.sick else in_place,)
    removal = removal_step(plan, pod, Cause.UPDATE) if step.kind is StepKind.UPDATE else None
    if removal is None:
        return ()
    return build_actions(plan, view, msgspec.structs.replace(removal, sick=step.sick), now)


def _note_sick(patch: PatchPod, target: str) -> PatchPod:
    """Return the patch that begins an update in place of a sick pod, with a note of that."""
    metadata = dict(patch.body["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), keys.REPLACED_SICK: target}
    return msgspec.structs.replace(patch, body={**patch.body, "metadata": metadata})


def _create(plan: Plan, view: NodeView, step: Step) -> CreatePod:
    failures = write_failures(step.failures, plan.target_hash) if step.failures else None
    body = build_pod(
        plan.ds,
        plan.revisions[step.revision],
        view.name,
        replaced=step.replaced,
        name_holders=view.name_holders,
        failures=failures,
        replaced_sick=step.sick,
        by_scheduler=plan.by_scheduler,
    )
    name = body["metadata"]["name"]
    # An existing pod may have this name: it was created from this revision, then updated in place
    # or relabelled by a client. Its uid goes into the name of the new pod to make it differ.
    held = tuple(pod.uid for pod in view.pods if pod.name == name)
    if held:
        return _create(plan, view, msgspec.structs.replace(step, replaced=(*step.replaced, *held)))
    return CreatePod(view.name, step.revision, name, body, step.cause)


def _delete(view: NodeView, pod: Pod, cause: Cause, *, sick: bool) -> DeletePod:
    return DeletePod(
        node=view.name,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
        cause=cause,
        notice=_finished_event(view, pod) if cause is Cause.FINISHED else None,
        sick=sick,
    )


def _finished_event(view: NodeView, pod: Pod) -> Notice:
    where = f"{pod.metadata.namespace}/{pod.name} on node {view.name}"
    if pod.status.phase == "Failed":
        message = f"Found failed daemon pod {where}, will try to kill it"
        return Notice("Warning", "FailedDaemonPod", message)
    message = f"Found succeeded daemon pod {where}, will try to delete it"
    return Notice("Normal", "SucceededDaemonPod", message)


def to_own_write(action: PodAction) -> OwnWrite:
    """Return the action as an own write that the cache does not show yet."""
    if isinstance(action, CreatePod):
        return OwnWrite(WriteKind.CREATE, revision=action.revision)
    kind = WriteKind.DELETE if isinstance(action, DeletePod) else WriteKind.PATCH
    return OwnWrite(kind, uid=action.uid)

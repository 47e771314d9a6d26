"""Reason: why a node is not done. A code that is counted in conditions, and a text."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from everynode.api.objects import Node, Pod
from everynode.decide.inplace.state import has_unfinished_update
from everynode.decide.node.availability import is_ready
from everynode.decide.pods.lifecycle import is_preparing

# Codes of nodes that need nothing, or only wait for their turn.
DONE: Final = ""
NOT_ELIGIBLE: Final = "NotEligible"
HELD: Final = "Held"
TURN: Final = "Turn"
ON_DELETE: Final = "OnDelete"
WITHHELD: Final = "Withheld"

# Codes of nodes that progress, by our writes or by the kubelet.
WRITING: Final = "Writing"
MISSING: Final = "Missing"
STARTING: Final = "Starting"
MIN_READY: Final = "MinReady"
IN_PLACE: Final = "InPlace"
TERMINATING: Final = "Terminating"
REPLACING: Final = "Replacing"

# Codes of nodes that wait for something outside of the controller. The reasons that kubelets give
# for a container that does not run belong here too: ImagePullBackOff, CrashLoopBackOff, others.
NODE_NOT_READY: Final = "NodeNotReady"
MAINTENANCE: Final = "Maintenance"
NOT_READY: Final = "NotReady"
RESTARTED: Final = "Restarted"
UNSCHEDULABLE: Final = "Unschedulable"
INSUFFICIENT_RESOURCES: Final = "InsufficientResources"
HOOK: Final = "Hook"
BACKOFF: Final = "Backoff"
REFUSED: Final = "Refused"
NOT_STARTING: Final = "NotStarting"
IN_PLACE_LATE: Final = "InPlaceLate"
STUCK: Final = "StuckTerminating"
SURGE_CANNOT_FIT: Final = "SurgeCannotFit"
TAINTED: Final = "Tainted"
NOT_ASSESSED: Final = "NotAssessed"  # the evaluation of the node raised: a defect of ours

IDLE_CODES: Final = frozenset((DONE, NOT_ELIGIBLE, HELD, TURN, ON_DELETE, WITHHELD))
PROGRESSING_CODES: Final = frozenset(
    (WRITING, MISSING, STARTING, MIN_READY, IN_PLACE, TERMINATING, REPLACING)
)

_NORMAL_WAITING: Final = ("", "ContainerCreating", "PodInitializing")
_REASON_CODE = re.compile("[A-Za-z]{1,40}")
_MAX_CHARACTERS = 200


class Reason(msgspec.Struct, frozen=True, gc=False):
    """A code that is counted over all nodes, and a text about one node."""

    code: str
    text: str = ""


NO_REASON: Final = Reason(DONE)
UNREACHABLE: Final = Reason(NODE_NOT_READY, "the node's kubelet is silent: its Ready is Unknown")


def shorten(text: str, longest: int = _MAX_CHARACTERS) -> str:
    """Return the text as one line of bounded length: kubelets and webhooks write long messages."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def explain_pod(pod: Pod, node: Node) -> Reason:
    """Return why a pod that is neither finished nor terminating is not available."""
    if node.ready == "Unknown":
        return UNREACHABLE
    if is_preparing(pod):
        return Reason(HOOK, f"pod {pod.name} is PreparingDelete and waits for its preDelete hook")
    if has_unfinished_update(pod):
        return Reason(IN_PLACE, f"pod {pod.name} is being updated in place")
    trouble = _explain_scheduling(pod) or _explain_containers(pod)
    if trouble is not None:
        return trouble
    if is_ready(pod):
        return Reason(MIN_READY, f"pod {pod.name} is Ready, but not for minReadySeconds yet")
    if node.ready == "False":
        return Reason(NODE_NOT_READY, f"pod {pod.name} is not Ready, and neither is its node")
    if _all_run(pod):
        return Reason(NOT_READY, f"pod {pod.name} runs, but is not Ready")
    return Reason(STARTING, f"pod {pod.name} is starting")


def _explain_scheduling(pod: Pod) -> Reason | None:
    condition = pod.condition("PodScheduled")
    if pod.spec.node_name or condition is None or condition.status != "False":
        return None
    return Reason(UNSCHEDULABLE, shorten(f"pod {pod.name} is not scheduled: {condition.message}"))


def _explain_containers(pod: Pod) -> Reason | None:
    """Return what the kubelet reports of the first container that does not run."""
    for status in pod.status.container_statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in _NORMAL_WAITING:
            code = waiting.reason if _REASON_CODE.fullmatch(waiting.reason) else NOT_READY
            return Reason(code, shorten(f"container {status.name}: {waiting.message or code}"))
        ended = status.state.terminated
        if ended is not None:
            code = ended.reason if _REASON_CODE.fullmatch(ended.reason) else "Error"
            text = f"container {status.name} ended with exit code {ended.exit_code}"
            return Reason(code, text)
    return None


def _all_run(pod: Pod) -> bool:
    statuses = pod.status.container_statuses
    return bool(statuses) and all(status.state.running is not None for status in statuses)

"""Why a node is not done, as a short code that is counted and a text that is printed."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from everynode.api.objects import Node, Pod
from everynode.decide.availability import is_ready
from everynode.decide.inplace_state import is_unfinished
from everynode.decide.lifecycle import is_preparing

# Codes of nodes that need nobody: nothing is to be done there, or only its turn is ahead.
DONE: Final = ""
NOT_ELIGIBLE: Final = "NotEligible"
HELD: Final = "Held"
TURN: Final = "Turn"
ON_DELETE: Final = "OnDelete"
WITHHELD: Final = "Withheld"

# Codes of nodes where something moves by itself.
WRITING: Final = "Writing"
MISSING: Final = "Missing"
STARTING: Final = "Starting"
MIN_READY: Final = "MinReady"
IN_PLACE: Final = "InPlace"
TERMINATING: Final = "Terminating"
REPLACING: Final = "Replacing"

# Codes of nodes that wait for something outside of us. To these come the reasons that kubelets
# give for a container that does not run: ImagePullBackOff, CrashLoopBackOff and the like.
NODE_NOT_READY: Final = "NodeNotReady"
NOT_READY: Final = "NotReady"
UNSCHEDULABLE: Final = "Unschedulable"
HOOK: Final = "Hook"
BACKOFF: Final = "Backoff"
REFUSED: Final = "Refused"
NOT_STARTING: Final = "NotStarting"
IN_PLACE_LATE: Final = "InPlaceLate"
STUCK: Final = "StuckTerminating"
SURGE_CANNOT_FIT: Final = "SurgeCannotFit"
TAINTED: Final = "Tainted"

QUIET: Final = frozenset((DONE, NOT_ELIGIBLE, HELD, TURN, ON_DELETE, WITHHELD))
MOVING: Final = frozenset((WRITING, MISSING, STARTING, MIN_READY, IN_PLACE, TERMINATING, REPLACING))

_NORMAL_WAITS: Final = ("", "ContainerCreating", "PodInitializing")
_WORD = re.compile("[A-Za-z]{1,40}")
_LONGEST = 200


class Reason(msgspec.Struct, frozen=True, gc=False):
    """A code that is counted over the fleet, and a text about one node."""

    code: str
    text: str = ""


NOTHING: Final = Reason(DONE)


def shorten(text: str) -> str:
    """One line of bounded length; kubelets and webhooks can be long-winded."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def explain_pod(pod: Pod, node: Node) -> Reason:
    """Why a pod that neither ended nor is being deleted is not available."""
    if node.ready == "Unknown":
        return Reason(NODE_NOT_READY, "the node's kubelet is silent: its Ready is Unknown")
    if is_preparing(pod):
        return Reason(HOOK, f"pod {pod.name} is PreparingDelete and waits for its preDelete hook")
    if is_unfinished(pod):
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
    """What the kubelet says of the first container that is kept from running."""
    for status in pod.status.container_statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in _NORMAL_WAITS:
            code = waiting.reason if _WORD.fullmatch(waiting.reason) else NOT_READY
            return Reason(code, shorten(f"container {status.name}: {waiting.message or code}"))
        ended = status.state.terminated
        if ended is not None:
            code = ended.reason if _WORD.fullmatch(ended.reason) else "Error"
            text = f"container {status.name} ended with exit code {ended.exit_code}"
            return Reason(code, text)
    return None


def _all_run(pod: Pod) -> bool:
    statuses = pod.status.container_statuses
    return bool(statuses) and all(status.state.running is not None for status in statuses)

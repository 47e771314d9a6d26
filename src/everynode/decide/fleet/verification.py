"""Verification (R4): no pod is taken for a target whose pods the API server refuses.

Before the first pod of a target is taken, a pod of the target is created with `dryRun=All`. The
decision asks for that dry run and takes the verdict as an input; the controller performs it. Pods
of one target differ in the name of their node alone, so that one dry run speaks for all nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from everynode.api.objects import Pod
from everynode.api.quantity import Quantity, QuantityError, parse_quantity
from everynode.decide.actions import Cause, CreatePod
from everynode.decide.node.assessment import Queue
from everynode.decide.node.steps import Step, StepKind, build_actions
from everynode.decide.plan import Plan
from everynode.decide.view import NodeView

# The queues of nodes whose pod is taken for the target, in the order in which they are served.
UPDATE_QUEUES: Final = (
    Queue.RECREATE_NO_BUDGET,
    Queue.REPLACE_UNREADY_NO_BUDGET,
    Queue.REPLACE_UNREADY,
    Queue.UPDATE_READY_NO_BUDGET,
    Queue.UPDATE_READY,
    Queue.UPDATE_READY_LAST,
    Queue.SURGE,
    Queue.SURGE_LAST,
)

_QUOTA: Final = re.compile(
    r"exceeded quota: [^,]*, requested: (?P<requested>.*), used: (?P<used>.*),"
    r" limited: (?P<limited>.*)"
)
_ONE_POD: Final = frozenset({"pods", "count/pods"})
_ONE: Final = parse_quantity(1)
_NOTHING: Final = parse_quantity(0)


class Verdict(msgspec.Struct, frozen=True):
    """The API server's response to the dry run of a target's pod."""

    revision: str = ""  # the target's hash
    refusal: str = ""  # the API server's words; empty if it accepts the pod
    unasked: bool = False  # every target counts as accepted

    def accepts(self, revision: str) -> bool:
        """Whether pods of this revision are known to be accepted."""
        return self.unasked or (self.revision == revision and not self.refusal)

    def refusal_of(self, revision: str) -> str:
        """Return why pods of this revision are refused; empty if that is not known."""
        return self.refusal if self.revision == revision else ""


NO_VERDICT: Final = Verdict()
UNASKED: Final = Verdict(unasked=True)  # for callers that have no API server to ask


class Verification(msgspec.Struct, frozen=True):
    """The dry run that has to succeed before a pod of the target's predecessors is taken."""

    action: CreatePod
    gives_way: Pod | None  # the pod that is gone before the new one is created, if any


def verify_target(plan: Plan, view: NodeView, old: Pod | None, now: float) -> Verification:
    """Return the dry run of the pod that follows `old`, the pod that would be taken first."""
    create = Step(StepKind.CREATE, Cause.UPDATE, revision=plan.target_hash)
    [action] = build_actions(plan, view, create, now)
    assert isinstance(action, CreatePod)
    return Verification(action, None if plan.surging else old)  # with surge both pods exist


def has_room_afterwards(message: str, gives_way: Pod) -> bool:
    """Whether a pod that exceeds a quota now fits in it once the old pod of its node is gone.

    A quota that is exactly used up refuses the dry run of a pod that would be created after
    another one is gone. Where the quota has no room even then, the refusal stands.
    """
    found = _QUOTA.search(message)
    if found is None:
        return False
    try:
        requested, used, limited = (_amounts(found[name]) for name in _QUOTA.groupindex)
        return bool(requested) and all(
            used[name] - _released_quota(gives_way, name) + amount <= limited[name]
            for name, amount in requested.items()
        )
    except (KeyError, QuantityError):
        return False


def _amounts(text: str) -> dict[str, Quantity]:
    """Return the amounts in a list like `pods=1,requests.cpu=100m`."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name.strip(): parse_quantity(value.strip()) for name, _, value in pairs}


def _released_quota(pod: Pod, resource: str) -> Quantity:
    """Return how much of a quota's resource the end of this pod gives back, at least."""
    if resource in _ONE_POD:
        return _ONE
    of_limits = resource.startswith("limits.")
    name = resource.removeprefix("limits.").removeprefix("requests.")
    total = _NOTHING
    for container in pod.spec.containers:
        amounts: Mapping[str, str | int | float] = (
            container.resources.limits if of_limits else container.resources.requests
        )
        if name in amounts:
            total = total + parse_quantity(amounts[name])
    return total

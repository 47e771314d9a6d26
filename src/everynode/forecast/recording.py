"""Recording: the state of every node when a forecast begins, and every change until it ends."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod


class NodeState(enum.StrEnum):
    """What a node shows in the course of a rollout."""

    NOT_ELIGIBLE = "not-eligible"  # should have no pod
    OLD = "old"  # available, at the version from before
    HELD = "held"  # the same, and stays so: by partition, selector or a pause
    UNAVAILABLE = "unavailable"  # has an old pod that is not available
    TAKEN = "taken"  # its pod goes or is gone
    STARTING = "starting"  # has a pod of the new version that is not available yet
    UPDATED = "updated"  # available, at the new version
    STUCK = "stuck"  # its pod of the new version did not become available until the end
    UNREACHABLE = "unreachable"  # its kubelet is silent, or it is in maintenance


class StateChange(NamedTuple):
    """A node comes into a state."""

    seconds: float  # since the update began
    node: str
    state: NodeState


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """How the nodes went through a rollout; values only."""

    labels: dict[str, dict[str, str]]  # of each node, by name
    start: dict[str, NodeState]  # of each node, by name
    changes: tuple[StateChange, ...]  # by time
    end: float  # seconds


class RolloutRecorder:
    """Collects the changes of a forecast that is running."""

    def __init__(self) -> None:
        self._start: dict[str, NodeState] = {}
        self._now: dict[str, NodeState] = {}
        self._changes: list[StateChange] = []

    def begin(self, states: Mapping[str, NodeState]) -> None:
        """The update begins, with these nodes."""
        self._start, self._now = dict(states), dict(states)

    def note(self, seconds: float, node: str, state: NodeState) -> None:
        """A node may have changed its state; what the kubelet does not report is not seen."""
        before = self._now.get(node, NodeState.NOT_ELIGIBLE)
        if state is before or before is NodeState.UNREACHABLE:
            return
        self._now[node] = state
        self._changes.append(StateChange(seconds, node, state))

    def finish(
        self,
        end: float,
        *,
        labels: Mapping[str, Mapping[str, str]],
        held: Collection[str],
        stuck: Collection[str],
    ) -> Recording:
        """Return the recording, given what is known only at the end."""
        start = {
            node: NodeState.HELD if state is NodeState.OLD and node in held else state
            for node, state in sorted(self._start.items())
        }
        ends = [StateChange(end, node, NodeState.STUCK) for node in sorted(stuck)]
        return Recording(
            labels={node: dict(labels.get(node, {})) for node in start},
            start=start,
            changes=(*self._changes, *ends),
            end=end,
        )


def state_of(
    pods: Collection[Pod], available: Collection[Pod], is_old: Callable[[str], bool]
) -> NodeState:
    """Return the state of a node that should have a pod, from the pods on it."""
    if any(not is_old(pod.hash) for pod in available):
        return NodeState.UPDATED
    if available:
        return NodeState.OLD
    staying = [pod for pod in pods if not pod.terminating]
    if any(not is_old(pod.hash) for pod in staying):
        return NodeState.STARTING
    if any(keys.LIFECYCLE_STATE not in pod.metadata.labels for pod in staying):
        return NodeState.UNAVAILABLE
    return NodeState.TAKEN

"""Maintenance (R4): nodes whose lifecycle conditions announce a shutdown, a drain or maintenance.

The conditions are those of KEP-5683 (Kubernetes 1.37). A kubelet may write any of them on its own
node, and on no other: whatever they say, they change what happens to that node alone, and the bound
on nodes that are set aside.
"""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.objects import Node, Pod
from everynode.decide.node import reasons
from everynode.decide.node.reasons import Reason

# Seconds between pods on a node that shuts down, or has shut down and is not Ready again.
SHUTDOWN_DELAY: Final = 300.0

# The reasons of pods that a kubelet ends, or does not admit, because its node shuts down.
_SHUTDOWN_REASONS: Final = ("Terminated", "NodeShutdown")
_TEXTS: Final = {
    keys.NODE_SHUTDOWN: "the node shuts down",
    "MaintenanceInProgress": "the node is in maintenance",
    "DrainInProgress": "the node is being drained",
    "Drained": "the node is drained",
}


def is_set_aside(node: Node) -> bool:
    """Whether the node is left alone: its kubelet does not report, or it is in maintenance."""
    return node.ready == "Unknown" or node.lifecycle in _TEXTS


def is_planned(node: Node) -> bool:
    """Whether maintenance of the node is planned and has not begun: it is updated last."""
    return node.lifecycle == keys.MAINTENANCE_PLANNED


def explain_set_aside(node: Node) -> Reason:
    """Return why a node that is set aside is left alone."""
    if node.ready == "Unknown":
        return reasons.UNREACHABLE
    condition = node.lifecycle
    return Reason(reasons.MAINTENANCE, f"{_TEXTS[condition]}: its {condition} is True")


def is_shutting_down(node: Node) -> bool:
    """Whether the node shuts down: its kubelet would end or refuse every pod."""
    return node.lifecycle == keys.NODE_SHUTDOWN


def shutdown_delay(pod: Pod, node: Node) -> float:
    """Return the least time between the end of this pod and the next one on its node, in seconds.

    Kubelets without the condition of a shutdown report Ready False and end or refuse their pods.
    """
    if node.ready == "True" or pod.status.reason not in _SHUTDOWN_REASONS:
        return 0.0
    return SHUTDOWN_DELAY

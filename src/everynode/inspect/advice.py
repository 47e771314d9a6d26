"""Advice: the commands that help with what a node waits for."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from everynode.api.daemonset import DaemonSet
from everynode.decide.node import reasons
from everynode.inspect.fleet import NodeRow, NodeStanding

_IMAGE: Final = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")
_LOOK_AT_NODE: Final = (reasons.NODE_NOT_READY, reasons.MAINTENANCE, reasons.TAINTED)
_LOOK_AT_POD: Final = (
    reasons.UNSCHEDULABLE,
    reasons.STUCK,
    reasons.NOT_STARTING,
    reasons.HOOK,
    reasons.IN_PLACE_LATE,
    "CreateContainerConfigError",
    "CreateContainerError",
)


def advice(
    ds: DaemonSet, row: NodeRow, known_commands: Collection[str], where: str | None = None
) -> list[str]:
    """Return the commands to type next, the most helpful first.

    `known_commands` are the commands that this program has, `where` the options that choose the
    same cluster and namespace; by default those for the namespace.
    """
    where = in_namespace(ds.namespace) if where is None else where
    name = f"{ds.short_name}{where}"
    if row.standing is NodeStanding.HELD:
        return [_release(ds, known_commands, where)]
    if row.standing in (NodeStanding.QUEUED, NodeStanding.UPDATING):
        if row.reason == reasons.ON_DELETE:
            return [f"kubectl delete pod {row.pod}{where}"]
        return [f"everynode status {name} --watch"]
    if row.standing is not NodeStanding.WAITING:
        return []
    undo = [f"everynode undo {name}"] if "undo" in known_commands else []
    history = f"everynode history {name}"
    if row.reason in _IMAGE:
        return [history, *undo]
    if row.reason == reasons.INSUFFICIENT_RESOURCES:
        return [f"kubectl describe node {row.node}", *undo]
    if row.reason in _LOOK_AT_NODE:
        return [f"kubectl describe node {row.node}"]
    if row.reason in _LOOK_AT_POD:
        return [f"kubectl describe pod {row.pod}{where}", *undo]
    if row.pod:
        return [f"everynode logs {name} --node {row.node}", history, *undo]
    return [f"kubectl describe {ds.flavour.short} {ds.name}{where}"]


def _release(ds: DaemonSet, known_commands: Collection[str], where: str) -> str:
    """Return the command that lets the update reach more nodes."""
    name = f"{ds.short_name}{where}"
    paused = ds.strategy.paused
    verb = "resume" if paused else "partition"
    if verb in known_commands:
        return f"everynode {verb} {name}" + ("" if paused else " 0")
    change = {"paused": False} if paused else {"partition": 0}
    patch = json.dumps({"spec": {"updateStrategy": {"rollingUpdate": change}}})
    kind = ds.flavour.short
    return f"kubectl patch {kind} {ds.name}{where} --type=merge -p '{patch}'"


def in_namespace(namespace: str) -> str:
    """Return the option of a command that chooses a namespace, if it has to be given."""
    return "" if namespace == "default" else f" -n {namespace}"

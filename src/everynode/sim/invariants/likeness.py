"""What is left of a store when uids, times and names are taken away; and who was moved how often.

L5 and L6 compare ends: the same spec gives the same pods on the same nodes, whatever came before.
L7 compares ways: faults that destroy nothing cost nobody an additional pod.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.sim.invariants.referee import Referee, amounts, meaning, node_of
from everynode.sim.invariants.views import by_controller, owner_uid
from everynode.sim.record import Record, Scene

Likeness = dict[str, list[tuple[object, ...]]]
_OWN: Final = (keys.REVISION_HASH, keys.POD_TEMPLATE_GENERATION)


def likeness(scene: Scene, ds: DaemonSet) -> Likeness:
    """The pods of a DaemonSet by node, as far as two stores can have them in common."""
    referee = Referee(scene, ds, 0.0)
    return {
        node: sorted((_shown(referee, pod) for pod in pods), key=repr)
        for node, pods in sorted(referee.pods.items())
    }


def _shown(referee: Referee, pod: Pod) -> tuple[object, ...]:
    template = referee.templates.get(pod.hash)
    labels = {key: text for key, text in pod.metadata.labels.items() if key not in _OWN}
    return (
        meaning(template) if template is not None else b"",
        tuple(sorted(labels.items())),
        tuple((each.name, each.image, amounts(each.resources)) for each in pod.spec.containers),
        pod.terminating,
        pod.finished,
    )


def differences(before: Likeness, after: Likeness) -> list[str]:
    """The nodes on which two stores differ."""
    return [
        f"{node} has {len(after.get(node, []))} pods, or others than it should"
        for node in sorted({**before, **after})
        if before.get(node, []) != after.get(node, [])
    ]


def moves(record: Record) -> Counter[tuple[str, str]]:
    """How many daemon pods controllers created and deleted, by node."""
    found: Counter[tuple[str, str]] = Counter()
    for commit in record.commits:
        if commit.kind != "pods" or not by_controller(commit):
            continue
        before, after = commit.before, commit.after
        if before is None and owner_uid(after):
            found[node_of(after), "created"] += 1
        elif before is not None and not before.terminating and (not after or after.terminating):
            found[node_of(before), "deleted"] += 1
    return found

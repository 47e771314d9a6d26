"""Normalised states: the pods of a DaemonSet without uids, times and names; and pod churn by node.

L5 and L6 compare states: the same spec gives the same pods on the same nodes, whatever came before.
L7 compares churn: faults that destroy no pod cost no additional pod.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.sim.checks.inplace_progress import amounts
from everynode.sim.checks.oracle import Oracle, canonical_template
from everynode.sim.checks.possible_views import by_controller, owner_uid
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import WorldRecord

NormalisedState = dict[str, list[tuple[object, ...]]]
_OWN: Final = (keys.REVISION_HASH, keys.POD_TEMPLATE_GENERATION)


def normalised_state(cluster: ClusterState, ds: DaemonSet) -> NormalisedState:
    """The pods of a DaemonSet by node, with the fields that two runs can be compared by."""
    oracle = Oracle(cluster, ds, 0.0)
    return {
        node: sorted((_normalise_pod(oracle, pod) for pod in pods), key=repr)
        for node, pods in sorted(oracle.pods.items())
    }


def _normalise_pod(oracle: Oracle, pod: Pod) -> tuple[object, ...]:
    template = oracle.templates.get(pod.hash)
    labels = {key: text for key, text in pod.metadata.labels.items() if key not in _OWN}
    return (
        canonical_template(template) if template is not None else b"",
        tuple(sorted(labels.items())),
        tuple((each.name, each.image, amounts(each.resources)) for each in pod.spec.containers),
        pod.terminating,
        pod.finished,
    )


def differences(before: NormalisedState, after: NormalisedState) -> list[str]:
    """The nodes on which two stores differ."""
    return [
        f"{node} has {len(after.get(node, []))} pods, or others than it should"
        for node in sorted({**before, **after})
        if before.get(node, []) != after.get(node, [])
    ]


def pod_churn(record: WorldRecord) -> Counter[tuple[str, str]]:
    """How many daemon pods controllers created and deleted, by node."""
    found: Counter[tuple[str, str]] = Counter()
    for commit in record.commits:
        if commit.kind != "pods" or not by_controller(commit):
            continue
        before, after = commit.before, commit.after
        if before is None and owner_uid(after):
            found[after.node, "created"] += 1
        elif before is not None and not before.terminating and (not after or after.terminating):
            found[before.node, "deleted"] += 1
    return found

"""L1: how the cluster differs from what its DaemonSets specify."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.objects import Pod
from everynode.api.selector import matches
from everynode.sim.checks.inplace_progress import amounts
from everynode.sim.checks.oracle import (
    ContainerSettings,
    Oracle,
    is_true,
    is_watched,
    node_fit,
    template_containers,
)
from everynode.sim.checks.possible_views import owner_uid
from everynode.sim.checks.withdrawn import is_withdrawn
from everynode.sim.history.cluster_state import ClusterState


def differences_from_spec(cluster: ClusterState, now: float) -> Iterator[str]:
    """Yield every difference from the specs; none when the cluster has converged."""
    for _, ds in sorted(cluster.sets.items()):
        if ds.metadata.deletion_timestamp is None:
            oracle = Oracle(_without_lost(cluster, ds), ds, now)
            yield from (f"{ds.name}: {each}" for each in _of_set(oracle))
    for pod in cluster.pods.values():
        owner = pod.metadata.controller
        if owner is not None and owner.uid not in cluster.sets:
            yield f"pod {pod.name} belongs to a DaemonSet that does not exist"


def _without_lost(cluster: ClusterState, ds: DaemonSet) -> ClusterState:
    """The state without pods that have lost every label by which the controller could find them."""
    lost = [
        pod.uid
        for pod in cluster.pods.values()
        if not is_watched(pod)
        and owner_uid(pod) == ds.uid
        and not matches(ds.selector, pod.metadata.labels)
    ]
    if not lost:
        return cluster
    kept = {uid: pod for uid, pod in cluster.pods.items() if uid not in lost}
    return msgspec.structs.replace(cluster, pods=kept)


def _of_set(oracle: Oracle) -> Iterator[str]:
    for name in sorted(oracle.cluster.nodes):
        yield from _of_node(oracle, name)
    for name in sorted(oracle.pods):
        if name not in oracle.cluster.nodes:
            yield f"a pod points at {name}, which does not exist"
    updated = oracle.updated_nodes & oracle.desired_nodes
    if oracle.updating and not oracle.targets:
        yield "its template is not stored as a revision"
    if oracle.updating:
        reachable = (oracle.selected & oracle.desired_nodes) - updated
        missing = max(0, min(oracle.max_updated, len(updated) + len(reachable)) - len(updated))
        if missing:
            yield f"{missing} nodes are still to be updated"
    yield from _of_revisions(oracle)
    yield from _of_pods(oracle)
    yield from _of_status(oracle)


def _of_revisions(oracle: Oracle) -> Iterator[str]:
    """No revision is kept beyond the history limit unless a pod or the target needs it."""
    if len(oracle.targets) != 1:
        return
    carried = {pod.hash for pods in oracle.pods.values() for pod in pods}
    old = [hash for hash in oracle.templates if hash not in oracle.targets]
    spare = [hash for hash in old if hash not in carried and hash != oracle.needed_source]
    if spare and len(old) > oracle.ds.history_limit:
        yield f"{len(old)} old revisions are kept, {oracle.ds.history_limit} are asked for"


def _of_pods(oracle: Oracle) -> Iterator[str]:
    for pod in oracle.cluster.pods.values():
        labels, owner = pod.metadata.labels, pod.metadata.controller
        if labels.get(keys.PULL_POD_OWNER) == oracle.ds.uid:
            yield f"{pod.name} has fetched what it was to fetch and is still there"
        if owner is None and _should_be_adopted(oracle.ds, pod):
            yield f"{pod.name} has no owner, matches and was not adopted"
        if owner is None or owner.uid != oracle.ds.uid:
            continue
        if not matches(oracle.ds.selector, labels):
            yield f"{pod.name} no longer matches and was not let go"
        template = oracle.templates.get(pod.hash)
        if template is not None and pod_containers(pod) != template_containers(template):
            yield f"{pod.name} is not what its revision {pod.hash} says"


def _should_be_adopted(ds: DaemonSet, pod: Pod) -> bool:
    meta = pod.metadata
    if meta.namespace != ds.namespace or pod.terminating or keys.PULL_POD_OWNER in meta.labels:
        return False
    return matches(ds.selector, meta.labels)


def pod_containers(pod: Pod) -> ContainerSettings:
    """The image and the resources that a pod gives each container."""
    return {each.name: (each.image, amounts(each.resources)) for each in pod.spec.containers}


def _of_node(oracle: Oracle, name: str) -> Iterator[str]:
    node, pods = oracle.cluster.nodes[name], oracle.pods_on(name)
    node_template = node_fit(oracle.node_template(name))
    going = [pod for pod in pods if pod.terminating or pod.finished]
    staying = [pod for pod in pods if pod not in going]
    if going:
        yield f"{name}: {going[0].name} is on its way out"
    if not node_template.may_stay(node):
        if staying:
            yield f"{name}: has a pod that it must not have"
    elif len(staying) > 1:
        yield f"{name}: has {len(staying)} pods"
    elif not staying:
        if _wants_pod(oracle, name) and not oracle.may_hold_back(name):
            yield f"{name}: has no pod"
    elif not oracle.is_available(staying[0]):
        yield f"{name}: {staying[0].name} is not available"
    elif _is_behind(oracle, name) and oracle.updating and is_withdrawn(oracle, staying[0]):
        yield f"{name}: has a pod whose toleration was withdrawn"
    elif _is_behind(oracle, name) and node_template.should_run(node):
        yield f"{name}: is not at the target"


def _wants_pod(oracle: Oracle, name: str) -> bool:
    """Whether an empty node should have a pod, by every revision that it may be held at."""
    templates = [oracle.node_template(name)]
    if not oracle.unrestricted and name not in oracle.scope:
        templates += [oracle.ds.template, *oracle.templates.values()]
    return all(node_fit(each).should_run(oracle.cluster.nodes[name]) for each in templates)


def _is_behind(oracle: Oracle, name: str) -> bool:
    # Where no node is held, the scope need not be computed.
    moves = oracle.rolling and (oracle.unrestricted or name in oracle.scope)
    return moves and not any(map(oracle.at_target, oracle.staying(name)))


def _of_status(oracle: Oracle) -> Iterator[str]:
    ds: DaemonSet = oracle.ds
    status = ds.status
    if status.observed_generation != ds.metadata.generation:
        yield f"generation {ds.metadata.generation} is not observed yet"
        return
    desired_nodes = oracle.desired_nodes
    firsts = {name: pods[0] for name, pods in oracle.pods.items() if pods and name in desired_nodes}
    ready = sum(is_true(pod, keys.READY) for pod in firsts.values())
    available = sum(oracle.is_available(pod) for pod in firsts.values())
    updated = sum(oracle.at_target(pod) for pod in firsts.values())
    counts = {
        "desired": (status.desired, len(desired_nodes)),
        "current": (status.current, len(firsts)),
        "ready": (status.ready, ready),
        "available": (status.available, available),
        "unavailable": (status.unavailable, len(desired_nodes) - available),
        "updated": (status.updated, updated),
    }
    for name, (shown, actual) in counts.items():
        if shown != actual:
            yield f"the status shows {shown} {name}, it is {actual}"
    if ("Faulty", "True", "Refused") in [(e.type, e.status, e.reason) for e in status.conditions]:
        yield "a write that was refused is still to be tried again"
    condition = {each.type: each.status for each in status.conditions}.get("Ready")
    if ds.flavour is Flavour.ADVANCED and condition != "True":
        yield f"all is as declared, and the condition Ready is {condition}"

"""L1: whether the store is what its DaemonSets ask for, and if not, what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.api.selector import matches
from everynode.sim.invariants.referee import (
    Asked,
    Referee,
    amounts,
    asked_for,
    is_seen,
    is_true,
    wants,
)
from everynode.sim.invariants.views import owner_uid
from everynode.sim.record import Scene


def complaints(scene: Scene, now: float) -> Iterator[str]:
    """What is not yet as it should be, one by one; none when the world is at rest."""
    for _, ds in sorted(scene.sets.items()):
        if ds.metadata.deletion_timestamp is None:
            referee = Referee(_without_lost(scene, ds), ds, now)
            yield from (f"{ds.name}: {each}" for each in _of_set(referee))
    for pod in scene.pods.values():
        owner = pod.metadata.controller
        if owner is not None and owner.uid not in scene.sets:
            yield f"pod {pod.name} belongs to nobody that is there"


def _without_lost(scene: Scene, ds: DaemonSet) -> Scene:
    """A scene without pods from which somebody took all by which they could be found."""
    lost = [
        pod.uid
        for pod in scene.pods.values()
        if not is_seen(pod)
        and owner_uid(pod) == ds.uid
        and not matches(ds.selector, pod.metadata.labels)
    ]
    if not lost:
        return scene
    kept = {uid: pod for uid, pod in scene.pods.items() if uid not in lost}
    return msgspec.structs.replace(scene, pods=kept)


def _of_set(referee: Referee) -> Iterator[str]:
    for name in sorted(referee.scene.nodes):
        yield from _of_node(referee, name)
    for name in sorted(referee.pods):
        if name not in referee.scene.nodes:
            yield f"a pod points at {name}, which does not exist"
    updated = referee.holders & referee.wanted
    if referee.updating and not referee.targets:
        yield "its template is not stored as a revision"
    if referee.updating:
        reachable = (referee.selected & referee.wanted) - updated
        missing = max(0, min(referee.cut, len(updated) + len(reachable)) - len(updated))
        if missing:
            yield f"{missing} nodes are still to be updated"
    yield from _of_revisions(referee)
    yield from _of_pods(referee)
    yield from _of_status(referee)


def _of_revisions(referee: Referee) -> Iterator[str]:
    """None is kept that is neither young enough, nor carried, nor what the target came from."""
    if len(referee.targets) != 1:
        return
    carried = {pod.hash for pods in referee.pods.values() for pod in pods}
    old = [hash for hash in referee.templates if hash not in referee.targets]
    spare = [hash for hash in old if hash not in carried and hash != referee.came_from]
    if spare and len(old) > referee.ds.history_limit:
        yield f"{len(old)} old revisions are kept, {referee.ds.history_limit} are asked for"


def _of_pods(referee: Referee) -> Iterator[str]:
    for pod in referee.scene.pods.values():
        labels, owner = pod.metadata.labels, pod.metadata.controller
        if labels.get(keys.PULLER) == referee.ds.uid:
            yield f"{pod.name} has fetched what it was to fetch and is still there"
        if owner is None or owner.uid != referee.ds.uid:
            continue
        if not matches(referee.ds.selector, labels):
            yield f"{pod.name} no longer matches and was not let go"
        template = referee.templates.get(pod.hash)
        if template is not None and _asked_of(pod) != asked_for(template):
            yield f"{pod.name} is not what its revision {pod.hash} says"


def _asked_of(pod: Pod) -> Asked:
    return {each.name: (each.image, amounts(each.resources)) for each in pod.spec.containers}


def _of_node(referee: Referee, name: str) -> Iterator[str]:
    node, pods = referee.scene.nodes[name], referee.pods_on(name)
    life = wants(referee.life(name))
    going = [pod for pod in pods if pod.terminating or pod.finished]
    staying = [pod for pod in pods if pod not in going]
    if going:
        yield f"{name}: {going[0].name} is on its way out"
    if not life.stays(node):
        if staying:
            yield f"{name}: has a pod that it must not have"
    elif len(staying) > 1:
        yield f"{name}: has {len(staying)} pods"
    elif not staying:
        if life.runs(node) and not referee.may_withhold(name):
            yield f"{name}: has no pod"
    elif not referee.is_up(staying[0]):
        yield f"{name}: {staying[0].name} is not available"
    elif _is_behind(referee, name) and life.runs(node):
        yield f"{name}: is not at the target"


def _is_behind(referee: Referee, name: str) -> bool:
    # Where no node is held, nobody has to work out which of them are.
    moves = referee.rolling and (referee.free or name in referee.scope)
    return moves and not any(map(referee.at_target, referee.staying(name)))


def _of_status(referee: Referee) -> Iterator[str]:
    ds: DaemonSet = referee.ds
    status = ds.status
    if status.observed_generation != ds.metadata.generation:
        yield f"generation {ds.metadata.generation} is not observed yet"
        return
    wanted = referee.wanted
    firsts = {name: pods[0] for name, pods in referee.pods.items() if pods and name in wanted}
    ready = sum(is_true(pod, keys.READY) for pod in firsts.values())
    available = sum(referee.is_up(pod) for pod in firsts.values())
    updated = sum(referee.at_target(pod) for pod in firsts.values())
    counts = {
        "desired": (status.desired, len(wanted)),
        "current": (status.current, len(firsts)),
        "ready": (status.ready, ready),
        "available": (status.available, available),
        "unavailable": (status.unavailable, len(wanted) - available),
        "updated": (status.updated, updated),
    }
    for name, (said, is_so) in counts.items():
        if said != is_so:
            yield f"the status says {said} {name}, it is {is_so}"

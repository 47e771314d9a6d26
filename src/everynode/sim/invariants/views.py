"""What a controller may have seen when it decided: the states between its view and the commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.sim.invariants.referee import gate_closed, is_preparing
from everynode.sim.record import Commit, Record, Scene

_MOST: Final = 200  # combinations that are tried before a decision is given the benefit of doubt

CONTROLLER: Final = "controller"


def by_controller(commit: Commit) -> bool:
    """Whether one of our controllers wrote this."""
    return commit.actor.startswith(CONTROLLER)


def owner_uid(pod: Pod) -> str:
    """The uid of whom a pod belongs to."""
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def taken_pod(commit: Commit) -> Pod | None:
    """The pod that this commit takes out of service, as it was before."""
    before, after = commit.before, commit.after
    if commit.kind != "pods" or before is None or before.terminating or before.finished:
        return None
    if is_preparing(before):
        return None
    if after is None or after.terminating or is_preparing(after):
        return before  # type: ignore[no-any-return]
    if gate_closed(before):
        return None
    if gate_closed(after) and not before.metadata.annotations.inplace_state:
        return before  # type: ignore[no-any-return]
    changed = after.hash != before.hash and before.spec.containers != after.spec.containers
    return before if changed else None


class Doubt(Exception):
    """So much may have been seen that nothing can be said against a decision."""


def views(record: Record, commit: Commit) -> Iterator[tuple[Scene, int]]:
    """States of the store on which the decision may rest, newest first, with their pods' version.

    Each kind comes over a watch of its own, so that the parts may be of different age. Raises Doubt
    when there are too many.
    """
    assert commit.asked is not None
    floor = max(commit.asked.floor, _term_began(record, commit.actor))
    seen: list[Scene] = []
    for scene in reversed(record.scenes[:-1]):
        seen.append(scene)
        yield scene, scene.version
        if scene.version <= floor:
            break
    yield from _mixed(seen)


def _term_began(record: Record, actor: str) -> int:
    """The version at which this process came to lead: it has listed everything since."""
    for each in reversed(record.commits):
        if not each.kind.startswith("leases") or each.actor != actor or each.after is None:
            continue
        holder = each.before.spec.holder_identity if each.before is not None else ""
        if holder != each.after.spec.holder_identity:
            return each.version
    return 0


def _mixed(seen: list[Scene]) -> Iterator[tuple[Scene, int]]:
    nodes = _distinct(seen, "nodes")
    pods = _distinct(seen, "pods")
    plans = [s for i, s in enumerate(seen) if i == 0 or s.sets is not seen[i - 1].sets]
    count = 0
    for with_pods in pods:
        for with_nodes in nodes:
            for plan in plans:
                count += 1
                if count > _MOST:
                    raise Doubt
                yield (
                    Scene(
                        with_pods.version,
                        with_pods.time,
                        with_nodes.nodes,
                        with_pods.pods,
                        plan.sets,
                        plan.revisions,
                    ),
                    with_pods.version,
                )


def _distinct(seen: list[Scene], part: str) -> list[Scene]:
    return [
        scene
        for index, scene in enumerate(seen)
        if index == 0 or getattr(scene, part) is not getattr(seen[index - 1], part)
    ]


def taken_since(record: Record, commit: Commit, version: int) -> set[str]:
    """The pods that the same process took after a version, up to and with this commit."""
    found = set()
    for each in reversed(record.commits):
        if each.version <= version:
            break
        if each.actor == commit.actor:
            pod = taken_pod(each)
            if pod is not None:
                found.add(pod.uid)
    return found


def hash_of(pod: Pod) -> str:
    """The revision that a pod names."""
    return pod.metadata.labels.get(keys.REVISION_HASH, "")

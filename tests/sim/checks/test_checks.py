"""Checks: each promise is broken once on purpose by a rogue controller's writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from everynode.kube import verbs
from everynode.kube.requests import Request
from everynode.kube.resources import ADVANCED, NODES, PODS, REVISIONS
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.world import World
from tests.support.rogue import Deed, delete_pod, play_with_rogue, running_pods

AT = 30.0


def _play(deed: Deed, manifest: dict[str, Any], *, controllers: int, images: str) -> list[str]:
    """The violations, with their messages, when a rogue controller performs `deed` at 30 s."""
    actions: tuple[Action, ...] = ()
    if images:
        actions = (Action("set-image", at=20.0, args={"image": images}),)
    plan = Plan(
        1,
        nodes=3,
        manifests=(manifest,),
        actions=actions,
        timing=Timing(stop=30.0),
        controllers=controllers,
        quiet_at=40.0,
        patience=60.0,
    )
    world = play_with_rogue(plan, deed, at=AT)
    return [text for _, text in world.notes if text.startswith("BROKEN ")]


def _stored(world: World, kind: str, name: str) -> dict[str, Any]:
    record = world.api.store.collection(kind).get("default", name)
    assert record is not None
    found: dict[str, Any] = msgspec.json.decode(record.body)
    return found


def take_one(world: World) -> Iterator[Request]:
    yield delete_pod(running_pods(world)[0])


def evict_one(world: World) -> Iterator[Request]:
    name = running_pods(world)[0].name
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    yield verbs.create(PODS, body, namespace="default", name=name, subresource="eviction")


def take_blindly(world: World) -> Iterator[Request]:
    yield verbs.delete(PODS, running_pods(world)[0].name, namespace="default")


def _create_beside(world: World, **naming: str) -> Request:
    obj = _stored(world, "pods", running_pods(world)[0].name)
    meta = {key: obj["metadata"][key] for key in ("labels", "ownerReferences")}
    body = {**obj, "metadata": {**meta, **naming, "namespace": "default"}}
    body.pop("status")
    return verbs.create(PODS, body, namespace="default")


def double(world: World) -> Iterator[Request]:
    """Create another pod of the same revision on the same node."""
    yield _create_beside(world, name="double")


def install_everywhere(world: World) -> Iterator[Request]:
    """Create a pod on a node that a progressive first installation has not reached yet."""
    obj = _stored(world, "pods", running_pods(world)[0].name)
    meta = {key: obj["metadata"][key] for key in ("labels", "ownerReferences")}
    body = {**obj, "metadata": {**meta, "name": "early", "namespace": "default"}}
    body["spec"] = {**obj["spec"], "nodeName": "node-0001"}
    body.pop("status")
    yield verbs.create(PODS, body, namespace="default")


def let_the_server_name_it(world: World) -> Iterator[Request]:
    yield _create_beside(world, generateName="agent-")


def label_a_node(world: World) -> Iterator[Request]:
    yield verbs.patch(NODES, "node-0001", {"metadata": {"labels": {"a": "b"}}})


def let_go(world: World) -> Iterator[Request]:
    """Remove the owner of a pod that matches the selector."""
    pod = running_pods(world)[0]
    body = {"metadata": {"uid": pod.uid, "ownerReferences": None}}
    yield verbs.patch(PODS, pod.name, body, namespace="default")


def mark_otherwise(world: World) -> Iterator[Request]:
    pod = running_pods(world)[0]
    state = {"lifecycle.apps.kruise.io/state": "PreparingUpdate"}
    body = {"metadata": {"uid": pod.uid, "labels": state}}
    yield verbs.patch(PODS, pod.name, body, namespace="default")


def change_the_image(world: World) -> Iterator[Request]:
    """Change an image in place without closing the gate and without writing the revision hash."""
    pod = running_pods(world)[0]
    containers = [{"name": "agent", "image": "agent:v7"}]
    body = {"metadata": {"uid": pod.uid}, "spec": {"containers": containers}}
    kind = "application/strategic-merge-patch+json"
    yield verbs.patch(PODS, pod.name, body, kind=kind, namespace="default")


def renumber(world: World) -> Iterator[Request]:
    name, revision = next(iter(world.record.cluster.revisions.items()))
    body = {"metadata": {"uid": revision.metadata.uid}, "revision": 0}
    yield verbs.patch(REVISIONS, name, body, namespace="default")


def drop_a_used_revision(world: World) -> Iterator[Request]:
    name, revision = next(iter(world.record.cluster.revisions.items()))
    meta = revision.metadata
    yield verbs.delete(
        REVISIONS, name, namespace="default", uid=meta.uid, version=meta.resource_version
    )


def forget_what_was_observed(world: World) -> Iterator[Request]:
    ds = next(iter(world.record.cluster.sets.values()))
    body = {"metadata": {"uid": ds.uid}, "status": {"observedGeneration": 0}}
    yield verbs.patch(ADVANCED, ds.name, body, namespace="default", subresource="status")


def _write_status(world: World, **status: object) -> Request:
    ds = next(iter(world.record.cluster.sets.values()))
    body = {"metadata": {"uid": ds.uid}, "status": status}
    return verbs.patch(ADVANCED, ds.name, body, namespace="default", subresource="status")


def want_more(world: World) -> Iterator[Request]:
    yield _write_status(world, desiredNumberScheduled=99)


def lose_one(world: World) -> Iterator[Request]:
    """Write the desired, current and ready counts one too low."""
    yield _write_status(world, desiredNumberScheduled=2, currentNumberScheduled=2, numberReady=2)


def miss_one(world: World) -> Iterator[Request]:
    yield _write_status(world, numberMisscheduled=1)


def count_one_less_current(world: World) -> Iterator[Request]:
    """Write a status with two current nodes instead of three."""
    rest = {"numberReady": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
    yield _write_status(world, currentNumberScheduled=2, numberUnavailable=1, **rest)


def count_one_less_ready(world: World) -> Iterator[Request]:
    yield _write_status(world, numberReady=2, numberAvailable=2, numberUnavailable=1)


def count_one_less_available(world: World) -> Iterator[Request]:
    yield _write_status(world, numberAvailable=2, numberUnavailable=1)


def count_one_less_updated(world: World) -> Iterator[Request]:
    yield _write_status(world, updatedNumberScheduled=2)


def count_those_that_leave(world: World) -> Iterator[Request]:
    """Count the node of a terminating pod as available."""
    yield _write_status(world, numberAvailable=3, numberUnavailable=0)


def count_as_before(world: World) -> Iterator[Request]:
    """Write the counts from before a pod was deleted, though the writer knows of the deletion."""
    pod = running_pods(world)[0]
    yield verbs.delete(PODS, pod.name, namespace="default", grace_seconds=0)
    yield _write_status(world, collisionCount=1)


def name_another_target(world: World) -> Iterator[Request]:
    yield _write_status(world, updateRevision="5d8f6c7b9")


def observe_too_much(world: World) -> Iterator[Request]:
    yield _write_status(world, observedGeneration=2)


def empty_and_fill(world: World) -> Iterator[Request]:
    """Delete and create the same pod four times."""
    pod = running_pods(world)[0]
    obj = _stored(world, "pods", pod.name)
    meta = {key: obj["metadata"][key] for key in ("labels", "ownerReferences", "name")}
    body = {**obj, "metadata": {**meta, "namespace": "default"}}
    body.pop("status")
    for _ in range(4):
        yield verbs.delete(PODS, pod.name, namespace="default", grace_seconds=0)
        yield verbs.create(PODS, body, namespace="default")


def write_and_write(world: World) -> Iterator[Request]:
    """Patch the same pod again and again."""
    pod = running_pods(world)[0]
    for number in range(3):
        body = {"metadata": {"uid": pod.uid, "annotations": {"touched": str(number)}}}
        yield verbs.patch(PODS, pod.name, body, namespace="default")


PLAIN = daemonset(rolling={"maxUnavailable": 1})
SURGING = daemonset(rolling={"maxSurge": 1, "maxUnavailable": 0})
HOOKED = daemonset(
    lifecycle={"preDelete": {"labelsHandler": {"hook": "yes"}}}, labels={"hook": "yes"}
)
STEPWISE = daemonset(rolling={"partition": 2}, scaleStrategy={"partitionedScaling": True})
CASES = [
    ("S1a", take_one, PLAIN, 1, "agent:v2"),
    ("S1c", take_one, PLAIN, 1, "agent:never-ready"),
    ("S1: a Ready pod was taken before", take_one, SURGING, 1, "agent:never-ready"),
    ("S2", double, PLAIN, 1, ""),
    ("S3/S4", take_one, daemonset(rolling={"partition": 3}), 1, "agent:v2"),
    ("S5", take_one, daemonset(rolling={"paused": True}), 1, "agent:v2"),
    ("S6", label_a_node, PLAIN, 1, ""),
    ("S6", let_go, PLAIN, 1, ""),
    ("S7", take_one, PLAIN, 1, ""),
    ("S8", renumber, PLAIN, 1, ""),
    ("S8", drop_a_used_revision, PLAIN, 1, ""),
    ("S9", change_the_image, PLAIN, 1, ""),
    ("S10", take_one, HOOKED, 1, ""),
    ("S10", mark_otherwise, HOOKED, 1, ""),
    ("S11", forget_what_was_observed, PLAIN, 1, ""),
    ("S11: 99 nodes", want_more, PLAIN, 1, ""),
    ("S11: 2 nodes are wanted in the status, it is 3", lose_one, PLAIN, 1, ""),
    ("S11: 1 nodes are misscheduled in the status, it is 0", miss_one, PLAIN, 1, ""),
    ("S11: 2 nodes are current in the status, it is 3", count_one_less_current, PLAIN, 1, ""),
    ("S11: 2 nodes are ready in the status, it is 3", count_one_less_ready, PLAIN, 1, ""),
    ("S11: 2 nodes are available in the status, it is 3", count_one_less_available, PLAIN, 1, ""),
    ("S11: 2 nodes are updated in the status, it is 3", count_one_less_updated, PLAIN, 1, ""),
    ("S11: 3 nodes are available in the status", count_those_that_leave, PLAIN, 1, "agent:v2"),
    ("S11: 3 nodes are current in the status, it is 2", count_as_before, PLAIN, 1, ""),
    ("S11: the status names the target 5d8f6c7b9", name_another_target, PLAIN, 1, ""),
    ("S11: observedGeneration is 2, the generation is", observe_too_much, PLAIN, 1, ""),
    ("S12", take_blindly, PLAIN, 1, ""),
    ("S12", let_the_server_name_it, PLAIN, 1, ""),
    ("S13", take_one, PLAIN, 2, ""),
    ("L4", empty_and_fill, PLAIN, 1, ""),
    ("L3", write_and_write, PLAIN, 1, ""),
    ("F29", evict_one, PLAIN, 1, ""),
    ("R8", install_everywhere, STEPWISE, 1, ""),
]


@pytest.mark.parametrize(
    ("promise", "deed", "manifest", "controllers", "images"),
    CASES,
    ids=[f"{promise[:6].strip(':')}-{deed.__name__}" for promise, deed, *_ in CASES],
)
def test_a_broken_promise_is_noticed(
    promise: str, deed: Deed, manifest: dict[str, Any], controllers: int, images: str
) -> None:
    broken = _play(deed, manifest, controllers=controllers, images=images)
    assert any(promise in text for text in broken), broken

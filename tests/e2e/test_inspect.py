"""What a reader works out from a snapshot is what the controller itself decides."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.api.versions import decode_daemonset
from everynode.decide.node.assessment import Assessment
from everynode.inspect.evaluate import Evaluation, evaluate
from everynode.inspect.fleet import NodeStanding, RolloutState
from everynode.inspect.snapshot import SnapshotReader
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import PODS
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset, kind_of
from tests.support.transports import Access, Permitted

Object = dict[str, Any]
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])
READING = {
    Access("", "nodes", "list"),
    Access("", "pods", "list"),
    Access("apps", "controllerrevisions", "list"),
}


async def looked_at(stage: Stage, manifest: Object, rights: set[Access] = READING) -> Evaluation:
    """Read a snapshot with these rights alone, which include no write."""
    name = manifest["metadata"]["name"]
    request = verbs.get(kind_of(manifest), name, namespace=stage.namespace)
    ds = decode_daemonset(await stage.client.read(request, bytes))
    reader = SnapshotReader(Client(Permitted(stage.transport, rights), stage.clock))
    return evaluate(await reader.read(ds), stage.clock.now())


def decided(stage: Stage, manifest: Object) -> dict[str, Assessment]:
    """The assessments that the running controller has made."""
    assert stage.controller is not None
    [state] = [
        each
        for each in stage.controller.informers.states.values()
        if each.ds.name == manifest["metadata"]["name"]
    ]
    assert state.ledger is not None
    return {each.name: each for each in state.ledger.assessments()}


def essence(made: Assessment) -> tuple[object, ...]:
    return made.in_scope, made.revision, made.reason, made.queue, made.counts


async def agreed(stage: Stage, manifest: Object) -> Evaluation:
    """Look at a rollout that has come to rest; the controller must have found the same."""
    seen = await looked_at(stage, manifest)
    theirs = decided(stage, manifest)
    assert {name: essence(each) for name, each in seen.assessments.items()} == {
        name: essence(each) for name, each in theirs.items()
    }
    written = stage.status(manifest)
    assert seen.fleet.status == written  # numbers, conditions, messages
    return seen


@BOTH
async def test_a_complete_rollout_and_one_that_waits(play: Play, version: str) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 3)
        fleet = (await agreed(stage, manifest)).fleet
        assert fleet.state is RolloutState.COMPLETE
        assert [row.standing for row in fleet.rows] == [NodeStanding.UPDATED] * 3
        await stage.set_image(manifest, "agent:never-ready")
        await stage.until(
            lambda: reason_of(stage, manifest) == "NotReady" and stage.observed(manifest),
            "the cause is named",
        )
        fleet = (await agreed(stage, manifest)).fleet
        assert fleet.state is RolloutState.WAITING
        assert [row.standing for row in fleet.rows] == ["queued", "queued", "waiting"]
        assert [row.place for row in fleet.rows] == [2, 1, None]
        assert list(fleet.waiting.values()) == [("node-0003",)]
        assert (fleet.budget.used, fleet.budget.promised) == (1, 1)
        assert [each.number for each in fleet.revisions] == [1, 2]
        assert [each.images for each in fleet.revisions] == [("agent:v1",), ("agent:never-ready",)]


async def test_a_held_a_paused_and_a_tainted_rollout(play: Play) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(rolling={"partition": 2})
        await stage.start(manifest, 4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until(lambda: reason_of(stage, manifest) == "Held", "two nodes are held")
        fleet = (await agreed(stage, manifest)).fleet
        assert fleet.state is RolloutState.HELD
        assert [row.standing for row in fleet.rows] == ["held", "held", "updated", "updated"]
        assert [fleet.revision_number(row.revision) for row in fleet.rows] == [1, 1, 2, 2]
        await stage.set_rolling(manifest, partition=0, paused=True)
        await stage.until(lambda: reason_of(stage, manifest) == "Paused", "it is paused")
        assert (await agreed(stage, manifest)).fleet.state is RolloutState.PAUSED
        await stage.taint_node("node-0001", {"key": "gpu", "effect": "NoSchedule"})
        await stage.set_rolling(manifest, paused=False)
        await stage.until(lambda: stage.status(manifest).desired == 3, "one node is tainted")
        await stage.until_complete(manifest)
        seen = await agreed(stage, manifest)
        assert seen.fleet.rows[0].reason == "Tainted"
        assert not seen.assessments["node-0001"].eligibility.should_run


async def test_a_target_that_the_server_refuses(play: Play) -> None:
    """Only the controller asks the server; its condition tells the reader."""
    async with play(nodes=2) as stage:
        manifest = daemonset()
        await stage.start(manifest, 2)
        await stage.change_template(manifest, priorityClassName="no-such-class")
        await stage.until(lambda: reason_of(stage, manifest) == "Refused", "it is said why")
        fleet = (await agreed(stage, manifest)).fleet
        assert fleet.state is RolloutState.WAITING
        assert "no-such-class" in fleet.refusal


async def test_a_first_pod_that_the_server_refuses(play: Play) -> None:
    """The controller's condition names the nodes whose pods were refused."""
    async with play(nodes=1) as stage:
        manifest = daemonset(template={"spec": {"priorityClassName": "no-such-class"}})
        await stage.create(manifest)
        await stage.until(lambda: reason_of(stage, manifest) == "Refused", "it is said why")
        fleet = (await looked_at(stage, manifest)).fleet
        assert (fleet.state, fleet.waiting) == (RolloutState.WAITING, {"Refused": ("node-0001",)})


async def test_missing_rights_are_named_and_the_rest_is_shown(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset()
        await stage.start(manifest, 2)
        fleet = (await looked_at(stage, manifest, {Access("", "pods", "list")})).fleet
        assert [row.standing for row in fleet.rows] == [NodeStanding.UPDATED] * 2
        assert fleet.counts.desired == 2
        assert [each.partition(" in ")[0] for each in fleet.missing] == [
            "list nodes",
            "list controllerrevisions.apps",
        ]
        blind = (await looked_at(stage, manifest, READING - {Access("", "pods", "list")})).fleet
        assert [row.pod for row in blind.rows] == ["", ""]
        assert len(blind.missing) == 1


async def test_pods_of_other_owners_are_ignored(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset()
        await stage.start(manifest, 1)
        node = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
        foreign = {
            "metadata": {
                "name": "foreign",
                "labels": {"app": "agent", "controller-revision-hash": "other"},
                "ownerReferences": [node],
            },
            "spec": {"nodeName": "node-0001", "containers": [{"name": "x", "image": "x:1"}]},
        }
        await stage.make(PODS, foreign)
        seen = await looked_at(stage, manifest)
        assert [len(pods) for pods in seen.pods.values()] == [1]


def reason_of(stage: Stage, manifest: Object) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.reason if condition is not None else ""

"""Garbage collection: background, foreground and orphan."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.components.controllers.garbage_collector import GarbageCollector, _WatchConsumer
from everynode.components.informers import SharedInformers
from everynode.components.objects import decode_partial_metadata
from everynode.components.run import ComponentOptions
from everynode.components.timers import Timers
from everynode.kube import verbs
from everynode.kube.errors import NotFound
from everynode.kube.resources import CRDS, DAEMONSETS, PODS, REVISIONS, Resource
from tests.support.components_cluster import World, pod_body, running, virtual
from tests.support.scripted_server import ManualClock, ScriptedTransport

Object = dict[str, Any]
LABELS = {"app": "agent"}
SET = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "agent", "image": "agent:v1"}]},
        },
    },
}


def owner(obj: Object, *, blocking: bool = True) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": blocking,
    }


async def family(world: World, **pod: Any) -> Object:
    """A DaemonSet with a running pod and a revision."""
    above = await world.create(DAEMONSETS, SET)
    await world.create(PODS, pod_body("one", node="node-0001", owners=[owner(above)], **pod))
    meta = {"name": "web-1", "ownerReferences": [owner(above)]}
    revision = {"metadata": meta, "revision": 1, "data": {"spec": {}}}
    await world.create(REVISIONS, revision)
    await world.ready("one")
    return above


async def names(world: World) -> list[str]:
    found = []
    for resource in (DAEMONSETS, PODS, REVISIONS):
        found += [each["metadata"]["name"] for each in await world.all(resource)]
    return found


@virtual
async def test_in_the_background_the_owner_goes_first() -> None:
    async with running() as world:
        await family(world)
        await world.delete(DAEMONSETS, "web", propagation="Background")
        assert "web" not in await names(world)
        assert "one" in await names(world)
        await world.pass_time(3)
        assert await names(world) == []


@virtual
async def test_in_the_foreground_the_owner_goes_last() -> None:
    async with running() as world:
        await family(world)
        await world.delete(DAEMONSETS, "web", propagation="Foreground")
        await world.pass_time(0.5)
        assert await names(world) == ["web", "one"]
        await world.pass_time(3)
        assert await names(world) == []


@virtual
async def test_orphans_stay_and_forget_their_owner() -> None:
    async with running() as world:
        await family(world)
        await world.delete(DAEMONSETS, "web", propagation="Orphan")
        await world.pass_time(3)
        assert await names(world) == ["one", "web-1"]
        pod = await world.pod("one")
        assert "ownerReferences" not in pod["metadata"]
        assert "deletionTimestamp" not in pod["metadata"]


@virtual
async def test_what_has_another_owner_only_forgets_the_one_that_is_gone() -> None:
    async with running() as world:
        above = await family(world)
        second = await world.create(DAEMONSETS, {**SET, "metadata": {"name": "other"}})
        both = [owner(above), {**owner(second), "controller": False}]
        await world.patch(PODS, "one", {"metadata": {"ownerReferences": both}})
        await world.delete(DAEMONSETS, "web", propagation="Background")
        await world.pass_time(3)
        pod = await world.pod("one")
        assert [each["name"] for each in pod["metadata"]["ownerReferences"]] == ["other"]


@virtual
async def test_what_is_created_for_an_owner_that_is_gone_goes_at_once() -> None:
    async with running() as world:
        above = await family(world)
        await world.delete(DAEMONSETS, "web", propagation="Background")
        await world.pass_time(5)
        await world.create(PODS, pod_body("late", owners=[owner(above)]))
        await world.pass_time(3)
        assert await names(world) == []


@virtual
async def test_an_owner_of_the_same_name_but_another_uid_is_no_owner() -> None:
    async with running() as world:
        await family(world)
        api = world.api
    async with running(ComponentOptions(nodes=0, controllers=False), api=api) as world:
        await world.delete(DAEMONSETS, "web", propagation="Background")
        await world.create(DAEMONSETS, SET)
    async with running(api=api) as world:
        await world.pass_time(3)
        assert await names(world) == ["web"]


@virtual
async def test_an_owner_in_another_namespace_is_no_owner() -> None:
    async with running() as world:
        above = await family(world)
        meta = {"name": "foreign", "ownerReferences": [owner(above)]}
        foreign = {"metadata": meta, "revision": 1, "data": {"spec": {}}}
        await world.create(REVISIONS, foreign, "kube-system")
        await world.pass_time(3)
        with pytest.raises(NotFound):
            await world.get(REVISIONS, "foreign", "kube-system")
        assert await names(world) == ["web", "one", "web-1"]


@virtual
async def test_an_owner_of_an_unknown_kind_is_assumed_to_exist() -> None:
    async with running() as world:
        strange = {"apiVersion": "example.io/v1", "kind": "Thing", "name": "x", "uid": "1-2-3"}
        await world.create(PODS, pod_body("one", owners=[strange]))
        await world.pass_time(10)
        assert await names(world) == ["one"]


@virtual
async def test_an_owner_of_a_kind_installed_later_is_checked_then() -> None:
    async with running() as world:
        strange = {"apiVersion": "example.io/v1", "kind": "Thing", "name": "x", "uid": "1-2-3"}
        await world.create(PODS, pod_body("one", owners=[strange]))
        await world.pass_time(1)
        await world.ask(verbs.create(CRDS, DEFINITION))
        await world.pass_time(5)
        assert await names(world) == []


THINGS = Resource("example.io", "v1", "things", "Thing")
DEFINITION = {
    "metadata": {"name": "things.example.io"},
    "spec": {
        "group": "example.io",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@virtual
async def test_kinds_that_come_later_are_watched_too() -> None:
    async with running() as world:
        await world.ask(verbs.create(CRDS, DEFINITION))
        await world.pass_time(1)
        body = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "above"}}
        above = await world.create(THINGS, body)
        reference = {**owner(above), "apiVersion": "example.io/v1", "kind": "Thing"}
        meta = {"name": "below", "ownerReferences": [reference]}
        await world.create(THINGS, {**body, "metadata": meta})
        await world.create(PODS, pod_body("one", owners=[reference]))
        await world.pass_time(1)
        await world.delete(THINGS, "above", propagation="Background")
        await world.pass_time(3)
        assert await names(world) == []
        with pytest.raises(NotFound):
            await world.get(THINGS, "below")


@virtual
async def test_at_rest_the_collector_asks_for_nothing() -> None:
    async with running() as world:
        await family(world)
        await world.pass_time(5)
        sent = world.ledger.sent
        await world.pass_time(100)
        assert world.ledger.sent == sent


async def test_an_owner_that_cannot_be_read_is_not_taken_for_gone() -> None:
    transport, clock = ScriptedTransport(), ManualClock()
    informers = SharedInformers(transport, clock)
    collector = GarbageCollector(transport, clock, informers=informers, timers=Timers(clock))
    feed = _WatchConsumer(collector, DAEMONSETS)
    a, b, c = (
        decode_partial_metadata(b'{"metadata":{"name":"%c","uid":"%c"}}' % (x, x)) for x in b"abc"
    )
    feed.replace([a, b, c], "1")
    feed.replace([a], "2", {"default/b": "b"})
    assert list(collector.graph.objects) == ["a", "b"]
    feed.replace([a], "3")
    assert list(collector.graph.objects) == ["a"]


MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def claimed(obj: Object, **wrong: str) -> Object:
    meta = obj["metadata"]
    said = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
    return {**said, **wrong}


@virtual
async def test_owner_of_another_namespace_is_no_owner() -> None:
    async with running() as world:
        above = await world.create(MAPS, {"metadata": {"name": "a"}}, namespace="kube-system")
        theirs = {"metadata": {"name": "b", "ownerReferences": [claimed(above)]}}
        await world.create(MAPS, theirs, namespace="kube-system")
        await world.create(MAPS, {"metadata": {"name": "c", "ownerReferences": [claimed(above)]}})
        await world.pass_time(5)
        left = [each["metadata"]["name"] for each in await world.all(MAPS)]
        assert [name for name in left if len(name) == 1] == ["a", "b"]


@virtual
async def test_reference_that_is_wrong_says_nothing_about_its_owner() -> None:
    async with running() as world:
        above = await world.create(MAPS, {"metadata": {"name": "a"}})
        for index, wrong in enumerate(({"name": "x"}, {"kind": "Secret"}, {"name": "../a"})):
            meta = {"name": f"wrong-{index}", "ownerReferences": [claimed(above, **wrong)]}
            await world.create(MAPS, {"metadata": meta})
        await world.pass_time(5)
        await world.create(
            MAPS, {"metadata": {"name": "right", "ownerReferences": [claimed(above)]}}
        )
        await world.pass_time(5)
        left = [each["metadata"]["name"] for each in await world.all(MAPS)]
        # Of a name that cannot be looked up nothing is known, and nothing is removed on suspicion.
        assert sorted(set(left) - {"kube-root-ca.crt"}) == ["a", "right", "wrong-2"]


@virtual
async def test_owners_that_own_each_other_and_themselves_harm_no_other_object() -> None:
    async with running() as world:
        one, two = [await world.create(MAPS, {"metadata": {"name": name}}) for name in "ab"]
        for name, owners in (("a", [claimed(two), claimed(one)]), ("b", [claimed(one)])):
            body = {"metadata": {"ownerReferences": owners}}
            await world.patch(MAPS, name, body)
        await world.delete(MAPS, "a", propagation="Foreground")
        above = await world.create(DAEMONSETS, SET)
        await world.create(PODS, pod_body("one", node="node-0001", owners=[owner(above)]))
        await world.ready("one")
        await world.delete(DAEMONSETS, "web", propagation="Background")
        await world.gone("one")

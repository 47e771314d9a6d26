from __future__ import annotations

import asyncio

import msgspec

from everynode.apiserver.storage.store import Store
from everynode.kube.requests import Request
from tests.support.api_client import CORE, MAPS, PODS, Cluster, bound, config_map, pod


async def test_watch_from_a_version_sees_everything_after_it_in_order(cluster: Cluster) -> None:
    first = await cluster.create(MAPS, config_map("a"))
    version = first["metadata"]["resourceVersion"]
    await cluster.create(MAPS, config_map("b"))
    await cluster.patch(f"{MAPS}/a", {"data": {"x": "1"}})
    await cluster.delete(f"{MAPS}/b")
    watch = await cluster.watch(f"{MAPS}?resourceVersion={version}")
    assert await watch.events(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_watch_without_a_version_begins_with_what_is_there(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    watch = await cluster.watch(MAPS)
    assert await watch.event() == ("ADDED", await cluster.read(f"{MAPS}/a"))
    await cluster.create(MAPS, config_map("b"))
    assert await watch.events(1) == [("ADDED", "b")]


async def test_initial_events_end_with_a_bookmark(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    watch = await cluster.watch(
        f"{MAPS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    )
    assert await watch.events(1) == [("ADDED", "a")]
    kind, bookmark = await watch.event()
    assert kind == "BOOKMARK"
    assert bookmark["kind"] == "ConfigMap"
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["metadata"]["resourceVersion"] == str(cluster.api.store.version)


async def test_object_that_starts_or_stops_matching_comes_or_goes(cluster: Cluster) -> None:
    watch = await cluster.watch(f"{PODS}?fieldSelector=spec.nodeName%3D")
    await cluster.create(PODS, pod("p"))
    assert await watch.events(1) == [("ADDED", "p")]
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    await cluster.create(f"{PODS}/p/binding", binding)
    kind, gone = await watch.event()
    assert kind == "DELETED"
    # The content is the last that was selected, the version that of the change.
    assert "nodeName" not in gone["spec"]
    assert gone["metadata"]["resourceVersion"] == str(cluster.api.store.version)


async def test_deleted_object_carries_the_version_of_its_deletion(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    watch = await cluster.watch(f"{MAPS}?labelSelector=%21gone")
    await watch.event()
    await cluster.delete(f"{MAPS}/a")
    kind, gone = await watch.event()
    assert (kind, gone["metadata"]["resourceVersion"]) == (
        "DELETED",
        str(cluster.api.store.version),
    )


async def test_write_that_changes_nothing_is_not_seen(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, config_map("a", x="1"))
    watch = await cluster.watch(f"{MAPS}?resourceVersion={made['metadata']['resourceVersion']}")
    same = await cluster.put(f"{MAPS}/a", config_map("a", x="1"))
    assert same.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await cluster.put(f"{MAPS}/a", config_map("a", x="2"))
    assert await watch.events(1) == [("MODIFIED", "a")]


async def test_other_namespaces_are_not_watched(cluster: Cluster) -> None:
    watch = await cluster.watch(f"{MAPS}?resourceVersion={cluster.api.store.version}")
    await cluster.create(f"{CORE}/namespaces/kube-system/configmaps", config_map("far"))
    await cluster.create(MAPS, config_map("near"))
    assert await watch.events(1) == [("ADDED", "near")]


async def test_forgotten_version_ends_the_watch_with_an_error() -> None:
    cluster = Cluster(Store(history_bytes=2_000))
    first = await cluster.create(MAPS, config_map("a"))
    for number in range(20):
        await cluster.patch(f"{MAPS}/a", {"data": {"x": str(number)}})
    watch = await cluster.watch(f"{MAPS}?resourceVersion={first['metadata']['resourceVersion']}")
    kind, status = await watch.event()
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert status["message"].startswith("too old resource version: ")
    assert await watch.ended()


async def test_watcher_that_falls_behind_gets_an_error_and_is_dropped() -> None:
    cluster = Cluster(Store(history_bytes=2_000))
    await cluster.create(MAPS, config_map("a"))
    watch = await cluster.watch(MAPS)
    await watch.event()
    for number in range(20):
        await cluster.patch(f"{MAPS}/a", {"data": {"x": str(number)}})
    kind, status = await watch.event()
    assert (kind, status["code"]) == ("ERROR", 410)


async def test_watch_ends_when_its_time_is_up(cluster: Cluster) -> None:
    watch = await cluster.watch(f"{MAPS}?timeoutSeconds=1&resourceVersion=5")
    began = asyncio.get_running_loop().time()
    assert await watch.ended()
    assert asyncio.get_running_loop().time() - began >= 0.9


async def test_bookmark_comes_shortly_before_the_end(cluster: Cluster) -> None:
    version = cluster.api.store.version
    watch = await cluster.watch(
        f"{MAPS}?timeoutSeconds=3&resourceVersion={version}&allowWatchBookmarks=true"
    )
    await cluster.create(PODS, pod())
    kind, bookmark = await watch.event()
    assert kind == "BOOKMARK"
    # What happened elsewhere moves it forward, so that it is not filtered again.
    assert bookmark["metadata"]["resourceVersion"] == str(cluster.api.store.version)


async def test_stopping_the_server_ends_all_watches(cluster: Cluster) -> None:
    watch = await cluster.watch(f"{PODS}?resourceVersion={cluster.api.store.version}")
    waiting = asyncio.create_task(watch.ended())
    await cluster.create(MAPS, config_map())
    cluster.api.stop()
    assert await waiting


async def test_two_watchers_see_the_same_and_closing_one_leaves_the_other(
    cluster: Cluster,
) -> None:
    one, other = await cluster.watch(PODS), await cluster.watch(PODS)
    await cluster.create(PODS, bound("a"))
    assert await one.event() == await other.event()
    await one.stream.close()
    await cluster.create(PODS, bound("b"))
    assert await other.events(1) == [("ADDED", "b")]
    assert await one.ended()


async def test_event_is_not_lost_when_its_reader_gives_up_at_that_moment(cluster: Cluster) -> None:
    watch = await cluster.watch(f"{MAPS}?resourceVersion={cluster.api.store.version}")
    reading = asyncio.ensure_future(watch.stream.readline())
    await asyncio.sleep(0)
    await cluster.create(MAPS, config_map("a"))
    assert reading.cancel()
    await asyncio.wait([reading])
    await cluster.create(MAPS, config_map("b"))
    assert await watch.events(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_reader_hears_all_that_happened_since_it_was_woken(cluster: Cluster) -> None:
    watch = await cluster.watch(f"{MAPS}?labelSelector=!far&resourceVersion=1")
    reading = asyncio.create_task(watch.events(3))
    await asyncio.sleep(0)
    for name in ("a", "b", "c"):
        made = msgspec.json.encode(config_map(name))
        await cluster.api.handle(Request("POST", MAPS, body=made))
    assert await reading == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


async def test_many_changes_of_no_interest_do_not_hide_the_next_one(cluster: Cluster) -> None:
    version = cluster.api.store.version
    for number in range(600):
        made = msgspec.json.encode(config_map(f"m{number}"))
        await cluster.api.handle(Request("POST", MAPS, body=made))
    await cluster.create(MAPS, config_map("last"))
    query = f"fieldSelector=metadata.name%3Dlast&resourceVersion={version}"
    watch = await cluster.watch(f"{MAPS}?{query}")
    assert await watch.events(1) == [("ADDED", "last")]

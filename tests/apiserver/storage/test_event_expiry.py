from __future__ import annotations

from tests.support.api_client import EVENTS, Cluster


def event(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "involvedObject": {"namespace": "default", "name": "p"}}


async def test_event_is_forgotten_an_hour_after_it_was_last_written(cluster: Cluster) -> None:
    await cluster.create(EVENTS, event("old"))
    await cluster.create(EVENTS, event("kept"))
    cluster.clock.seconds += 3000
    await cluster.patch(f"{EVENTS}/kept", {"count": 2})
    cluster.clock.seconds += 601
    watch = await cluster.watch(f"{EVENTS}?resourceVersion={cluster.api.store.version}")
    await cluster.create(EVENTS, event("new"))
    assert (await cluster.get(EVENTS)).names == ["kept", "new"]
    assert await watch.events(2) == [("ADDED", "new"), ("DELETED", "old")]


async def test_event_that_was_deleted_is_not_missed(cluster: Cluster) -> None:
    await cluster.create(EVENTS, event("a"))
    await cluster.delete(f"{EVENTS}/a")
    cluster.clock.seconds += 4000
    await cluster.create(EVENTS, event("a"))
    assert (await cluster.get(EVENTS)).names == ["a"]

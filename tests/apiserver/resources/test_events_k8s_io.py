from __future__ import annotations

from tests.support.api_client import EVENTS, Cluster

NEW = "/apis/events.k8s.io/v1/namespaces/default/events"


async def test_a_core_event_is_served_as_events_k8s_io(cluster: Cluster) -> None:
    await cluster.create(
        EVENTS,
        {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
            "reason": "Why",
            "message": "what",
            "count": 3,
            "source": {"component": "me"},
        },
    )
    shown = await cluster.read(f"{NEW}/e")
    assert shown["apiVersion"] == "events.k8s.io/v1"
    assert shown["regarding"]["name"] == "p"
    assert (shown["note"], shown["deprecatedCount"]) == ("what", 3)
    assert shown["deprecatedSource"] == {"component": "me"}
    assert "involvedObject" not in shown


async def test_new_event_is_stored_as_a_core_one(cluster: Cluster) -> None:
    body = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Scheduled",
        "note": "assigned",
        "type": "Normal",
        "action": "Binding",
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "reportingController": "scheduler",
        "reportingInstance": "scheduler-1",
    }
    made = await cluster.create(NEW, body)
    assert made["note"] == "assigned"
    stored = await cluster.read(f"{EVENTS}/e")
    assert (stored["message"], stored["reportingComponent"]) == ("assigned", "scheduler")
    assert stored["involvedObject"]["name"] == "p"


async def test_new_event_must_say_when_and_of_what_type(cluster: Cluster) -> None:
    regarding = {"kind": "Pod", "namespace": "default", "name": "p"}
    answer = await cluster.post(NEW, {"metadata": {"name": "e"}, "regarding": regarding})
    assert answer.status == 422
    assert "eventTime: Required value" in answer.message


async def test_both_groups_watch_the_same_events(cluster: Cluster) -> None:
    watch = await cluster.watch(NEW)
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    await cluster.create(EVENTS, {"metadata": {"name": "e"}, "involvedObject": about})
    kind, shown = await watch.event()
    assert (kind, shown["apiVersion"]) == ("ADDED", "events.k8s.io/v1")
    assert shown["regarding"] == about


async def test_of_a_new_event_only_the_series_changes(cluster: Cluster) -> None:
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "A",
        "type": "Normal",
        "action": "B",
        "eventTime": "2024-01-01T00:00:00.000000Z",
        "reportingController": "example.test/x",
        "reportingInstance": "y",
    }
    await cluster.create(NEW, event)
    for changed in ({"action": None}, {"note": "n"}, {"type": "Warning"}, {"eventTime": None}):
        assert (await cluster.patch(f"{NEW}/e", changed)).status == 422
    series = {"count": 2, "lastObservedTime": "2024-01-02T00:00:00.000000Z"}
    assert (await cluster.patch(f"{NEW}/e", {"series": series})).status == 200


async def test_the_count_of_a_series_is_shown_in_the_new_group_only(cluster: Cluster) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "series": {}}
    await cluster.create(EVENTS, event)
    shown = await cluster.read(f"{NEW}/e")
    assert shown["series"] == {"count": 0, "lastObservedTime": None}
    assert (await cluster.put(f"{NEW}/e", shown)).status == 200
    assert (await cluster.read(f"{EVENTS}/e"))["series"] == {"lastObservedTime": None}

from __future__ import annotations

import pytest

from everynode.apiserver.storage.store import Store
from tests.support.api_client import CORE, MAPS, PODS, Cluster, config_map, pod


async def test_missing_object_is_named(cluster: Cluster) -> None:
    answer = await cluster.get(f"{PODS}/none")
    assert answer.status == 404
    assert answer.message == 'pods "none" not found'
    assert answer.body["details"] == {"name": "none", "kind": "pods"}


async def test_empty_list_has_items_and_a_version(cluster: Cluster) -> None:
    body = await cluster.read(MAPS)
    assert body["kind"] == "ConfigMapList"
    assert body["items"] == []
    assert int(body["metadata"]["resourceVersion"]) > 0


async def test_list_is_sorted_and_its_items_do_not_repeat_their_kind(cluster: Cluster) -> None:
    for name in ("b", "a", "c"):
        await cluster.create(MAPS, config_map(name))
    answer = await cluster.get(MAPS)
    assert answer.names == ["a", "b", "c"]
    assert "kind" not in answer.body["items"][0]


async def test_all_namespaces_are_listed_together(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    await cluster.create(f"{CORE}/namespaces/kube-system/configmaps", config_map("b"))
    assert (await cluster.get(f"{CORE}/configmaps")).names == ["a", "b"]
    assert (await cluster.get(MAPS)).names == ["a"]


async def test_pages_continue_where_the_last_one_ended(cluster: Cluster) -> None:
    for name in ("a", "b", "c", "d", "e"):
        await cluster.create(MAPS, config_map(name))
    first = await cluster.get(f"{MAPS}?limit=2")
    assert first.names == ["a", "b"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    token = first.body["metadata"]["continue"]
    second = await cluster.get(f"{MAPS}?limit=2&continue={token}")
    assert second.names == ["c", "d"]
    token = second.body["metadata"]["continue"]
    third = await cluster.get(f"{MAPS}?limit=2&continue={token}")
    assert third.names == ["e"]
    assert "continue" not in third.body["metadata"]


async def test_all_pages_are_of_one_moment(cluster: Cluster) -> None:
    for name in ("a", "b", "c", "d"):
        await cluster.create(MAPS, config_map(name))
    first = await cluster.get(f"{MAPS}?limit=2")
    await cluster.delete(f"{MAPS}/c")
    await cluster.create(MAPS, config_map("cc"))
    await cluster.patch(f"{MAPS}/d", {"data": {"x": "new"}})
    rest = await cluster.get(f"{MAPS}?continue={first.body['metadata']['continue']}")
    assert rest.names == ["c", "d"]
    assert "data" not in rest.body["items"][1]
    version = first.body["metadata"]["resourceVersion"]
    assert rest.body["metadata"]["resourceVersion"] == version


async def test_page_of_a_forgotten_moment_is_gone() -> None:
    cluster = Cluster(Store(history_bytes=1_500))
    for name in ("a", "b"):
        await cluster.create(MAPS, config_map(name))
    token = (await cluster.get(f"{MAPS}?limit=1")).body["metadata"]["continue"]
    for number in range(20):
        await cluster.patch(f"{MAPS}/a", {"data": {"x": str(number)}})
    answer = await cluster.get(f"{MAPS}?continue={token}")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


async def test_filtered_pages_do_not_say_how_many_are_left(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        await cluster.create(MAPS, {"metadata": {"name": name, "labels": {"x": "y"}}})
    body = (await cluster.get(f"{MAPS}?limit=1&labelSelector=x%3Dy")).body
    assert "continue" in body["metadata"]
    assert "remainingItemCount" not in body["metadata"]


async def test_exact_version_is_listed_as_it_was(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, config_map("a", x="1"))
    await cluster.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    version = made["metadata"]["resourceVersion"]
    then = await cluster.get(f"{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert then.body["items"][0]["data"] == {"x": "1"}
    later = await cluster.get(f"{MAPS}?resourceVersion={version}")
    assert later.body["items"][0]["data"] == {"x": "2"}


async def test_version_that_is_still_to_come_times_out(cluster: Cluster) -> None:
    for path in (f"{MAPS}?resourceVersion=999999", f"{PODS}?resourceVersion=999999"):
        answer = await cluster.get(path)
        assert answer.status == 504
        assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert answer.body["details"]["retryAfterSeconds"] == 1


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("limit=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("resourceVersion=abc", 400, "invalid resource version"),
        ("continue=abc", 400, "invalid continue token: continue key is not valid"),
        ("resourceVersionMatch=Exact", 422, "is forbidden unless resourceVersion is provided"),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, '"exact" is forbidden'),
        ("resourceVersion=1&resourceVersionMatch=Foo", 422, 'Unsupported value: "Foo"'),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        ("labelSelector=a+in+b", 400, "unable to parse requirement: found 'b' expected: '('"),
        ("fieldSelector=spec.foo%3D1", 400, '"spec.foo" is not a known field selector'),
    ],
)
async def test_options_that_make_no_sense_are_refused(
    cluster: Cluster, query: str, status: int, words: str
) -> None:
    answer = await cluster.get(f"{MAPS}?{query}")
    assert answer.status == status
    assert words in answer.message


@pytest.mark.parametrize("query", ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"])
async def test_half_a_watch_list_is_refused_rather_than_misunderstood(
    cluster: Cluster, query: str
) -> None:
    from everynode.kube.requests import Request

    name, _, value = query.partition("=")
    stream = await cluster.transport.open(Request("GET", PODS, (("watch", "true"), (name, value))))
    assert stream.status == 422
    assert b"resourceVersionMatch" in await stream.read()


async def test_pods_are_found_by_node_and_phase(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("here", nodeName="n1"))
    await cluster.create(PODS, pod("there", nodeName="n2"))
    await cluster.create(PODS, pod("nowhere"))
    found = await cluster.get(f"{PODS}?fieldSelector=spec.nodeName%3Dn1,status.phase!%3DFailed")
    assert found.names == ["here"]
    assert (await cluster.get(f"{PODS}?fieldSelector=spec.nodeName%3D")).names == ["nowhere"]
    name = "fieldSelector=metadata.name%3Dhere"
    assert (await cluster.get(f"{PODS}?{name}")).names == ["here"]
    assert (await cluster.get(f"/api/v1/pods?{name}")).names == ["here"]
    assert (await cluster.get(f"{PODS}?{name},spec.nodeName%3Dn2")).names == []
    assert (await cluster.get(f"/api/v1/namespaces/kube-system/pods?{name}")).names == []
    space = "fieldSelector=metadata.name%3Dkube-system"
    assert (await cluster.get(f"/api/v1/namespaces?{space}")).names == ["kube-system"]

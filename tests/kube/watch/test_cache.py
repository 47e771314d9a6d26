from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.objects import Node, NodeMeta, NodeSpec, OwnerReference, Pod, PodMeta, PodSpec
from everynode.kube.watch.cache import Cache, key_of, parse_resource_version

Changes = list[tuple[str, str]]


def a_node(name: str, version: int, *, unschedulable: bool = False, uid: str = "u") -> Node:
    meta = NodeMeta(name=name, uid=uid, resource_version=str(version))
    return Node(metadata=meta, spec=NodeSpec(unschedulable=unschedulable))


def a_pod(name: str, version: int, *, node: str = "x", owner: str = "d") -> Pod:
    ref = OwnerReference("apps/v1", "DaemonSet", "agent", owner, True)
    meta = PodMeta(name=name, namespace="n", resource_version=str(version), owner_references=(ref,))
    return Pod(metadata=meta, spec=PodSpec(node_name=node))


def listening(cache: Cache[Node]) -> Changes:
    changes: Changes = []

    def note(before: Node | None, after: Node | None) -> None:
        changes.append(
            (
                before.metadata.resource_version if before else "-",
                after.metadata.resource_version if after else "-",
            )
        )

    cache.subscribe(note)
    return changes


def pods() -> Cache[Pod]:
    return Cache(
        indexes={
            "node": lambda pod: pod.spec.node_name,
            "owner": lambda pod: ((owner := pod.metadata.controller) and owner.uid) or "",
        },
        keep=lambda pod: pod.metadata.controller is not None,
    )


def test_objects_are_found_by_key_and_by_index() -> None:
    cache = pods()
    cache.upsert(a_pod("a", 1, node="x"))
    cache.upsert(a_pod("b", 2, node="y"))
    cache.upsert(a_pod("c", 3, node="x", owner="e"))
    assert cache.get("n/b") is not None
    assert list(cache.by("node", "x")) == ["n/a", "n/c"]
    assert list(cache.by("owner", "d")) == ["n/a", "n/b"]
    assert list(cache.by("owner", "missing")) == []


def test_an_object_moves_from_one_index_entry_to_another() -> None:
    cache = pods()
    cache.upsert(a_pod("a", 1, node=""))
    assert list(cache.by("node", "")) == []
    cache.upsert(a_pod("a", 2, node="x"))
    cache.upsert(a_pod("a", 3, node="y"))
    assert list(cache.by("node", "x")) == []
    assert list(cache.by("node", "y")) == ["n/a"]
    cache.delete(a_pod("a", 4, node="y"))
    assert list(cache.by("node", "y")) == []


def test_an_event_older_than_what_is_known_is_dropped() -> None:
    cache: Cache[Node] = Cache()
    changes = listening(cache)
    for version in (5, 3, 5):
        cache.upsert(a_node("a", version))
    cache.delete(a_node("a", 4))
    assert changes == [("-", "5")]


def test_a_deleted_object_is_not_brought_back_by_an_older_event() -> None:
    cache: Cache[Node] = Cache()
    cache.upsert(a_node("a", 5))
    cache.delete(a_node("a", 9))
    cache.upsert(a_node("a", 7))
    assert "a" not in cache
    cache.upsert(a_node("a", 11, uid="new"))
    assert "a" in cache


def test_deletions_are_reported_with_the_deleted_object() -> None:
    cache: Cache[Node] = Cache()
    cache.upsert(a_node("a", 5))
    changes = listening(cache)
    cache.delete(a_node("a", 9))
    cache.delete(a_node("a", 9))
    cache.delete(a_node("unknown", 10))
    assert changes == [("5", "-")]


def test_a_new_list_tells_what_is_new_changed_and_vanished_and_nothing_else() -> None:
    cache: Cache[Node] = Cache()
    cache.replace([a_node("same", 1), a_node("changed", 2), a_node("gone", 3)], "10")
    changes = listening(cache)
    cache.replace([a_node("same", 1), a_node("changed", 12), a_node("new", 13)], "20")
    assert sorted(changes) == [("-", "13"), ("2", "12"), ("3", "-")]
    assert cache.version == 20


def test_an_undecodable_list_item_keeps_its_cached_state() -> None:
    cache: Cache[Node] = Cache()
    cache.replace([a_node(name, 1, uid=f"uid-{name}") for name in "abcd"], "1")
    changes = listening(cache)
    cache.replace([a_node("a", 1, uid="uid-a")], "2", {"b": "uid-b", "c": "", "d": "another"})
    assert list(cache.all()) == ["a", "b", "c"]
    assert changes == [("1", "-")]


def test_a_list_of_a_restored_server_is_taken_though_it_is_older() -> None:
    cache: Cache[Node] = Cache()
    cache.replace([a_node("a", 50)], "60")
    cache.replace([a_node("a", 20)], "30")
    cache.upsert(a_node("a", 31))
    assert cache.version == 31
    assert cache.get("a") == a_node("a", 31)


def test_the_cache_stores_but_does_not_report_changes_of_unread_fields() -> None:
    cache: Cache[Node] = Cache(quiet=True)
    changes = listening(cache)
    cache.upsert(a_node("a", 1))
    cache.upsert(a_node("a", 2))
    cache.upsert(a_node("a", 3, unschedulable=True))
    assert changes == [("-", "1"), ("2", "3")]
    cache.replace([a_node("a", 4, unschedulable=True)], "4")
    assert changes == [("-", "1"), ("2", "3")]
    assert cache.get("a") == a_node("a", 4, unschedulable=True)


def test_a_node_that_came_back_under_its_name_is_a_change() -> None:
    cache: Cache[Node] = Cache(quiet=True)
    cache.upsert(a_node("a", 1))
    changes = listening(cache)
    cache.upsert(a_node("a", 2, uid="other"))
    assert changes == [("1", "2")]


def test_unwanted_objects_are_as_good_as_gone() -> None:
    cache = pods()
    orphan = msgspec.structs.replace(a_pod("a", 2), metadata=PodMeta("a", "n", "", "2"))
    cache.upsert(orphan)
    assert len(cache) == 0
    cache.upsert(a_pod("a", 3))
    assert len(cache) == 1
    released = msgspec.structs.replace(orphan, metadata=PodMeta("a", "n", "", "4"))
    cache.upsert(released)
    assert len(cache) == 0
    assert cache.version == 4


def test_bookmarks_move_the_version_and_never_back() -> None:
    cache: Cache[Node] = Cache()
    cache.bookmark("9")
    cache.bookmark("7")
    assert cache.version == 9


def test_keys_and_versions() -> None:
    assert key_of(a_pod("p", 1)) == "n/p"
    assert key_of(a_node("x", 1)) == "x"
    assert (
        parse_resource_version("12"),
        parse_resource_version(""),
        parse_resource_version("x1"),
    ) == (12, 0, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["", "x", "y"]), st.booleans()),
        max_size=30,
    )
)
def test_indexes_always_agree_with_the_objects(moves: list[tuple[str, str, bool]]) -> None:
    cache = pods()
    for version, (name, node, there) in enumerate(moves, 1):
        pod = a_pod(name, version, node=node)
        if there:
            cache.upsert(pod)
        else:
            cache.delete(pod)
    for node in ("x", "y"):
        expected = {key: pod for key, pod in cache.all().items() if pod.spec.node_name == node}
        assert dict(cache.by("node", node)) == expected


def test_a_subscriber_that_has_left_is_called_no_more() -> None:
    cache: Cache[Node] = Cache()
    told: list[str] = []

    def note(before: Node | None, after: Node | None) -> None:
        told.append(after.name if after else "")

    cache.subscribe(note)
    cache.upsert(a_node("a", 1))
    cache.unsubscribe(note)
    cache.upsert(a_node("b", 2))
    assert told == ["a"]

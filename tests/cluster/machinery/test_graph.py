"""Who owns whom."""

from __future__ import annotations

from everynode.cluster.machinery.graph import Graph, Thing
from everynode.cluster.machinery.objects import Owner
from everynode.kube.resources import PODS


def thing(uid: str, *owners: str, blocking: bool = False) -> Thing:
    references = tuple(
        Owner("v1", "Pod", owner, owner, block_owner_deletion=blocking) for owner in owners
    )
    return Thing(PODS, "default", uid, uid, "1", owners=references)


def names(things: list[Thing]) -> list[str]:
    return [each.uid for each in things]


def test_what_is_owned_is_found_even_before_its_owner() -> None:
    graph = Graph()
    graph.put(thing("child", "parent"))
    assert names(graph.owned_by("parent")) == ["child"]
    graph.put(thing("parent"))
    assert graph.owns_any("parent")
    assert not graph.owns_any("child")


def test_a_change_of_owners_is_followed() -> None:
    graph = Graph()
    graph.put(thing("child", "one", "two"))
    graph.put(thing("child", "two"))
    assert names(graph.owned_by("one")) == []
    assert names(graph.owned_by("two")) == ["child"]
    graph.remove("child")
    assert not graph.owns_any("two")
    assert graph.remove("child") is None


def test_only_some_block_their_owner() -> None:
    graph = Graph()
    graph.put(thing("loose", "parent"))
    graph.put(thing("firm", "parent", blocking=True))
    assert names(graph.blocking("parent")) == ["firm"]

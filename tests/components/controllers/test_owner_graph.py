"""The graph of owners and dependents."""

from __future__ import annotations

from everynode.components.controllers.owner_graph import GraphObject, OwnerGraph
from everynode.components.objects import FullOwnerReference
from everynode.kube.resources import PODS


def thing(uid: str, *owners: str, blocking: bool = False) -> GraphObject:
    references = tuple(
        FullOwnerReference("v1", "Pod", owner, owner, block_owner_deletion=blocking)
        for owner in owners
    )
    return GraphObject(PODS, "default", uid, uid, "1", owners=references)


def names(things: list[GraphObject]) -> list[str]:
    return [each.uid for each in things]


def test_what_is_owned_is_found_even_before_its_owner() -> None:
    graph = OwnerGraph()
    graph.put(thing("child", "parent"))
    assert names(graph.dependents_of("parent")) == ["child"]
    graph.put(thing("parent"))
    assert graph.has_dependents("parent")
    assert not graph.has_dependents("child")


def test_a_change_of_owners_is_followed() -> None:
    graph = OwnerGraph()
    graph.put(thing("child", "one", "two"))
    graph.put(thing("child", "two"))
    assert names(graph.dependents_of("one")) == []
    assert names(graph.dependents_of("two")) == ["child"]
    graph.remove("child")
    assert not graph.has_dependents("two")
    assert graph.remove("child") is None


def test_only_some_block_their_owner() -> None:
    graph = OwnerGraph()
    graph.put(thing("loose", "parent"))
    graph.put(thing("firm", "parent", blocking=True))
    assert names(graph.blocking_dependents("parent")) == ["firm"]

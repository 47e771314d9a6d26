from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everynode.api.objects import Pod, PodMeta, PodSpec
from everynode.sim.shelf import Pods, Shelf

keys = st.integers(0, 120).map(str)
steps = st.lists(st.tuples(keys, st.one_of(st.none(), st.integers())), max_size=200)


@given(steps)
def test_a_shelf_is_a_mapping_and_the_ones_before_it_stay_what_they_were(
    steps: list[tuple[str, int | None]],
) -> None:
    shelf: Shelf[int] = Shelf()
    kept: list[tuple[Shelf[int], dict[str, int]]] = []
    expected: dict[str, int] = {}
    for key, value in steps:
        expected = dict(expected)
        if value is None:
            shelf, _ = shelf.without(key), expected.pop(key, None)
        else:
            shelf = shelf.put(key, value)
            expected[key] = value
        kept.append((shelf, expected))
    for each, content in kept:
        assert dict(each.items()) == content
        assert sorted(each) == sorted(content)
        assert len(each) == len(content)
        assert sorted(each.values()) == sorted(content.values())
        assert all(key in each and each[key] == each.get(key) for key in content)


def test_a_key_that_only_a_later_shelf_has_is_not_there() -> None:
    first: Shelf[int] = Shelf[int]().put("a", 1)
    for number in range(100):
        first.put(f"later-{number}", number)
    assert "later-99" not in first
    assert first.get("later-99") is None


def _pod(uid: str, node: str) -> Pod:
    return Pod(metadata=PodMeta(name=uid, uid=uid), spec=PodSpec(node_name=node))


def test_pods_are_found_by_their_node() -> None:
    one, two = _pod("1", "a"), _pod("2", "a")
    pods = Pods().changed(None, one).changed(None, two)
    moved = pods.changed(one, _pod("1", "b"))
    assert [pod.uid for pod in pods.on("a")] == ["1", "2"]
    assert [pod.uid for pod in moved.on("a")] == ["2"]
    assert [pod.uid for pod in moved.on("b")] == ["1"]
    assert moved.changed(two, None).on("a") == ()
    assert pods.on("nowhere") == ()

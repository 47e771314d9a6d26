from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everynode.api.objects import Pod, PodMeta, PodSpec
from everynode.sim.history.snapshots import PastMapping, PastPodIndex, PodIndex

keys = st.integers(0, 30).map(str)
steps = st.lists(st.tuples(keys, st.one_of(st.none(), st.integers())), max_size=60)


@given(steps)
def test_the_past_is_a_mapping_of_what_was_there(steps: list[tuple[str, int | None]]) -> None:
    now: dict[str, int] = {}
    known: list[dict[str, int]] = []
    undo: list[tuple[str, int | None]] = []
    for key, value in steps:
        known.append(dict(now))
        undo.append((key, now.pop(key, None)))
        if value is not None:
            now[key] = value
    past: PastMapping[int] = PastMapping(now, {})
    for (key, before), content in zip(reversed(undo), reversed(known), strict=True):
        past = past.one_step_back(key, before)
        assert dict(past.items()) == content
        assert sorted(past) == sorted(content)
        assert len(past) == len(content)
        assert sorted(past.values()) == sorted(content.values())
        assert all(past.get(str(key)) == content.get(str(key)) for key in range(31))
        assert all((str(key) in past) == (str(key) in content) for key in range(31))


def _pod(uid: str, node: str) -> Pod:
    return Pod(metadata=PodMeta(name=uid, uid=uid), spec=PodSpec(node_name=node))


def test_pods_are_found_by_their_node() -> None:
    one, two = _pod("1", "a"), _pod("2", "a")
    pods = PodIndex()
    pods.change(None, one)
    pods.change(None, two)
    assert [pod.uid for pod in pods.on("a")] == ["1", "2"]
    pods.change(one, _pod("1", "b"))
    assert [pod.uid for pod in pods.on("a")] == ["2"]
    assert [pod.uid for pod in pods.on("b")] == ["1"]
    pods.change(two, None)
    assert pods.on("a") == pods.on("nowhere") == ()


places = st.lists(st.tuples(keys, st.one_of(st.none(), st.sampled_from("abc"))), max_size=40)


@given(places)
def test_pods_are_found_by_the_node_they_were_on(steps: list[tuple[str, str | None]]) -> None:
    pods = PodIndex()
    known: list[dict[str, Pod]] = []
    undo: list[tuple[str, Pod | None]] = []
    for uid, node in steps:
        before = pods.get(uid)
        known.append(dict(pods))
        undo.append((uid, before))
        pods.change(before, _pod(uid, node) if node is not None else None)
    past = PastPodIndex(pods, {})
    for (uid, before), content in zip(reversed(undo), reversed(known), strict=True):
        past = past.one_step_back(uid, before)
        for node in "abc":
            there = [pod.uid for pod in content.values() if pod.spec.node_name == node]
            assert sorted(pod.uid for pod in past.on(node)) == sorted(there)

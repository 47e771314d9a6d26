from __future__ import annotations

from everynode.api import keys
from everynode.inspect.pod_facts import PodReader, by_node
from tests.support.samples import NOW, condition, pod


def named(name: str) -> dict[str, str]:
    return {"name": name, "uid": f"uid-{name}"}


def test_a_pod_that_did_not_change_is_not_read_again() -> None:
    reader = PodReader()
    first, second = pod(metadata=named("a")), pod(metadata=named("b"))
    before = reader.read([first, second])
    again = pod(metadata=named("b"), conditions=[condition("Ready", "False")])
    after = reader.read([again, first])
    assert after[1] is before[0]
    assert [each.pod for each in after] == [again, first]
    assert [each.ready_at for each in after] == [None, NOW - 100]
    assert [each.pod for each in reader.read([])] == []


def test_a_label_of_the_native_kind_makes_the_plan_look_at_the_pod() -> None:
    reader = PodReader()
    labels = {keys.POD_TEMPLATE_GENERATION: "2"}
    plain, native = reader.read([pod(metadata=named("a")), pod(metadata=named("b"), labels=labels)])
    assert (plain.numbered, plain.hash, native.numbered) == (False, "aaa", True)


def test_pods_of_one_node_are_sorted_by_uid() -> None:
    late, early = pod(metadata=named("b")), pod(metadata=named("a"))
    assert by_node(PodReader().read([late, early])) == {"n1": (early, late)}
    assert by_node(PodReader().read([late])) == {"n1": (late,)}

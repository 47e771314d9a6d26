from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.decide.fleet.totals import Totals
from everynode.decide.node.assessment import NO_COUNTS, Assessment, Queue
from everynode.decide.view import NodeView
from tests.support.fleet import NEW, NOW, OLD, assess, make, node, pod, see

PLAN = make(min_ready_seconds=60)


def views_of(name: str) -> list[NodeView]:
    """A node in all sorts of states."""
    return [
        see(name),
        see(name, pod(OLD, on=name)),
        see(name, pod(NEW, on=name, since=NOW - 9)),
        see(name, pod(NEW, on=name, waiting="ImagePullBackOff")),
        see(node(name, ready="Unknown"), pod(OLD, on=name, ready=False)),
    ]


def assessed(name: str, number: int) -> Assessment:
    return assess(PLAN, views_of(name)[number])


def shown(totals: Totals) -> tuple[object, ...]:
    queues = [list(queue) for queue in totals.queues]
    waiting = {code: list(names) for code, names in totals.waiting.items()}
    return totals.sums, queues, waiting, totals.progressing, totals.wake_at


fleets = st.dictionaries(st.sampled_from(["n1", "n2", "n3", "n4"]), st.integers(0, 4))


@given(fleets)
@settings(max_examples=50)
def test_many_at_once_are_entered_as_one_by_one(fleet: dict[str, int]) -> None:
    made = [assessed(name, number) for name, number in fleet.items()]
    one_by_one, at_once = Totals(), Totals()
    for each in made:
        one_by_one.add(each)
    at_once.add_all(made)
    assert shown(one_by_one) == shown(at_once)


@given(fleets)
@settings(max_examples=50)
def test_totals_are_empty_after_all_nodes_are_removed(fleet: dict[str, int]) -> None:
    totals = Totals()
    made = [assessed(name, number) for name, number in fleet.items()]
    totals.add_all(made)
    for each in made:
        totals.remove(each)
    assert shown(totals) == shown(Totals())
    assert totals.sums == NO_COUNTS


@given(fleets, fleets)
@settings(max_examples=50)
def test_a_node_evaluated_again_is_queued_as_if_it_were_new(
    before: dict[str, int], after: dict[str, int]
) -> None:
    totals, anew = Totals(), Totals()
    totals.add_all([assessed(name, number) for name, number in before.items()])
    for name in before:
        totals.replace(assessed(name, before[name]), assessed(name, after.get(name, 0)))
    anew.add_all([assessed(name, after.get(name, 0)) for name in before])
    assert shown(totals) == shown(anew)


def test_nodes_wait_in_their_queue_by_name() -> None:
    totals = Totals()
    totals.add_all([assessed("n2", 0), assessed("n1", 0), assessed("n3", 1)])
    assert list(totals.queues[Queue.CREATE]) == ["n1", "n2"]
    assert list(totals.queues[Queue.UPDATE_READY]) == ["n3"]


def test_what_moves_is_counted_and_what_is_stuck_is_named() -> None:
    totals = Totals()
    totals.add_all([assessed("n1", 2), assessed("n2", 3), assessed("n3", 4), assessed("n4", 3)])
    assert totals.progressing == 1
    assert {code: list(names) for code, names in totals.waiting.items()} == {
        "ImagePullBackOff": ["n2", "n4"],
        "NodeNotReady": ["n3"],
    }


def test_a_timer_fires_once() -> None:
    totals = Totals()
    totals.add(assessed("n1", 2))
    assert totals.wake_at == NOW + 51
    assert totals.pop_due(NOW + 50) == []
    assert totals.pop_due(NOW + 51) == ["n1"]
    assert totals.pop_due(NOW + 99) == []
    assert totals.wake_at is None


def test_nodes_that_became_done_or_are_gone_are_returned_once() -> None:
    totals, old = Totals(), assessed("n1", 1)
    done = assess(PLAN, see("n1", pod(NEW, on="n1", since=NOW - 900)))
    totals.add(old)
    assert totals.take_finished() == []
    totals.replace(old, done)
    totals.replace(done, done)
    assert totals.take_finished() == ["n1"]
    assert totals.take_finished() == []
    totals.remove(done)
    assert totals.take_finished() == ["n1"]
    totals.add_all([old, assess(PLAN, see("n2", pod(NEW, on="n2", since=NOW - 900)))])
    assert totals.take_finished() == ["n2"]

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.decide.fleet.totals import Totals
from everynode.decide.node.assessment import NO_COUNTS, Assessment, Queue
from everynode.decide.view import NodeView
from tests.support.fleet import NEW, NOW, OLD, judge_node, make, node, pod, see

PLAN = make(min_ready_seconds=60)


def looks(name: str) -> list[NodeView]:
    """A node in all sorts of states."""
    return [
        see(name),
        see(name, pod(OLD, on=name)),
        see(name, pod(NEW, on=name, since=NOW - 9)),
        see(name, pod(NEW, on=name, waiting="ImagePullBackOff")),
        see(node(name, ready="Unknown"), pod(OLD, on=name, ready=False)),
    ]


def judged(name: str, number: int) -> Assessment:
    return judge_node(PLAN, looks(name)[number])


def shown(books: Totals) -> tuple[object, ...]:
    queues = [list(queue) for queue in books.queues]
    waiting = {code: list(names) for code, names in books.waiting.items()}
    return books.sums, queues, waiting, books.progressing, books.wake_at


fleets = st.dictionaries(st.sampled_from(["n1", "n2", "n3", "n4"]), st.integers(0, 4))


@given(fleets)
@settings(max_examples=50, deadline=None)
def test_many_at_once_are_entered_as_one_by_one(fleet: dict[str, int]) -> None:
    made = [judged(name, number) for name, number in fleet.items()]
    one_by_one, at_once = Totals(), Totals()
    for each in made:
        one_by_one.add(each)
    at_once.add_all(made)
    assert shown(one_by_one) == shown(at_once)


@given(fleets)
@settings(max_examples=50, deadline=None)
def test_totals_are_empty_after_all_nodes_are_removed(fleet: dict[str, int]) -> None:
    books = Totals()
    made = [judged(name, number) for name, number in fleet.items()]
    books.add_all(made)
    for each in made:
        books.remove(each)
    assert shown(books) == shown(Totals())
    assert books.sums == NO_COUNTS


@given(fleets, fleets)
@settings(max_examples=50, deadline=None)
def test_a_node_evaluated_again_is_queued_as_if_it_were_new(
    before: dict[str, int], after: dict[str, int]
) -> None:
    books, anew = Totals(), Totals()
    books.add_all([judged(name, number) for name, number in before.items()])
    for name in before:
        books.replace(judged(name, before[name]), judged(name, after.get(name, 0)))
    anew.add_all([judged(name, after.get(name, 0)) for name in before])
    assert shown(books) == shown(anew)


def test_nodes_wait_in_their_queue_by_name() -> None:
    books = Totals()
    books.add_all([judged("n2", 0), judged("n1", 0), judged("n3", 1)])
    assert list(books.queues[Queue.CREATE]) == ["n1", "n2"]
    assert list(books.queues[Queue.UPDATE_READY]) == ["n3"]


def test_what_moves_is_counted_and_what_is_stuck_is_named() -> None:
    books = Totals()
    books.add_all([judged("n1", 2), judged("n2", 3), judged("n3", 4), judged("n4", 3)])
    assert books.progressing == 1
    assert {code: list(names) for code, names in books.waiting.items()} == {
        "ImagePullBackOff": ["n2", "n4"],
        "NodeNotReady": ["n3"],
    }


def test_a_timer_fires_once() -> None:
    books = Totals()
    books.add(judged("n1", 2))
    assert books.wake_at == NOW + 51
    assert books.pop_due(NOW + 50) == []
    assert books.pop_due(NOW + 51) == ["n1"]
    assert books.pop_due(NOW + 99) == []
    assert books.wake_at is None

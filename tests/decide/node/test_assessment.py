from __future__ import annotations

from everynode.api.daemonset import DaemonSetStatus
from everynode.decide.ledger import Ledger
from everynode.decide.node.assessment import NO_COUNTS, NodeCounts, Queue
from tests.support.fleet import NEW, OLD, assess, make, pod, see


def test_the_sums_of_a_fleet_are_the_sum_of_its_counts() -> None:
    plan = make()
    views = [see("n1", pod(OLD)), see("n2", pod(NEW, on="n2")), see("n3")]
    ledger = Ledger(plan, views)
    ledger.decide(0.0, DaemonSetStatus())
    each = [made.counts for made in ledger.assessments()]
    assert ledger.sums == NodeCounts(*(sum(column) for column in zip(*each, strict=True)))


def test_an_empty_count_adds_nothing() -> None:
    assert not any(NO_COUNTS)


def test_a_node_that_wants_nothing_waits_nowhere() -> None:
    assert not assess(make(), see("n1", pod(NEW))).queue
    assert not Queue.NONE

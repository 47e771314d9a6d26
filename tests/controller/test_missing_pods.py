"""While a status is contested, pods that stay missing are created; others have ten seconds."""

from __future__ import annotations

from everynode.controller.missing_pods import LEFT_TO_OTHERS, MissingPods


def test_a_pod_is_due_when_it_was_missing_for_ten_seconds() -> None:
    missing = MissingPods()
    assert missing.due("ds", ["a"], 100.0) == (frozenset(), 100.0 + LEFT_TO_OTHERS)
    assert missing.due("ds", ["a", "b"], 104.0) == (frozenset(), 100.0 + LEFT_TO_OTHERS)
    assert missing.due("ds", ["a", "b"], 110.0) == (frozenset("a"), 104.0 + LEFT_TO_OTHERS)
    assert missing.due("ds", ["b"], 114.0) == (frozenset("b"), None)


def test_a_node_that_got_its_pod_meanwhile_counts_anew() -> None:
    missing = MissingPods()
    missing.due("ds", ["a"], 100.0)
    missing.due("ds", [], 105.0)
    assert missing.due("ds", ["a"], 110.0) == (frozenset(), 110.0 + LEFT_TO_OTHERS)


def test_a_clock_that_is_set_back_does_not_prolong_the_wait() -> None:
    missing = MissingPods()
    missing.due("ds", ["a"], 5000.0)
    assert missing.due("ds", ["a"], 100.0) == (frozenset(), 100.0 + LEFT_TO_OTHERS)
    assert missing.due("ds", ["a"], 110.0) == (frozenset("a"), None)


def test_that_a_conflict_is_over_is_told_once() -> None:
    missing = MissingPods()
    missing.due("ds", [], 100.0)
    assert missing.forget("ds")
    assert not missing.forget("ds")

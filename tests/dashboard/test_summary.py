from __future__ import annotations

import pytest

from everynode.dashboard.summary import sentence
from everynode.inspect.fleet import Counts, RolloutState


@pytest.mark.parametrize(
    ("state", "waiting", "expected"),
    [
        (RolloutState.COMPLETE, {}, "All 1,200 nodes are updated and available."),
        (
            RolloutState.COMPLETE,
            {"NodeNotReady": ["a"]},
            "All 1,200 nodes are updated and available. 1 node waits: 1 NodeNotReady.",
        ),
        (RolloutState.PROGRESSING, {}, "7 of 1,200 nodes are updated and available."),
        (
            RolloutState.WAITING,
            {"A": ["a"] * 1000, "B": ["b"] * 3, "C": ["c"], "D": ["d"]},
            "Nothing moves at the moment. 1,005 nodes wait: 1,000 A, 3 B, 1 C, others.",
        ),
        (RolloutState.WAITING, {}, "Nothing moves at the moment."),
        (
            RolloutState.UNOBSERVED,
            {},
            "The controller has not seen the newest spec; does it run?",
        ),
    ],
)
def test_a_sentence_says_how_it_stands_and_what_nodes_wait_for(
    state: RolloutState, waiting: dict[str, list[str]], expected: str
) -> None:
    assert sentence(state, Counts(desired=1200, updated=7), waiting) == expected

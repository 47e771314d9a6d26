from __future__ import annotations

import pytest

from everynode.dashboard.summary import help_with, name_trouble, sentence
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


def test_a_trouble_of_a_watch_says_what_is_watched_and_what_helps() -> None:
    silent = "the server ends watches as soon as they begin"
    assert name_trouble("nodes", silent) == f"nodes: {silent}"
    refused = 'cannot watch nodes: nodes is forbidden: User "ada" cannot watch resource "nodes"'
    assert name_trouble("nodes", refused) == refused
    assert help_with("") == ""
    assert "administrator" in help_with(refused)
    assert "API server runs" in help_with(silent)

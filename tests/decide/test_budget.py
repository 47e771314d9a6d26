from __future__ import annotations

import pytest

from everynode.api.daemonset import Amount, Strategy
from everynode.decide.budget import (
    Limits,
    Tally,
    Unreachable,
    count,
    cure_room,
    is_outage,
    resolve,
    take_room,
)

PERCENT = True


@pytest.mark.parametrize(
    ("unavailable", "surge", "desired", "limits"),
    [
        (Amount(3), Amount(0), 10, Limits(3, 0)),
        (Amount(10, PERCENT), Amount(0), 11, Limits(2, 0)),
        (Amount(0), Amount(30, PERCENT), 10, Limits(0, 3)),
        (Amount(0), Amount(0), 10, Limits(1, 0)),
        (Amount(0, PERCENT), Amount(0), 10, Limits(1, 0)),
        (Amount(100, PERCENT), Amount(0), 7, Limits(7, 0)),
        (Amount(10, PERCENT), Amount(0), 0, Limits(1, 0)),
    ],
)
def test_amounts_are_of_the_nodes_counted_now_and_rounded_up(
    unavailable: Amount, surge: Amount, desired: int, limits: Limits
) -> None:
    assert resolve(Strategy(max_unavailable=unavailable, max_surge=surge), desired) == limits


@pytest.mark.parametrize(
    ("silent", "limit", "desired", "outage"),
    [(1, 1, 5, False), (2, 1, 5, True), (2, 1, 20, False), (3, 1, 20, True), (3, 3, 5, False)],
)
def test_more_silent_nodes_than_the_limit_or_a_tenth_are_an_outage(
    silent: int, limit: int, desired: int, outage: bool
) -> None:
    assert is_outage(silent, limit=limit, desired=desired) is outage


def test_a_few_silent_nodes_are_left_aside() -> None:
    tally = Tally(down=0, under_way=0, proven=0)
    assert count(tally, Unreachable(nodes=1, down=1), limit=1, desired=5) == tally


def test_in_an_outage_all_silent_nodes_count() -> None:
    tally = Tally(down=1, under_way=1, proven=4)
    lost = Unreachable(nodes=3, down=3, under_way=2, moved=2)
    assert count(tally, lost, limit=1, desired=5) == Tally(down=4, under_way=3, proven=4)


def test_a_node_that_fell_silent_with_an_unproven_target_counts() -> None:
    tally = Tally(down=0, under_way=0, proven=0)
    lost = Unreachable(nodes=2, down=2, under_way=1, moved=1)
    assert count(tally, lost, limit=1, desired=100) == Tally(down=1, under_way=1, proven=0)
    proven = Tally(down=0, under_way=0, proven=1)
    assert count(proven, lost, limit=1, desired=100) == proven


@pytest.mark.parametrize(
    ("limit", "under_way", "proven", "room"),
    [(1, 0, 0, 1), (1, 1, 0, 0), (1, 3, 0, -2), (1, 1, 5, 4), (10, 2, 5, 8)],
)
def test_a_cure_spreads_as_fast_as_it_proves_itself(
    limit: int, under_way: int, proven: int, room: int
) -> None:
    assert cure_room(limit, Tally(down=9, under_way=under_way, proven=proven)) == room


@pytest.mark.parametrize(("limit", "down", "room"), [(2, 0, 2), (2, 2, 0), (2, 5, -3)])
def test_nodes_go_down_only_as_far_as_the_limit(limit: int, down: int, room: int) -> None:
    assert take_room(limit, Tally(down=down, under_way=0, proven=0)) == room

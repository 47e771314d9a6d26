from __future__ import annotations

import pytest

from everynode.api.daemonset import IntOrPercent, UpdateStrategy
from everynode.decide.fleet.budget import (
    BudgetCounts,
    Limits,
    Unreachable,
    is_outage,
    replace_unready_room,
    resolve_limits,
    update_ready_room,
    with_unreachable,
)

PERCENT = True


@pytest.mark.parametrize(
    ("unavailable", "surge", "desired", "limits"),
    [
        (IntOrPercent(3), IntOrPercent(0), 10, Limits(3, 0)),
        (IntOrPercent(10, PERCENT), IntOrPercent(0), 11, Limits(2, 0)),
        (IntOrPercent(0), IntOrPercent(30, PERCENT), 10, Limits(0, 3)),
        (IntOrPercent(0), IntOrPercent(0), 10, Limits(1, 0)),
        (IntOrPercent(0, PERCENT), IntOrPercent(0), 10, Limits(1, 0)),
        (IntOrPercent(100, PERCENT), IntOrPercent(0), 7, Limits(7, 0)),
        (IntOrPercent(10, PERCENT), IntOrPercent(0), 0, Limits(1, 0)),
    ],
)
def test_amounts_are_of_the_nodes_counted_now_and_rounded_up(
    unavailable: IntOrPercent, surge: IntOrPercent, desired: int, limits: Limits
) -> None:
    assert (
        resolve_limits(UpdateStrategy(max_unavailable=unavailable, max_surge=surge), desired)
        == limits
    )


@pytest.mark.parametrize(
    ("silent", "limit", "desired", "outage"),
    [(1, 1, 5, False), (2, 1, 5, True), (2, 1, 20, False), (3, 1, 20, True), (3, 3, 5, False)],
)
def test_more_silent_nodes_than_the_limit_or_a_tenth_are_an_outage(
    silent: int, limit: int, desired: int, outage: bool
) -> None:
    assert is_outage(silent, limit=limit, desired=desired) is outage


def test_a_few_silent_nodes_are_left_aside() -> None:
    counts = BudgetCounts(down=0, under_way=0, target_available=0)
    assert with_unreachable(counts, Unreachable(nodes=1, down=1), limit=1, desired=5) == counts


def test_given_up_nodes_count_only_where_they_are_too_many_together_with_silent_ones() -> None:
    counts = BudgetCounts(down=1, under_way=0, target_available=3, given_up=1)
    few = with_unreachable(counts, Unreachable(), limit=1, desired=9)
    many = with_unreachable(counts, Unreachable(nodes=1, down=1), limit=1, desired=9)
    assert (few.down, many.down) == (1, 3)


def test_in_an_outage_all_silent_nodes_count() -> None:
    counts = BudgetCounts(down=1, under_way=1, target_available=4)
    lost = Unreachable(nodes=3, down=3, under_way=2, after_update=2)
    assert with_unreachable(counts, lost, limit=1, desired=5) == BudgetCounts(
        down=4, under_way=3, target_available=4
    )


def test_a_node_that_fell_silent_with_an_unproven_target_counts() -> None:
    counts = BudgetCounts(down=0, under_way=0, target_available=0)
    lost = Unreachable(nodes=2, down=2, under_way=1, after_update=1)
    assert with_unreachable(counts, lost, limit=1, desired=100) == BudgetCounts(
        down=1, under_way=1, target_available=0
    )
    target_available = BudgetCounts(down=0, under_way=0, target_available=1)
    assert with_unreachable(target_available, lost, limit=1, desired=100) == target_available


@pytest.mark.parametrize(
    ("limit", "under_way", "target_available", "room"),
    [(1, 0, 0, 1), (1, 1, 0, 0), (1, 3, 0, -2), (1, 1, 5, 4), (10, 2, 5, 8)],
)
def test_a_cure_spreads_as_fast_as_it_proves_itself(
    limit: int, under_way: int, target_available: int, room: int
) -> None:
    assert (
        replace_unready_room(
            limit, BudgetCounts(down=9, under_way=under_way, target_available=target_available)
        )
        == room
    )


@pytest.mark.parametrize(("limit", "down", "room"), [(2, 0, 2), (2, 2, 0), (2, 5, -3)])
def test_nodes_go_down_only_as_far_as_the_limit(limit: int, down: int, room: int) -> None:
    assert (
        update_ready_room(limit, BudgetCounts(down=down, under_way=0, target_available=0)) == room
    )

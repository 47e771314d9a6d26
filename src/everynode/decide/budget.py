"""How many old pods may be taken now (R4): maxUnavailable as a promise.

All numbers are of counted nodes: those in scope that are reachable. Three sorts of old pods wait:
not Ready ones, which a cure may replace; Ready ones on nodes that are down all the same (not yet
available, or an in-place update that came to nothing), whose taking makes nothing worse; and those
on nodes that are up.
"""

from __future__ import annotations

import msgspec

from everynode.api.amount import scale
from everynode.api.daemonset import Strategy

# Beyond this share of desired, unreachable nodes are an outage and all of them count.
_OUTAGE_PERCENT = 10


class Limits(msgspec.Struct, frozen=True, gc=False):
    """The strategy's amounts resolved for the nodes counted now."""

    max_unavailable: int
    max_surge: int


def resolve(strategy: Strategy, desired: int) -> Limits:
    """Percentages of desired, rounded up; when both come to nothing, one node may be down."""
    surge = scale(strategy.max_surge, desired, round_up=True)
    unavailable = scale(strategy.max_unavailable, desired, round_up=True)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(max_unavailable=unavailable, max_surge=surge)


class Unreachable(msgspec.Struct, frozen=True, gc=False):
    """In-scope nodes whose kubelet is silent: all, the down and the under-way among them."""

    nodes: int = 0
    down: int = 0
    under_way: int = 0
    moved: int = 0  # the target has come to them, and is not available


class Tally(msgspec.Struct, frozen=True, gc=False):
    """What is down and under way among the nodes that count."""

    down: int
    under_way: int
    proven: int  # nodes with an available target pod


def is_outage(unreachable: int, *, limit: int, desired: int) -> bool:
    """Whether more nodes are silent than are left aside."""
    return unreachable > max(limit, desired * _OUTAGE_PERCENT // 100)


def count(reachable: Tally, unreachable: Unreachable, *, limit: int, desired: int) -> Tally:
    """Add the unreachable nodes that count: all of them in an outage, else those that the target
    may have to answer for.

    A node that fell silent after the target came to it is forgiven only as far as the target has
    proved itself on as many other nodes: a bad network agent must not be excused by its victims.
    """
    if is_outage(unreachable.nodes, limit=limit, desired=desired):
        return Tally(
            down=reachable.down + unreachable.down,
            under_way=reachable.under_way + unreachable.under_way,
            proven=reachable.proven,
        )
    if unreachable.moved > reachable.proven:
        return Tally(
            down=reachable.down + unreachable.moved,
            under_way=reachable.under_way + unreachable.under_way,
            proven=reachable.proven,
        )
    return reachable


def cure_room(limit: int, tally: Tally) -> int:
    """How many old pods that are not Ready may be taken: as fast as the cure proves itself.

    Below zero too many nodes are under way already.
    """
    return max(limit, tally.proven) - tally.under_way


def take_room(limit: int, tally: Tally) -> int:
    """How many nodes that are up may be taken down; below zero too many are down already."""
    return limit - tally.down

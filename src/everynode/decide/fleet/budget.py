"""Budget (R4): how many old pods may be updated now without exceeding maxUnavailable.

An update takes the old pod out of service: it is deleted or updated in place. All numbers count
nodes that are in scope and reachable. Three kinds of old pods wait for an update:

- pods that are not Ready; the target may repair them;
- Ready pods on nodes that are down anyway, because the pod is not available yet or its in-place
  update failed; updating them costs nothing;
- pods on nodes that are up.
"""

from __future__ import annotations

import msgspec

from everynode.api.daemonset import UpdateStrategy
from everynode.api.int_or_percent import scaled_value
from everynode.decide.node.assessment import NodeCounts

# Beyond this share of desired, unreachable nodes are an outage and all of them count.
_OUTAGE_PERCENT = 10


class Limits(msgspec.Struct, frozen=True, gc=False):
    """maxUnavailable and maxSurge as numbers of nodes."""

    max_unavailable: int
    max_surge: int


def resolve_limits(strategy: UpdateStrategy, desired: int) -> Limits:
    """Return the limits; percentages are of desired and rounded up.

    If both limits are 0, maxUnavailable is 1, because otherwise no node could be updated.
    """
    surge = scaled_value(strategy.max_surge, desired, round_up=True)
    unavailable = scaled_value(strategy.max_unavailable, desired, round_up=True)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(max_unavailable=unavailable, max_surge=surge)


def count_down(down: int, unproven: int, *, target_proven: int) -> int:
    """Return how many reachable nodes count as down.

    Until the target is proven on a node, all nodes count that are up only by an unproven target
    pod: without minReadySeconds a container that crashes at once is Ready for a moment.
    """
    return down if target_proven else down + unproven


class Unreachable(msgspec.Struct, frozen=True, gc=False):
    """Counts of the nodes in scope whose kubelet does not report (Ready is Unknown)."""

    nodes: int = 0
    down: int = 0
    under_way: int = 0
    after_update: int = 0  # the target may be why they are unreachable


class BudgetCounts(msgspec.Struct, frozen=True, gc=False):
    """How many of the counted nodes are down, under way, or have an available target pod."""

    down: int
    under_way: int
    target_available: int  # nodes with an available target pod
    given_up: int = 0  # reachable nodes that were sick before the target came; not part of down


def is_outage(lost: int, *, limit: int, desired: int) -> bool:
    """Whether too many nodes are unreachable or given up to leave them out of the budget."""
    return lost > max(limit, desired * _OUTAGE_PERCENT // 100)


def with_unreachable(
    reachable: BudgetCounts, unreachable: Unreachable, *, limit: int, desired: int
) -> BudgetCounts:
    """Return the counts with the unreachable and given-up nodes that count.

    In an outage all of them count. Otherwise those count that became unreachable after their
    update, unless the target is available on at least as many other nodes: a bad network agent
    must not be excused by its victims.
    """
    if is_outage(unreachable.nodes + reachable.given_up, limit=limit, desired=desired):
        return BudgetCounts(
            down=reachable.down + reachable.given_up + unreachable.down,
            under_way=reachable.under_way + unreachable.under_way,
            target_available=reachable.target_available,
        )
    if unreachable.after_update > reachable.target_available:
        return BudgetCounts(
            down=reachable.down + unreachable.after_update,
            under_way=reachable.under_way + unreachable.under_way,
            target_available=reachable.target_available,
        )
    return reachable


def budget_counts(sums: NodeCounts, limit: int) -> BudgetCounts:
    """Return what counts in the budget, by the counts of all nodes."""
    return with_unreachable(
        BudgetCounts(
            down=count_down(sums.down, sums.unproven, target_proven=sums.target_proven),
            under_way=sums.under_way,
            target_available=sums.target_available,
            given_up=sums.given_up,
        ),
        Unreachable(
            nodes=sums.unreachable,
            down=sums.unreachable_down,
            under_way=sums.unreachable_under_way,
            after_update=sums.unreachable_after_update,
        ),
        limit=limit,
        desired=sums.desired,
    )


def replace_unready_room(limit: int, counts: BudgetCounts) -> int:
    """Return how many old pods that are not Ready may be replaced.

    The limit grows with the number of nodes where the target is available. A negative result means
    that too many nodes are under way already.
    """
    return max(limit, counts.target_available) - counts.under_way


def update_ready_room(limit: int, counts: BudgetCounts) -> int:
    """Return how many nodes that are up may be taken down; negative if too many are down."""
    return limit - counts.down

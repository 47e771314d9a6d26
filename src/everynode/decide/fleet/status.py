"""DaemonSet status: the sums of the node counts, the conditions, and Events about new ones."""

from __future__ import annotations

import msgspec

from everynode.api.daemonset import DaemonSetStatus, Flavour
from everynode.api.objects import Condition
from everynode.decide.actions import Notice
from everynode.decide.fleet.conditions import FAULTY, SURGE_CANNOT_FIT
from everynode.decide.node.assessment import NodeCounts
from everynode.decide.plan import Plan


def build_status(
    plan: Plan, sums: NodeCounts, observed: DaemonSetStatus, conditions: tuple[Condition, ...]
) -> DaemonSetStatus:
    """Return the status to store; the observed object itself if there is nothing to write."""
    generation = plan.ds.metadata.generation
    written = msgspec.structs.replace(
        observed,
        observed_generation=generation,
        desired=sums.desired,
        current=sums.current,
        misscheduled=sums.misscheduled,
        ready=sums.ready,
        updated=sums.updated,
        available=sums.available,
        unavailable=sums.desired - sums.available,
        # The native kind has no such field.
        update_revision=plan.target_hash if plan.ds.flavour is Flavour.ADVANCED else "",
        conditions=conditions,
    )
    return observed if written == observed else written


def new_notices(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Notice, ...]:
    """Return an Event for each exceptional condition that has just become True.

    A refused target has an Event already, from the dry run that was refused.
    """
    known = {each.type for each in before if each.status == "True"}
    return tuple(
        Notice("Warning", each.type, each.message)
        for each in after
        if each.type in (SURGE_CANNOT_FIT, FAULTY)
        and each.status == "True"
        and each.type not in known
    )

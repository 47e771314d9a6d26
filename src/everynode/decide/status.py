"""The status of a DaemonSet: the sums of its nodes, and what the conditions say of them."""

from __future__ import annotations

import msgspec

from everynode.api.daemonset import DaemonSetStatus, Flavour
from everynode.api.objects import Condition
from everynode.decide.assessment import Profile
from everynode.decide.plan import Plan


def write_status(
    plan: Plan, sums: Profile, observed: DaemonSetStatus, conditions: tuple[Condition, ...]
) -> DaemonSetStatus:
    """The status to be stored; the very object that was observed when there is nothing to write."""
    generation = plan.ds.metadata.generation
    written = msgspec.structs.replace(
        observed,
        observed_generation=max(observed.observed_generation, generation),
        desired=sums.wanted,
        current=sums.current,
        misscheduled=sums.misscheduled,
        ready=sums.ready,
        updated=sums.updated,
        available=sums.available,
        unavailable=sums.wanted - sums.available,
        # The native kind has no field for it.
        update_revision=plan.target_hash if plan.ds.flavour is Flavour.ADVANCED else "",
        conditions=conditions,
    )
    return observed if written == observed else written

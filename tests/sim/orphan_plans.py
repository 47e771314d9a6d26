"""Regression plans with a DaemonSet that has no watch for orphans: there are too many others.

Where no watch shows a pod without its hash, the executor and the adoption put the label back by
which the pod watch selects, or a scan finds it minutes later.
"""

from __future__ import annotations

from typing import Final

from everynode.controller.orphan_watches import MAX_WATCHED
from everynode.sim.plans.builders import at
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan

_NOWHERE: Final = {"nodeSelector": {"pool": "none"}}
_WATCHED: Final = tuple(daemonset(f"other-{i:02d}", template=_NOWHERE) for i in range(MAX_WATCHED))


def _plan(action: Action, *, patience: float) -> Plan:
    """Create one more DaemonSet when all others are watched; then something happens to its pods."""
    return Plan(
        seed=1,
        nodes=3,
        manifests=_WATCHED,
        actions=(at(12.0, "overlap"), action),
        quiet_at=22.0,
        patience=patience,
    )


ORPHANS: Final = {
    # The create of its node meets the pod, and the label is put back at once.
    "a-pod-without-hash-that-no-watch-shows": _plan(at(20.0, "strip-hash"), patience=60.0),
    # The next scan adopts the pod, 15 minutes later at most. If it remained without the label,
    # only the scan after that would show it.
    "an-orphan-that-no-watch-shows": _plan(at(20.0, "orphan-pod", strip=True), patience=950.0),
}

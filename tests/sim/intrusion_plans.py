"""Intrusion plans: users claim a DaemonSet that is not theirs, and no promise may be broken."""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.sim.plans.builders import at
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan


def _intruded(*actions: Action, version: str, quiet_at: float = 60.0) -> Plan:
    ahead = {keys.PREDOWNLOAD_PARALLELISM: "2"}
    made = daemonset(rolling={"maxUnavailable": 1}, api_version=version)
    made["metadata"]["annotations"] = ahead
    return Plan(
        seed=1, nodes=3, manifests=(made,), actions=actions, quiet_at=quiet_at, patience=400.0
    )


_CLAIMED: Final = (
    at(8.0, "claim-from-elsewhere", node="late-01"),
    at(12.0, "delete-pod", node=0),
    at(16.0, "add-node", node="late-01", labels={}),
    at(20.0, "restart"),
    at(24.0, "set-image", image="agent:v2"),
)
_REPLACED: Final = (
    at(8.0, "forge-target"),
    at(12.0, "delete-pod", node=0),
    at(16.0, "restart"),
    at(20.0, "delete-pod", node=1),
    at(30.0, "set-image", image="agent:v2"),
)
INTRUSIONS: Final[dict[str, Plan]] = {
    "claimed-from-another-namespace": _intruded(*_CLAIMED, version=keys.V1BETA1),
    "claimed-from-another-namespace-in-the-native-kind": _intruded(*_CLAIMED, version=keys.APPS_V1),
    "the-target-is-forged": _intruded(*_REPLACED, version=keys.V1BETA1),
    "the-target-is-forged-in-the-native-kind": _intruded(*_REPLACED, version=keys.APPS_V1),
}

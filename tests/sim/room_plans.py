"""Regression plans about nodes that are full: their pods stay where a successor has no room."""

from __future__ import annotations

from typing import Any, Final

from everynode.sim.plans.builders import at
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Object, Plan

_ONE: Final = {"maxUnavailable": 1}
_SURGE: Final = {"maxSurge": 1, "maxUnavailable": 0}


def _sized(cpu: str) -> Object:
    return {"containers": [{"name": "agent", "image": "agent:v1", "resources": _requests(cpu)}]}


def _requests(cpu: str) -> Object:
    return {"requests": {"cpu": cpu}}


def _full(*actions: Action, rolling: Any, quiet_at: float = 100.0, **template: Any) -> Plan:
    return Plan(
        seed=1,
        nodes=3,
        manifests=(daemonset(rolling=rolling, template=_sized("100m") | template),),
        actions=actions,
        quiet_at=quiet_at,
        patience=500.0,
    )


_GROWS: Final = at(80.0, "set-requests", cpu="150m")

ROOM_PLANS: Final = {
    # Full for longer than any decision lags behind.
    "full-for-long": _full(at(6.0, "fill-node", node=1, free=20), _GROWS, rolling=_ONE),
    "full-for-two-pods": _full(at(6.0, "fill-node", node=1, free=120), _GROWS, rolling=_SURGE),
    # The pod that gives way, and the 50m beside it, are just enough.
    "just-enough": _full(at(6.0, "fill-node", node=1, free=50), _GROWS, rolling=_ONE),
    # Nothing tells the controller that there is room again.
    "room-after-a-while": _full(
        at(6.0, "fill-node", 100.0, node=1, free=0), _GROWS, rolling=_ONE, quiet_at=200.0
    ),
    # The kubelet cannot resize it either, and the pod is recreated once there is room.
    "resized-on-a-full-node": _full(
        at(6.0, "fill-node", node=1, free=20), _GROWS,
        rolling={**_ONE, "rollingUpdateType": "InPlaceIfPossible"}, quiet_at=800.0,
    ),
}  # fmt: skip

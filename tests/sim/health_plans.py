"""Health plans: pods that crash, or are not Ready for a moment, and what that may cost (R4)."""

from __future__ import annotations

from typing import Final

from everynode.sim.plans.builders import at, set_image
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Object, Plan, Timing

_ONE: Final = {"maxUnavailable": 1}
_TWO: Final = {"maxUnavailable": 2}
_IN_PLACE: Final = {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"}
_SURGE: Final = {"maxSurge": 1, "maxUnavailable": 0}
_FAST: Final = Timing(pull=0.0, start=0.5, stop=0.5)
_SLOW: Final = Timing(pull=0.0, start=2.0, stop=2.0)


def _plan(
    *actions: Action,
    made: Object,
    nodes: int = 8,
    quiet_at: float = 60.0,
    timing: Timing = Timing(),  # noqa: B008 - it never changes
) -> Plan:
    return Plan(
        seed=1,
        nodes=nodes,
        manifests=(made,),
        timing=timing,
        actions=actions,
        quiet_at=quiet_at,
        patience=400.0,
    )


# As for most node agents: they belong on nodes that are not ready, too.
_EVERYWHERE: Final = {"tolerations": [{"operator": "Exists"}]}
_SICK: Final = (
    ("", _ONE, "apps.kruise.io/v1beta1"),
    ("-and-the-native-kind", _ONE, "apps/v1"),
    ("-in-place", _IN_PLACE, "apps.kruise.io/v1beta1"),
)
_CRASHES: Final = (set_image(8.0, "agent:crash-loop"), set_image(300.0, "agent:v3"))
HEALTH: Final[dict[str, Plan]] = {
    # Without minReadySeconds a container that crashes after a second is available for a second.
    "a-version-that-crashes-after-a-moment": _plan(
        *_CRASHES, made=daemonset(rolling=_TWO), quiet_at=320.0, timing=_FAST
    ),
    "a-native-version-that-crashes-after-a-moment": _plan(
        *_CRASHES,
        made=daemonset(rolling=_TWO, api_version="apps/v1"),
        quiet_at=320.0,
        timing=_FAST,
    ),
    "a-version-that-crashes-in-place": _plan(
        *_CRASHES, made=daemonset(rolling=_IN_PLACE), nodes=6, quiet_at=320.0
    ),
    "a-surge-to-a-version-that-crashes": _plan(
        *_CRASHES, made=daemonset(rolling=_SURGE), nodes=4, quiet_at=320.0
    ),
    # It crashes only after the first nodes have proved it; from then on nothing more is taken.
    "a-version-that-crashes-later": _plan(
        set_image(8.0),
        at(20.0, "quirk", images="agent:v2 fail=crash"),
        at(280.0, "quirk", images=""),
        made=daemonset(rolling=_ONE),
        quiet_at=300.0,
        timing=_SLOW,
    ),
    # Half of the nodes are updated when all other pods are not Ready for a second.
    "a-blip": _plan(
        set_image(8.0),
        at(27.0, "quirk", images="agent:v1 fail=probe"),
        at(28.0, "quirk", images=""),
        made=daemonset(rolling=_ONE),
        timing=_SLOW,
    ),
    # A node that is not ready from before the update, and whose pods never become Ready.
    **{
        f"a-sick-node{name}": _plan(
            at(20.0, "unready-node", 900.0, node=7),
            at(20.0, "quirk", images="agent:* fail=probe on=node-0008"),
            set_image(60.0),
            made=daemonset(rolling=rolling, api_version=version, template=_EVERYWHERE),
            quiet_at=950.0,
        )
        for name, rolling, version in _SICK
    },
    # The clock of a node is wrong: minReadySeconds take no longer and no less time there.
    **{
        f"a-node-whose-clock-is-{name}": _plan(
            at(1.0, "skew-node", 400.0, node=3, by=by),
            set_image(20.0),
            set_image(150.0, "agent:never-ready"),
            set_image(200.0, "agent:v4"),
            made=daemonset(rolling=_ONE, api_version=version, min_ready=10),
            nodes=4,
            quiet_at=410.0,
        )
        for name, by, version in (
            ("ahead", 3600, "apps.kruise.io/v1beta1"),
            ("a-little-ahead", 180, "apps/v1"),
            ("behind", -3600, "apps/v1"),
        )
    },
    # Pods that end there are replaced after the normal back-off: not at once, not an hour later.
    **{
        f"pods-end-on-a-node-whose-clock-is-{name}": _plan(
            at(1.0, "skew-node", 300.0, node=3, by=by),
            at(10.0, "press-node", 60.0, node=3),
            set_image(200.0),
            made=daemonset(rolling=_ONE, template=_EVERYWHERE),
            nodes=4,
            quiet_at=310.0,
        )
        for name, by in (("ahead", 3600), ("behind", -3600))
    },
    # Nodes are maintained, drained or shut down during an update, and come back.
    "nodes-in-maintenance": _plan(
        at(20.0, "set-lifecycle", 200.0, node=3, condition="MaintenanceInProgress"),
        at(21.0, "set-lifecycle", 100.0, node=2, condition="Drained"),
        at(22.0, "set-lifecycle", 100.0, node=1, condition="MaintenancePlanned"),
        set_image(30.0),
        made=daemonset(rolling=_ONE),
        nodes=4,
        quiet_at=250.0,
    ),
    **{
        f"a-node-shuts-down-{value}": _plan(
            at(20.0, "shut-node-down", 120.0, node=3, value=value),
            set_image(200.0),
            made=daemonset(rolling=_ONE, template=_EVERYWHERE),
            nodes=4,
            quiet_at=300.0,
        )
        for value in ("true", "unannounced")
    },
    "a-blip-with-surge": _plan(
        set_image(8.0),
        at(15.0, "quirk", images="agent:v1 fail=probe"),
        at(16.0, "quirk", images=""),
        made=daemonset(rolling=_SURGE),
        nodes=6,
        timing=_SLOW,
    ),
}

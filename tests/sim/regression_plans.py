"""Regression plans: small plans, each of which exposes one kind of bug.

The scenarios show what the product does; these plans show what it must not do. Most of them have a
fault at the worst moment. All of them end settled.
"""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.api import keys
from everynode.sim.plans.builders import at, at_request, set_image, set_rolling_update
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Object, Plan, Timing
from tests.sim.health_plans import HEALTH
from tests.sim.intrusion_plans import INTRUSIONS
from tests.sim.orphan_plans import ORPHANS
from tests.sim.room_plans import ROOM_PLANS

_ONE: Final = {"maxUnavailable": 1}
_IN_PLACE: Final = {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"}
_SURGE: Final = {"maxSurge": 1, "maxUnavailable": 0}
_HOOKED: Final[Object] = {
    "lifecycle": {"preDelete": {"labelsHandler": {"hook": "yes"}}},
    "labels": {"hook": "yes"},
}
# As for most node agents: otherwise the taints of an unreachable node exclude it from all counts.
_EVERYWHERE: Final = {"tolerations": [{"operator": "Exists"}]}
_SLOW_STOP: Final = Timing(pull=0.0, start=0.5, stop=15.0)


def _plan(
    *actions: Action,
    sets: tuple[Object, ...] = (daemonset(rolling=_ONE),),
    nodes: int = 3,
    quiet_at: float = 60.0,
    timing: Timing = Timing(),  # noqa: B008 - it never changes
    controllers: int = 1,
    patience: float = 400.0,
) -> Plan:
    return Plan(
        seed=1,
        nodes=nodes,
        manifests=sets,
        timing=timing,
        controllers=controllers,
        actions=actions,
        quiet_at=quiet_at,
        patience=patience,
    )


def _overlapping() -> tuple[Object, Object]:
    """Two DaemonSets that select each other's pods."""
    other = daemonset("other", rolling=_ONE)
    other["spec"]["selector"] = {"matchLabels": {"app": "agent"}}
    other["spec"]["template"]["metadata"]["labels"] = {"app": "agent"}
    return daemonset(rolling=_ONE), other


def _stepwise(rolling: Object) -> Object:
    """A DaemonSet whose partition and selector withhold pods of the first installation."""
    made = daemonset(rolling=rolling)
    made["metadata"]["annotations"] = {keys.PROGRESSIVE_CREATE: "true"}
    return made


def _agent(cpu: str) -> Object:
    """A container with this CPU request, which can be resized without a restart."""
    amounts = {"cpu": cpu, "memory": "64Mi"}
    resources = {"requests": amounts, "limits": amounts}
    return {"name": "agent", "image": "agent:v1", "resources": resources}


_BUDGET: Final = {
    # Two updates while no pod has been Ready for minReadySeconds: every node counts as down.
    "twice-within-min-ready-seconds": _plan(
        set_image(8.0), set_image(20.0, "agent:v3"), sets=(daemonset(rolling=_ONE, min_ready=30),),
        nodes=4, quiet_at=40.0,
    ),
    "all-pods-unready": _plan(
        at(10.0, "quirk", images="agent:* fail=probe"), set_image(20.0),
        set_image(40.0, "agent:v3"), nodes=4,
    ),
    # Timestamps written while the clock is an hour ahead lie in the future once it is corrected.
    "a-clock-ahead-is-set-right": _plan(
        at(5.0, "clock-jump", by=3600), set_image(20.0), nodes=4, quiet_at=40.0,
        sets=(daemonset(rolling=_ONE, min_ready=20),),
    ),
    # The clock loses a second while pods become Ready: their times seem to lie in the future.
    "a-clock-at-half-speed": _plan(
        at_request(27, "crash-after"), set_image(5.0), at(10.18, "clock-drift", rate=0.5), nodes=8,
        sets=(daemonset(rolling={**_IN_PLACE, "maxUnavailable": 2}),),
        timing=Timing(pull=0.0, start=3.0, ready=2.0, stop=0.1), quiet_at=115.0, patience=3600.0,
    ),
    "a-bad-version-where-none-is-ready": _plan(
        at(10.0, "quirk", images="agent:v1 fail=probe"), set_image(20.0, "agent:never-ready"),
        set_image(40.0, "agent:v3"), nodes=4,
    ),
    # A policy refuses the new version for a while: until then no pod may go.
    "a-refused-version": _plan(
        at(5.0, "refuse-image", 40.0, image="agent:v2"), set_image(10.0), nodes=4,
    ),
    "a-refused-version-with-surge": _plan(
        at(5.0, "refuse-image", 40.0, image="agent:v2"),
        at(6.0, "quirk", images="agent:v1 fail=probe"), set_image(10.0), nodes=4,
        sets=(daemonset(rolling=_SURGE),),
    ),
    "a-refused-version-in-place": _plan(
        at(5.0, "refuse-image", 40.0, image="agent:v2"), set_image(10.0), nodes=4,
        sets=(daemonset(rolling=_IN_PLACE),),
    ),
    "a-cure": _plan(
        at(10.0, "quirk", images="agent:v1 fail=probe"), set_image(20.0), nodes=6,
        timing=Timing(start=3.0),
    ),
    "one-node-is-down-already": _plan(
        at(10.0, "unready-node", 30.0, node=0), set_image(20.0), nodes=4,
        sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    "pods-that-take-long-to-stop": _plan(set_image(8.0), nodes=4, timing=_SLOW_STOP),
    "a-zone-is-lost": _plan(
        at(8.0, "lose-zone", zone="zone-a"), set_image(60.0), at(100.0, "find-nodes"),
        nodes=6, quiet_at=120.0, sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    "a-silent-node": _plan(
        at(8.0, "lose-node", 90.0, node=2), set_image(60.0), nodes=3, quiet_at=110.0,
        sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    # A version that makes nodes unreachable must not gain budget because they are not counted.
    "a-version-that-silences-its-nodes": _plan(
        set_image(8.0, "agent:never-ready"), at(16.0, "lose-node", 200.0, node=5),
        at(120.0, "lose-node", 100.0, node=4), set_image(200.0, "agent:v3"),
        nodes=6, quiet_at=240.0, sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    "a-bad-version-for-a-long-time": _plan(
        set_image(8.0, "agent:never-ready"), at(100.0, "delete-pod", node=3),
        at(400.0, "evict-pod", node=2), at(500.0, "fail-pod", node=0), set_image(800.0, "agent:v1"),
        nodes=4, quiet_at=820.0,
    ),
    "a-bad-version-in-place": _plan(
        set_image(8.0, "agent:never-ready"), at(60.0, "crash"), at(700.0, "restart"),
        set_image(800.0, "agent:v3"), sets=(daemonset(rolling=_IN_PLACE),), nodes=4, quiet_at=820.0,
    ),
    "percent-and-another-status": _plan(
        at(8.0, "write-status", status={"desiredNumberScheduled": 100}), set_image(40.0),
        sets=(daemonset(rolling={"maxUnavailable": "25%"}),), nodes=4, quiet_at=80.0,
    ),
    "held-pods-watch": _plan(
        at(7.9, "hold-watch", 20.0, kind="pods"), set_image(8.0), nodes=4,
    ),
    "hooks-without-an-answer": _plan(
        at(5.0, "hold-hooks", 1000.0), set_image(8.0, "agent:never-ready"),
        at(20.0, "release-hooks"), at(40.0, "delete-pod", node=0), set_image(60.0, "agent:v1"),
        at(70.0, "apply", spec={"lifecycle": None}),
        sets=(daemonset(rolling=_ONE, **_HOOKED),), nodes=4, quiet_at=80.0,
    ),
    "hooks-that-hold": _plan(
        set_image(8.0), sets=(daemonset(rolling=_ONE, **_HOOKED),), nodes=4, quiet_at=40.0,
    ),
}  # fmt: skip

_HELD: Final = {
    "a-node-joins-held": _plan(
        set_image(8.0), at(16.0, "add-node", node="zz-late", labels={}),
        at(20.0, "delete-pod", node=0, grace=0), set_rolling_update(30.0, partition=0),
        sets=(daemonset(rolling={**_ONE, "partition": 3}),),
    ),
    "three-versions-held": _plan(
        set_image(8.0), set_rolling_update(16.0, partition=2), set_image(18.0, "agent:v3"),
        at(26.0, "fail-pod", node=0), at(26.0, "delete-pod", node=1, grace=0),
        at(34.0, "delete-pod", node=0), set_rolling_update(44.0, partition=0),
        sets=(daemonset(rolling={**_ONE, "partition": 1}),),
    ),
    "installed-step-by-step-and-paused": _plan(
        set_rolling_update(6.0, paused=True), at(10.0, "add-node", node="zz-late", labels={}),
        set_rolling_update(14.0, partition=1), at(20.0, "delete-pod", node=1, grace=0),
        set_rolling_update(26.0, paused=False), set_rolling_update(32.0, partition=0),
        sets=(_stepwise({**_ONE, "partition": 3}),), nodes=4, quiet_at=45.0,
    ),
    "installed-step-by-step-while-paused": _plan(
        at(8.0, "add-node", node="zz-late", labels={}),
        sets=(_stepwise({**_ONE, "partition": 2, "paused": True}),), nodes=4, quiet_at=20.0,
    ),
    "installed-step-by-step-by-selector": _plan(
        set_image(8.0), at(20.0, "add-node", node="late-01", labels={}),
        sets=(_stepwise({**_ONE, "selector": {"matchLabels": {
            "topology.kubernetes.io/zone": "zone-a"}}}),), quiet_at=35.0,
    ),
    "a-first-installation-in-one-go": _plan(
        at(8.0, "add-node", node="aa-late", labels={}),
        sets=(daemonset(rolling={**_ONE, "partition": 2}),), nodes=3, quiet_at=20.0,
    ),
    "back-and-held": _plan(
        set_image(8.0), set_rolling_update(20.0, partition=3), set_image(22.0, "agent:v1"),
        at(26.0, "add-node", node="late-01", labels={}), set_rolling_update(36.0, partition=0),
    ),
    "half-of-five": _plan(
        set_image(8.0), at(24.0, "remove-node", node=0), at(30.0, "delete-pod", node=1),
        set_rolling_update(36.0, partition=1), at(44.0, "remove-node", node=0),
        sets=(daemonset(rolling={**_ONE, "partition": "50%"}),), nodes=5,
    ),
    "half-of-five-for-good": _plan(
        set_image(8.0), sets=(daemonset(rolling={**_ONE, "partition": "50%"}),), nodes=5,
        quiet_at=30.0,
    ),
    "a-partition-that-comes-to-nothing": _plan(
        at(4.0, "label-node", node=2, labels={"pool": "a"}),
        at(8.0, "set-selector", labels={"pool": "a"}),
        sets=(daemonset(rolling={**_ONE, "partition": "30%"}),), quiet_at=30.0,
    ),
    "a-node-joins-at-the-end-of-the-line": _plan(
        set_image(8.0), at(20.0, "add-node", node="aa-late", labels={}),
        sets=(daemonset(rolling={**_ONE, "partition": 3}),), nodes=5, quiet_at=35.0,
    ),
    "paused-and-pods-die": _plan(
        set_image(8.0), set_rolling_update(9.0, paused=True), at(14.0, "delete-pod", node=0),
        at(16.0, "fail-pod", node=1), set_rolling_update(30.0, paused=False), nodes=4,
    ),
    "a-selector-and-pods-die": _plan(
        set_image(8.0), at(14.0, "delete-pod", node=1), set_rolling_update(30.0, selector=None),
        sets=(daemonset(rolling={**_ONE, "selector": {"matchLabels": {
            "topology.kubernetes.io/zone": "zone-a"}}}),),
    ),
    "another-node-selector-held": _plan(
        at(4.0, "label-node", node=2, labels={"pool": "a"}),
        at(8.0, "set-selector", labels={"pool": "a"}), set_rolling_update(24.0, partition=0),
        sets=(daemonset(rolling={**_ONE, "partition": 1}),), quiet_at=40.0,
    ),
    # A held node keeps the target, too: also when its pod is gone without a trace.
    "paused-and-an-updated-pod-dies": _plan(
        set_image(8.0), set_rolling_update(11.0, paused=True),
        at(16.0, "delete-pod", node=3, grace=0), at(20.0, "delete-pod", node=0, grace=0),
        nodes=4, quiet_at=30.0,
    ),
    "a-higher-partition-and-an-updated-pod-dies": _plan(
        set_image(8.0), set_rolling_update(20.0, partition=4),
        at(24.0, "delete-pod", node=1, grace=0), at(28.0, "delete-pod", node=2, grace=0),
        sets=(daemonset(rolling={**_ONE, "partition": 1}),), nodes=4, quiet_at=35.0,
    ),
    # node-001 is the canary; node-003 is first by name as soon as the place is free.
    "another-canary-while-the-first-is-empty": _plan(
        at(4.0, "label-node", node=0, labels={"canary": "yes"}), set_image(8.0),
        set_rolling_update(16.0, selector=None), at(18.0, "deny-pods", 6.0),
        at(18.5, "delete-pod", node=0, grace=0),
        sets=(daemonset(rolling={**_ONE, "partition": 2, "selector": {"matchLabels": {
            "canary": "yes"}}}),), quiet_at=40.0,
    ),
    "the-selector-moves-on": _plan(
        at(4.0, "label-node", node=0, labels={"canary": "yes"}), set_image(8.0),
        at(16.0, "label-node", node=0, labels={"canary": None}),
        at(20.0, "delete-pod", node=0, grace=0),
        sets=(daemonset(rolling={**_ONE, "selector": {"matchLabels": {"canary": "yes"}}}),),
        quiet_at=30.0,
    ),
    "complete-paused-and-restarted": _plan(
        set_image(8.0), set_rolling_update(24.0, paused=True), at(26.0, "crash"),
        at(26.2, "delete-pod", node=1, grace=0),
        at(40.0, "add-node", node="late-01", labels={}), quiet_at=50.0,
    ),
    "history-of-one": _plan(
        set_image(8.0), set_rolling_update(16.0, partition=2), set_image(18.0, "agent:v3"),
        set_image(26.0, "agent:v4"), at(34.0, "delete-pod", node=0),
        set_rolling_update(40.0, partition=0),
        set_image(48.0, "agent:v5"), set_image(54.0, "agent:v6"),
        sets=(daemonset(rolling={**_ONE, "partition": 1}, revisionHistoryLimit=1),),
        quiet_at=70.0,
    ),
    "history-of-none": _plan(
        set_image(8.0), set_rolling_update(20.0, partition=3), set_image(22.0, "agent:v3"),
        *(at(24.0, "delete-pod", node=i, grace=0) for i in range(3)),
        set_rolling_update(40.0, partition=0),
        sets=(daemonset(rolling=_ONE, revisionHistoryLimit=0),),
    ),
}  # fmt: skip

_PODS: Final = {
    "surge-and-slow-stops": _plan(
        set_image(8.0), sets=(daemonset(rolling=_SURGE),), nodes=4, timing=_SLOW_STOP,
    ),
    "surge-to-a-version-that-is-never-ready": _plan(
        set_image(8.0, "agent:never-ready"), set_image(30.0, "agent:v3"),
        sets=(daemonset(rolling=_SURGE),),
    ),
    "a-pod-that-fails-again-and-again": _plan(
        *(at(time, "fail-pod", node=0) for time in (8.0, 12.0, 18.0, 27.0)), quiet_at=30.0,
        patience=60.0,
    ),
    "tainted-since": _plan(
        at(6.0, "taint-node", node=0), set_image(8.0), at(25.0, "delete-pod", node=0),
        quiet_at=35.0,
    ),
    # Two of four nodes are tainted: their pods go one at a time, and the third keeps its own.
    "a-toleration-is-withdrawn": _plan(
        *(at(6.0, "taint-node", node=i, key="gpu") for i in range(2)),
        at(8.0, "set-tolerations", tolerations=[]),
        sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),), nodes=4, timing=_SLOW_STOP,
        quiet_at=120.0,
    ),
    "a-toleration-is-withdrawn-and-surge": _plan(
        *(at(6.0, "taint-node", node=i, key="gpu") for i in range(2)),
        at(8.0, "set-tolerations", tolerations=[]),
        sets=(daemonset(rolling=_SURGE, template=_EVERYWHERE),), nodes=4, timing=_SLOW_STOP,
        quiet_at=120.0,
    ),
    # No node is left that should have a pod: no dry run, and the pods go all the same.
    "a-toleration-is-withdrawn-everywhere": _plan(
        *(at(6.0, "taint-node", node=i, key="gpu") for i in range(3)),
        at(8.0, "set-tolerations", tolerations=[]),
        sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),), quiet_at=60.0,
    ),
    "a-toleration-is-withdrawn-by-a-bad-version": _plan(
        at(6.0, "taint-node", node=0), at(6.0, "taint-node", node=1),
        set_rolling_update(7.0, paused=True), at(8.0, "set-tolerations", tolerations=[]),
        set_image(8.5, "agent:never-ready"), set_rolling_update(9.0, paused=False),
        set_image(60.0, "agent:v3"),
        sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),), nodes=4, quiet_at=80.0,
    ),
    "tainted-and-in-place": _plan(
        at(6.0, "taint-node", node=0), set_image(8.0), at(20.0, "set-variable", value=1),
        sets=(daemonset(rolling=_IN_PLACE),), quiet_at=40.0,
    ),
    "evicting-taint": _plan(
        at(6.0, "taint-node", node=0, effect="NoExecute"), set_image(10.0), quiet_at=30.0,
    ),
    "nodes-that-lose-their-label": _plan(
        *(at(4.0, "label-node", node=i, labels={"pool": "a"}) for i in range(3)),
        at(8.0, "set-selector", labels={"pool": "a"}),
        at(24.0, "label-node", node=0, labels={"pool": None}),
        at(24.0, "add-node", node="late-01", labels={"pool": "a"}), quiet_at=40.0,
    ),
    "a-node-goes-before-its-pod-is-bound": _plan(
        at(8.0, "remove-node", node=0),
        at(20.0, "apply", spec={"template": {"spec": {"containers": [_agent("100m")]}}}),
        sets=(daemonset(rolling=_ONE, template={"containers": [_agent("1000")]}),), quiet_at=30.0,
    ),
    "cordoned-nodes": _plan(
        at(6.0, "cordon-node", node=0), at(6.0, "unready-node", 30.0, node=1),
        at(10.0, "delete-pod", node=0), at(10.0, "delete-pod", node=1), quiet_at=45.0,
    ),
    "other-variables-in-place": _plan(
        set_image(8.0), at(20.0, "set-variable", value=1), sets=(daemonset(rolling=_IN_PLACE),),
    ),
    # A pod keeps its pull policy: with that of a tag it would run an outdated image.
    "to-the-latest-image-in-place": _plan(
        set_image(8.0, "agent:latest"), sets=(daemonset(rolling=_IN_PLACE),), quiet_at=30.0,
    ),
    "restarted-in-place": _plan(
        at(8.0, "apply", spec={"template": {"metadata": {"annotations": {
            keys.RESTARTED_AT: "2026-11-18T10:00:00Z"}}}}),
        sets=(daemonset(rolling=_IN_PLACE),), quiet_at=30.0,
    ),
    "labels-come-and-go-in-place": _plan(
        at(8.0, "apply", spec={"template": {"metadata": {"labels": {"tier": "gold"}}}}),
        at(12.0, "apply", spec={"template": {"metadata": {"labels": {"tier": None}}}}),
        sets=(daemonset(rolling=_IN_PLACE),), quiet_at=30.0,
    ),
    # The kubelet has not seen the new image yet when it restarts the container with the old one.
    "the-old-image-restarts-in-place": _plan(
        at(6.0, "quirk", images="agent:v2 fail=stuck"), set_image(8.0),
        at(10.0, "restart-container", node=2), at(20.0, "quirk", images=""),
        sets=(daemonset(rolling=_IN_PLACE),), quiet_at=40.0,
    ),
    "in-place-and-deleted-meanwhile": _plan(
        at(7.9, "hold-watch", 3.0, kind="pods"), at(7.95, "delete-pod", node=2), set_image(8.0),
        sets=(daemonset(rolling=_IN_PLACE),), timing=_SLOW_STOP,
    ),
    "back-in-the-middle-of-in-place": _plan(
        set_image(8.0), at(8.03, "crash"), set_image(9.0, "agent:v1"),
        sets=(daemonset(rolling=_IN_PLACE),), quiet_at=30.0,
    ),
    "slow-in-place": _plan(
        set_image(8.0), sets=(daemonset(rolling=_IN_PLACE),), nodes=4,
        timing=Timing(pull=8.0, start=3.0),
    ),
    "more-memory": _plan(
        at(8.0, "apply", spec={"template": {"spec": {"containers": [_agent("200m")]}}}),
        sets=(daemonset(rolling=_IN_PLACE, template={"containers": [_agent("100m")]}),), nodes=4,
    ),
    "written-with-its-defaults": _plan(at(8.0, "respell"), quiet_at=20.0),
    "back-and-forth": _plan(
        set_image(8.0), set_image(12.0, "agent:v1"), set_image(16.0), set_image(20.0, "agent:v1"),
        nodes=4, quiet_at=40.0,
    ),
    "images-fetched-ahead": _plan(
        set_image(8.0), at(30.0, "remove-node", node=1), set_rolling_update(40.0, partition=0),
        sets=({
            **daemonset(rolling={**_ONE, "partition": 2}),
            "metadata": {"name": "agent", "namespace": "default", "annotations": {
                keys.PREDOWNLOAD_PARALLELISM: "2"}},
        },),
    ),
}  # fmt: skip

_EVICTED: Final = {
    # Disruption budgets apply to evictions; our deletes follow maxUnavailable only.
    "a-budget-that-allows-nothing": _plan(
        at(6.0, "protect", least=4), at(7.0, "drain-node", 40.0, node=0), set_image(8.0), nodes=4,
    ),
    "drained-in-the-middle": _plan(
        at(6.0, "protect", least=3), set_image(8.0),
        *(at(9.0 + 3.0 * i, "drain-node", 30.0, node=i) for i in range(4)), nodes=4,
        timing=Timing(start=3.0),
    ),
    "evicted-in-the-middle": _plan(
        at(6.0, "protect", least=1), set_image(8.0),
        *(at(8.5 + i, "evict-pod", node=i % 6) for i in range(12)),
        sets=(daemonset(rolling={"maxUnavailable": 2}, min_ready=3),), nodes=6,
    ),
    "drained-and-surging": _plan(
        at(6.0, "protect", least=3), set_image(8.0),
        *(at(9.0 + 4.0 * i, "drain-node", 30.0, node=i) for i in range(3)),
        sets=(daemonset(rolling=_SURGE),), timing=_SLOW_STOP,
    ),
    "both-pods-of-a-node-are-leaving": _plan(
        set_image(8.0), at(14.0, "evict-pod", node=2), at(14.0, "evict-pod", node=2, which=1),
        sets=(daemonset(rolling={"maxSurge": 4, "maxUnavailable": 0}),),
        timing=Timing(start=3.0, stop=15.0), quiet_at=60.0,
    ),
    "pull-pods-that-cannot-go": _plan(
        at(6.0, "stick-pullers", 60.0), set_image(8.0, "agent:v2"), set_image(40.0, "agent:v3"),
        nodes=4, timing=Timing(pull=3.0), quiet_at=90.0,
    ),
}  # fmt: skip

_RELEASES: Final = {
    "a-default-appears": _plan(
        at(8.0, "grow-templates"), at(12.0, "restart"), at(16.0, "release"),
        set_rolling_update(20.0, maxUnavailable=2), set_image(24.0), quiet_at=40.0,
    ),
    "a-default-appears-in-the-native-kind": _plan(
        at(8.0, "grow-templates"), set_rolling_update(10.0, maxUnavailable=2), at(12.0, "restart"),
        sets=(daemonset(rolling=_ONE, api_version=keys.APPS_V1),), quiet_at=30.0,
    ),
    "the-next-release-and-back": _plan(
        set_image(8.0), at(9.5, "release", 12.0), set_image(14.0, "agent:v1"),
        set_rolling_update(18.0, partition=1), set_image(24.0), set_image(26.0, "agent:v1"),
        nodes=4, quiet_at=45.0,
    ),
    "the-next-release-in-place": _plan(
        set_image(8.0), at(9.5, "release", 10.0), set_image(22.0, "agent:v3"),
        at(24.0, "release"), set_image(30.0), sets=(daemonset(rolling=_IN_PLACE),),
        nodes=4, quiet_at=45.0,
    ),
    "two-releases-at-once": _plan(
        at(20.0, "release", index=0), set_image(25.0), at(28.0, "restart", index=1),
        set_image(40.0, "agent:v1"), at(42.0, "restart", index=0), nodes=4, controllers=2,
        quiet_at=70.0,
    ),
}  # fmt: skip

_OTHERS: Final = {
    "the-crd-is-removed-and-comes-back": _plan(
        set_image(8.0), at(9.5, "remove-crd", 40.0), set_image(54.0, "agent:v3"), quiet_at=70.0,
    ),
    "the-crd-is-gone-for-a-moment": _plan(
        set_image(8.0), at(9.5, "remove-crd", 0.5), at(20.0, "remove-crd", 8.0), quiet_at=40.0,
        controllers=2,
    ),
    "overlapping-selectors": _plan(set_image(8.0), sets=_overlapping(), quiet_at=1000.0),
    "an-orphan-is-found-later": _plan(
        at(8.0, "orphan-pod", node=0, strip=True),
        set_image(20.0, "agent:never-ready"), set_image(1000.0, "agent:v3"),
        nodes=1, quiet_at=1010.0,
    ),
    # Nothing changes afterwards that would have it found: only the watch for orphans shows it.
    "a-bare-pod": _plan(
        set_image(8.0), at(30.0, "orphan-pod", node=0, strip=True), nodes=2, quiet_at=31.0,
        patience=60.0,
    ),
    "an-orphan-that-is-refused": _plan(
        # Its name is that of an earlier revision: a new pod there would not collide with it.
        at(8.0, "deny-adoption", seconds=60.0), at(9.0, "orphan-pod", node=0),
        set_image(12.0), at(30.0, "delete-pod", node=1), quiet_at=80.0,
    ),
    "a-dying-orphan": _plan(
        at(8.0, "stick-pod", node=0), at(8.5, "delete-pod", node=0),
        at(9.0, "orphan-pod", node=0), quiet_at=30.0,
    ),
    "orphans": _plan(
        at(8.0, "orphan-pod", node=0), at(12.0, "strip-hash", node=1),
        at(14.0, "orphan-pod", node=1), at(20.0, "strip-hash", node=2),
        at(22.0, "delete-pod", node=0), quiet_at=30.0,
    ),
    "a-pod-is-taken-out": _plan(
        at(8.0, "relabel-pod", node=0, keep=True), quiet_at=20.0,
    ),
    "adopted-behind-a-lagging-watch": _plan(
        at(8.0, "recreate-set", 2.0, propagation="Orphan"),
        at(10.01, "hold-watch", 15.0, kind="pods"), quiet_at=40.0,
    ),
    "set-free-and-created-anew": _plan(
        at(8.0, "hold-watch", 12.0, kind="daemonsets", coalesce=True),
        at(8.1, "recreate-set", 2.0, propagation="Orphan"), quiet_at=40.0,
    ),
    "the-set-is-gone-unnoticed": _plan(
        at(7.9, "silence", 40.0, kind="daemonsets"),
        at(7.9, "silence", 40.0, kind="controllerrevisions"),
        at(8.0, "recreate-set", 2.0, propagation="Orphan"), quiet_at=50.0,
        sets=(daemonset(rolling=_ONE, api_version=keys.APPS_V1),), nodes=2,
    ),
    "deleted-and-created-anew": _plan(
        at(8.0, "hold-watch", 12.0, kind="daemonsets", coalesce=True),
        at(8.1, "recreate-set", 0.0, propagation="Background"), quiet_at=40.0,
    ),
    "a-revision-is-deleted": _plan(
        at(8.0, "delete-revision"), set_image(14.0), at(30.0, "delete-revision", index=1),
        quiet_at=40.0,
    ),
    "another-condition": _plan(
        at(8.0, "write-status", status={}, condition="Tended"), set_image(10.0), quiet_at=30.0,
    ),
    "another-status": _plan(
        at(8.0, "write-status", number=7), set_image(10.0), at(20.0, "write-status", number=9),
        quiet_at=30.0,
    ),
    "a-generation-that-never-was": _plan(
        at(8.0, "write-status", status={"observedGeneration": 100}), set_image(9.0), quiet_at=20.0,
    ),
    "many-events": _plan(
        *(set_image(8.0 + 10.0 * i, f"agent:v{i + 2}") for i in range(5)),
        sets=(daemonset(rolling={"maxUnavailable": "100%"}),), nodes=6,
        timing=Timing(pull=0.0, start=0.1, stop=0.1), quiet_at=70.0,
    ),
}  # fmt: skip

_SERVER: Final = {
    "creates-are-denied": _plan(
        at(7.0, "deny-pods", 40.0), at(8.0, "delete-pod", node=0), set_image(9.0), quiet_at=60.0,
    ),
    "requests-are-lost": _plan(
        *(at_request(i, "lose-request") for i in range(20, 90, 2)), set_image(8.0), quiet_at=40.0,
    ),
    "answers-are-lost": _plan(
        *(at_request(i, "lose-answer") for i in range(20, 60, 3)), set_image(8.0), quiet_at=40.0,
    ),
    "a-delete-is-not-answered-and-the-watch-lags": _plan(
        at(7.9, "lose-answers", 3.0, method="DELETE"), set_image(8.0),
        at(7.9, "hold-watch", 12.0, kind="pods"), nodes=4, quiet_at=40.0,
    ),
    "a-create-is-lost": _plan(
        set_image(8.0), at(8.5, "lose-requests", 3.0, method="POST"), quiet_at=40.0,
    ),
    "everything-is-refused-at-first": _plan(
        *(at_request(i, "refuse", status=500) for i in range(4, 44)), set_image(8.0),
        set_image(20.0, "agent:v3"), quiet_at=40.0,
    ),
    "lost-in-an-outage": _plan(
        set_image(8.0), at(13.0, "outage", 40.0), quiet_at=60.0,
        sets=(daemonset(rolling=_ONE, min_ready=5),),
    ),
    "a-node-joins-behind-a-lagging-watch": _plan(
        at(8.0, "hold-watch", 20.0, kind="pods"),
        at(8.5, "add-node", node="late-01", labels={}), quiet_at=40.0,
    ),
    "a-node-goes-without-a-pod": _plan(
        at(7.0, "deny-pods", 20.0), at(8.0, "add-node", node="late-01", labels={}),
        at(20.0, "remove-node", node="late-01"), quiet_at=30.0,
    ),
}  # fmt: skip


def _lagging(successor: str, *, leader: str) -> Plan:
    """The leader is cut off during an update, and the watches of its successor lag."""
    return _plan(
        at(24.0, "hold-watch", 60.0, kind="pods", who=successor), set_image(25.0),
        at(28.0, "cut-off", 60.0, who=leader), nodes=6, controllers=2,
        sets=(daemonset(rolling=_ONE, min_ready=5),), quiet_at=110.0, timing=_SLOW_STOP,
    )  # fmt: skip


def _waiting(change: Action) -> Plan:
    """The user changes the strategy while more writes are decided than can be sent at once.

    The deletes that are sent first are slow.
    """
    return _plan(
        set_image(8.0), *(at_request(i, "slow-answer", 0.8) for i in range(104, 176)), change,
        nodes=90, sets=(daemonset(rolling={"maxUnavailable": "100%"}),), quiet_at=20.0,
    )  # fmt: skip


_WAITING: Final = {
    "paused-while-writes-wait": _waiting(set_rolling_update(8.4, paused=True)),
    "slowed-down-while-writes-wait": _waiting(set_rolling_update(8.4, maxUnavailable=1)),
    # 80 nodes may be down, and 64 deletes have been sent when ten other pods fail.
    "pods-fail-while-writes-wait": _plan(
        set_image(8.0), *(at_request(i, "slow-answer", 6.0) for i in range(104, 176)),
        *(at(8.5, "fail-pod", node=node) for node in range(10)),
        nodes=90, sets=(daemonset(rolling={"maxUnavailable": 80}),), quiet_at=40.0,
    ),
}  # fmt: skip

_CHANGED_ON_THE_WAY: Final = {
    # Two pods are unready for an update in place when only one may be, and the next template
    # cannot be reached in place.
    "recreated-when-fewer-may-be-down": _plan(
        set_image(8.0), set_rolling_update(8.5, maxUnavailable=1),
        at(8.6, "set-variable", value=1), nodes=4, quiet_at=20.0,
        sets=(daemonset(rolling={**_IN_PLACE, "maxUnavailable": 2}),),
    ),
}  # fmt: skip

_LEADING: Final = {
    "cut-off-and-back": _plan(
        set_image(25.0), at(27.0, "cut-off", 18.0, who="controller-0"),
        at(50.0, "cut-off", 30.0, who="controller-1"),
        at(85.0, "cut-off", 30.0, who="controller-0"), nodes=6, controllers=2,
        sets=(daemonset(rolling=_ONE, min_ready=5),), quiet_at=140.0,
    ),
    "frozen-in-the-middle": _plan(
        set_image(25.0), at(26.5, "freeze", 30.0, index=1), at(70.0, "freeze", 30.0, index=0),
        nodes=8, controllers=2, sets=(daemonset(rolling=_ONE, min_ready=4),), quiet_at=110.0,
    ),
    "restarted-in-the-middle": _plan(
        set_image(25.0), *(at(26.5 + 8.0 * i, "restart", index=1 - i % 2) for i in range(6)),
        *(at_request(i, "slow-answer", 2.5) for i in range(24, 200)), nodes=6, controllers=2,
        sets=(daemonset(rolling={"maxUnavailable": 3}),), quiet_at=90.0,
    ),
    # The next term waits for a write whose answer was lost; meanwhile another manager writes.
    "a-status-written-between-two-terms": _plan(
        set_image(16.0), at(17.0, "clock-jump", by=5),
        at(17.5, "lose-answers", 6.0, method="DELETE"),
        at(23.0, "write-status", status={"desiredNumberScheduled": 500}), nodes=6, quiet_at=40.0,
        timing=Timing(pull=0.0, start=0.3, ready=0.1, stop=0.1), patience=8000.0,
    ),
    # Which process leads first is random, so both cases are listed.
    "a-successor-that-lags": _lagging("controller-1", leader="controller-0"),
    "the-other-successor-lags": _lagging("controller-0", leader="controller-1"),
}  # fmt: skip

REGRESSION_PLANS: Final[dict[str, Plan]] = {
    name: msgspec.structs.replace(plan, name=name)
    for some in (
        *(_BUDGET, _HELD, _PODS, _EVICTED, _RELEASES, _OTHERS, _SERVER, _WAITING),
        *(_CHANGED_ON_THE_WAY, _LEADING),
        INTRUSIONS,
        ORPHANS,
        HEALTH,
        ROOM_PLANS,
    )
    for name, plan in some.items()
}

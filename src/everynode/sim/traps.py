"""Small worlds in each of which one sort of mistake shows at once.

The scenarios show what the product does; these show what it must not do. In most of them something
goes wrong at the worst moment. All of them end settled.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Object, Plan, Timing

_ONE: Final = {"maxUnavailable": 1}
_IN_PLACE: Final = {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"}
_SURGE: Final = {"maxSurge": 1, "maxUnavailable": 0}
_HOOKED: Final[Object] = {
    "lifecycle": {"preDelete": {"labelsHandler": {"hook": "yes"}}},
    "labels": {"hook": "yes"},
}
# As most node agents have it: else the taints of a silent node take it out of all counts.
_EVERYWHERE: Final = {"tolerations": [{"operator": "Exists"}]}
_SLOW_STOP: Final = Timing(pull=0.0, start=0.5, stop=15.0)


def _at(at: float, what: str, seconds: float = 0.0, **args: Any) -> Happening:
    return Happening(what, at=at, seconds=seconds, args=args)


def _call(call: int, what: str, seconds: float = 0.0, **args: Any) -> Happening:
    return Happening(what, call=call, seconds=seconds, args=args)


def _update(at: float, image: str = "agent:v2") -> Happening:
    return _at(at, "set-image", image=image)


def _rolling(at: float, **fields: Any) -> Happening:
    return _at(at, "apply", spec={"updateStrategy": {"rollingUpdate": fields}})


def _trap(
    *happenings: Happening,
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
        happenings=happenings,
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
    """A container that asks for so much, and gets it without a restart."""
    amounts = {"cpu": cpu, "memory": "64Mi"}
    resources = {"requests": amounts, "limits": amounts}
    return {"name": "agent", "image": "agent:v1", "resources": resources}


_BUDGET: Final = {
    # Two updates while no pod has been Ready for long enough: every node is down all the same.
    "twice-within-min-ready-seconds": _trap(
        _update(8.0), _update(20.0, "agent:v3"), sets=(daemonset(rolling=_ONE, min_ready=30),),
        nodes=4, quiet_at=40.0,
    ),
    "all-pods-unready": _trap(
        _at(10.0, "quirk", images="agent:* fail=probe"), _update(20.0), _update(40.0, "agent:v3"),
        nodes=4,
    ),
    "a-bad-version-where-none-is-ready": _trap(
        _at(10.0, "quirk", images="agent:v1 fail=probe"), _update(20.0, "agent:never-ready"),
        _update(40.0, "agent:v3"), nodes=4,
    ),
    "a-cure": _trap(
        _at(10.0, "quirk", images="agent:v1 fail=probe"), _update(20.0), nodes=6,
        timing=Timing(start=3.0),
    ),
    "one-node-is-down-already": _trap(
        _at(10.0, "unready-node", 30.0, node=0), _update(20.0), nodes=4,
        sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    "pods-that-take-long-to-stop": _trap(_update(8.0), nodes=4, timing=_SLOW_STOP),
    "a-zone-is-lost": _trap(
        _at(8.0, "lose-zone", zone="zone-a"), _update(60.0), _at(100.0, "find-nodes"),
        nodes=6, quiet_at=120.0, sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    "a-silent-node": _trap(
        _at(8.0, "lose-node", 90.0, node=2), _update(60.0), nodes=3, quiet_at=110.0,
        sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    # What makes nodes fall silent must not be excused by its victims.
    "a-version-that-silences-its-nodes": _trap(
        _update(8.0, "agent:never-ready"), _at(16.0, "lose-node", 200.0, node=5),
        _at(120.0, "lose-node", 100.0, node=4), _update(200.0, "agent:v3"),
        nodes=6, quiet_at=240.0, sets=(daemonset(rolling=_ONE, template=_EVERYWHERE),),
    ),
    "a-bad-version-for-a-long-time": _trap(
        _update(8.0, "agent:never-ready"), _at(100.0, "delete-pod", node=3),
        _at(400.0, "evict-pod", node=2), _at(500.0, "fail-pod", node=0), _update(800.0, "agent:v1"),
        nodes=4, quiet_at=820.0,
    ),
    "a-bad-version-in-place": _trap(
        _update(8.0, "agent:never-ready"), _at(60.0, "crash"), _at(700.0, "restart"),
        _update(800.0, "agent:v3"), sets=(daemonset(rolling=_IN_PLACE),), nodes=4, quiet_at=820.0,
    ),
    "percent-and-another-status": _trap(
        _at(8.0, "write-status", status={"desiredNumberScheduled": 100}), _update(40.0),
        sets=(daemonset(rolling={"maxUnavailable": "25%"}),), nodes=4, quiet_at=80.0,
    ),
    "held-pods-watch": _trap(
        _at(7.9, "hold-watch", 20.0, kind="pods"), _update(8.0), nodes=4,
    ),
    "hooks-that-nobody-answers": _trap(
        _at(5.0, "hold-hooks", 1000.0), _update(8.0, "agent:never-ready"),
        _at(20.0, "release-hooks"), _at(40.0, "delete-pod", node=0), _update(60.0, "agent:v1"),
        _at(70.0, "apply", spec={"lifecycle": None}),
        sets=(daemonset(rolling=_ONE, **_HOOKED),), nodes=4, quiet_at=80.0,
    ),
    "hooks-that-hold": _trap(
        _update(8.0), sets=(daemonset(rolling=_ONE, **_HOOKED),), nodes=4, quiet_at=40.0,
    ),
}  # fmt: skip

_HELD: Final = {
    "a-node-joins-held": _trap(
        _update(8.0), _at(16.0, "add-node", node="zz-late", labels={}),
        _at(20.0, "delete-pod", node=0, grace=0), _rolling(30.0, partition=0),
        sets=(daemonset(rolling={**_ONE, "partition": 3}),),
    ),
    "three-versions-held": _trap(
        _update(8.0), _rolling(16.0, partition=2), _update(18.0, "agent:v3"),
        _at(26.0, "fail-pod", node=0), _at(26.0, "delete-pod", node=1, grace=0),
        _at(34.0, "delete-pod", node=0), _rolling(44.0, partition=0),
        sets=(daemonset(rolling={**_ONE, "partition": 1}),),
    ),
    "installed-step-by-step-and-paused": _trap(
        _rolling(6.0, paused=True), _at(10.0, "add-node", node="zz-late", labels={}),
        _rolling(14.0, partition=1), _at(20.0, "delete-pod", node=1, grace=0),
        _rolling(26.0, paused=False), _rolling(32.0, partition=0),
        sets=(_stepwise({**_ONE, "partition": 3}),), nodes=4, quiet_at=45.0,
    ),
    "installed-step-by-step-while-paused": _trap(
        _at(8.0, "add-node", node="zz-late", labels={}),
        sets=(_stepwise({**_ONE, "partition": 2, "paused": True}),), nodes=4, quiet_at=20.0,
    ),
    "installed-step-by-step-by-selector": _trap(
        _update(8.0), _at(20.0, "add-node", node="late-01", labels={}),
        sets=(_stepwise({**_ONE, "selector": {"matchLabels": {
            "topology.kubernetes.io/zone": "zone-a"}}}),), quiet_at=35.0,
    ),
    "a-first-installation-in-one-go": _trap(
        _at(8.0, "add-node", node="aa-late", labels={}),
        sets=(daemonset(rolling={**_ONE, "partition": 2}),), nodes=3, quiet_at=20.0,
    ),
    "back-and-held": _trap(
        _update(8.0), _rolling(20.0, partition=3), _update(22.0, "agent:v1"),
        _at(26.0, "add-node", node="late-01", labels={}), _rolling(36.0, partition=0),
    ),
    "half-of-five": _trap(
        _update(8.0), _at(24.0, "remove-node", node=0), _at(30.0, "delete-pod", node=1),
        _rolling(36.0, partition=1), _at(44.0, "remove-node", node=0),
        sets=(daemonset(rolling={**_ONE, "partition": "50%"}),), nodes=5,
    ),
    "half-of-five-for-good": _trap(
        _update(8.0), sets=(daemonset(rolling={**_ONE, "partition": "50%"}),), nodes=5,
        quiet_at=30.0,
    ),
    "a-node-joins-at-the-end-of-the-line": _trap(
        _update(8.0), _at(20.0, "add-node", node="aa-late", labels={}),
        sets=(daemonset(rolling={**_ONE, "partition": 3}),), nodes=5, quiet_at=35.0,
    ),
    "paused-and-pods-die": _trap(
        _update(8.0), _rolling(9.0, paused=True), _at(14.0, "delete-pod", node=0),
        _at(16.0, "fail-pod", node=1), _rolling(30.0, paused=False), nodes=4,
    ),
    "a-selector-and-pods-die": _trap(
        _update(8.0), _at(14.0, "delete-pod", node=1), _rolling(30.0, selector=None),
        sets=(daemonset(rolling={**_ONE, "selector": {"matchLabels": {
            "topology.kubernetes.io/zone": "zone-a"}}}),),
    ),
    "another-node-selector-held": _trap(
        _at(4.0, "label-node", node=2, labels={"pool": "a"}),
        _at(8.0, "set-selector", labels={"pool": "a"}), _rolling(24.0, partition=0),
        sets=(daemonset(rolling={**_ONE, "partition": 1}),), quiet_at=40.0,
    ),
    "history-of-one": _trap(
        _update(8.0), _rolling(16.0, partition=2), _update(18.0, "agent:v3"),
        _update(26.0, "agent:v4"), _at(34.0, "delete-pod", node=0), _rolling(40.0, partition=0),
        _update(48.0, "agent:v5"), _update(54.0, "agent:v6"),
        sets=(daemonset(rolling={**_ONE, "partition": 1}, revisionHistoryLimit=1),),
        quiet_at=70.0,
    ),
    "history-of-none": _trap(
        _update(8.0), _rolling(20.0, partition=3), _update(22.0, "agent:v3"),
        *(_at(24.0, "delete-pod", node=i, grace=0) for i in range(3)),
        _rolling(40.0, partition=0),
        sets=(daemonset(rolling=_ONE, revisionHistoryLimit=0),),
    ),
}  # fmt: skip

_PODS: Final = {
    "surge-and-slow-stops": _trap(
        _update(8.0), sets=(daemonset(rolling=_SURGE),), nodes=4, timing=_SLOW_STOP,
    ),
    "surge-to-a-version-that-is-never-ready": _trap(
        _update(8.0, "agent:never-ready"), _update(30.0, "agent:v3"),
        sets=(daemonset(rolling=_SURGE),),
    ),
    "a-pod-that-fails-again-and-again": _trap(
        *(_at(at, "fail-pod", node=0) for at in (8.0, 12.0, 18.0, 27.0)), quiet_at=30.0,
        patience=60.0,
    ),
    "tainted-since": _trap(
        _at(6.0, "taint-node", node=0), _update(8.0), _at(25.0, "delete-pod", node=0),
        quiet_at=35.0,
    ),
    "tainted-and-in-place": _trap(
        _at(6.0, "taint-node", node=0), _update(8.0), _at(20.0, "set-variable", value=1),
        sets=(daemonset(rolling=_IN_PLACE),), quiet_at=40.0,
    ),
    "evicting-taint": _trap(
        _at(6.0, "taint-node", node=0, effect="NoExecute"), _update(10.0), quiet_at=30.0,
    ),
    "nodes-that-lose-their-label": _trap(
        *(_at(4.0, "label-node", node=i, labels={"pool": "a"}) for i in range(3)),
        _at(8.0, "set-selector", labels={"pool": "a"}),
        _at(24.0, "label-node", node=0, labels={"pool": None}),
        _at(24.0, "add-node", node="late-01", labels={"pool": "a"}), quiet_at=40.0,
    ),
    "a-node-goes-before-its-pod-is-bound": _trap(
        _at(8.0, "remove-node", node=0),
        _at(20.0, "apply", spec={"template": {"spec": {"containers": [_agent("100m")]}}}),
        sets=(daemonset(rolling=_ONE, template={"containers": [_agent("1000")]}),), quiet_at=30.0,
    ),
    "cordoned-nodes": _trap(
        _at(6.0, "cordon-node", node=0), _at(6.0, "unready-node", 30.0, node=1),
        _at(10.0, "delete-pod", node=0), _at(10.0, "delete-pod", node=1), quiet_at=45.0,
    ),
    "other-variables-in-place": _trap(
        _update(8.0), _at(20.0, "set-variable", value=1), sets=(daemonset(rolling=_IN_PLACE),),
    ),
    "in-place-and-deleted-meanwhile": _trap(
        _at(7.9, "hold-watch", 3.0, kind="pods"), _at(7.95, "delete-pod", node=2), _update(8.0),
        sets=(daemonset(rolling=_IN_PLACE),), timing=_SLOW_STOP,
    ),
    "back-in-the-middle-of-in-place": _trap(
        _update(8.0), _at(8.03, "crash"), _update(9.0, "agent:v1"),
        sets=(daemonset(rolling=_IN_PLACE),), quiet_at=30.0,
    ),
    "slow-in-place": _trap(
        _update(8.0), sets=(daemonset(rolling=_IN_PLACE),), nodes=4,
        timing=Timing(pull=8.0, start=3.0),
    ),
    "more-memory": _trap(
        _at(8.0, "apply", spec={"template": {"spec": {"containers": [_agent("200m")]}}}),
        sets=(daemonset(rolling=_IN_PLACE, template={"containers": [_agent("100m")]}),), nodes=4,
    ),
    "written-with-its-defaults": _trap(_at(8.0, "respell"), quiet_at=20.0),
    "back-and-forth": _trap(
        _update(8.0), _update(12.0, "agent:v1"), _update(16.0), _update(20.0, "agent:v1"),
        nodes=4, quiet_at=40.0,
    ),
    "images-fetched-ahead": _trap(
        _update(8.0), _at(30.0, "remove-node", node=1), _rolling(40.0, partition=0),
        sets=({
            **daemonset(rolling={**_ONE, "partition": 2}),
            "metadata": {"name": "agent", "namespace": "default", "annotations": {
                keys.PREDOWNLOAD_PARALLELISM: "2"}},
        },),
    ),
}  # fmt: skip

_EVICTED: Final = {
    # Budgets bind whoever evicts; our own deletes are bound by maxUnavailable alone.
    "a-budget-that-allows-nothing": _trap(
        _at(6.0, "protect", least=4), _at(7.0, "drain-node", 40.0, node=0), _update(8.0), nodes=4,
    ),
    "drained-in-the-middle": _trap(
        _at(6.0, "protect", least=3), _update(8.0),
        *(_at(9.0 + 3.0 * i, "drain-node", 30.0, node=i) for i in range(4)), nodes=4,
        timing=Timing(start=3.0),
    ),
    "evicted-in-the-middle": _trap(
        _at(6.0, "protect", least=1), _update(8.0),
        *(_at(8.5 + i, "evict-pod", node=i % 6) for i in range(12)),
        sets=(daemonset(rolling={"maxUnavailable": 2}, min_ready=3),), nodes=6,
    ),
    "drained-and-surging": _trap(
        _at(6.0, "protect", least=3), _update(8.0),
        *(_at(9.0 + 4.0 * i, "drain-node", 30.0, node=i) for i in range(3)),
        sets=(daemonset(rolling=_SURGE),), timing=_SLOW_STOP,
    ),
    "both-pods-of-a-node-are-leaving": _trap(
        _update(8.0), _at(14.0, "evict-pod", node=2), _at(14.0, "evict-pod", node=2, which=1),
        sets=(daemonset(rolling={"maxSurge": 4, "maxUnavailable": 0}),),
        timing=Timing(start=3.0, stop=15.0), quiet_at=60.0,
    ),
    "pullers-that-cannot-go": _trap(
        _at(6.0, "stick-pullers", 60.0), _update(8.0, "agent:v2"), _update(40.0, "agent:v3"),
        nodes=4, timing=Timing(pull=3.0), quiet_at=90.0,
    ),
}  # fmt: skip

_RELEASES: Final = {
    "a-default-appears": _trap(
        _at(8.0, "grow-templates"), _at(12.0, "restart"), _at(16.0, "release"),
        _rolling(20.0, maxUnavailable=2), _update(24.0), quiet_at=40.0,
    ),
    "a-default-appears-in-the-native-kind": _trap(
        _at(8.0, "grow-templates"), _rolling(10.0, maxUnavailable=2), _at(12.0, "restart"),
        sets=(daemonset(rolling=_ONE, api_version=keys.APPS_V1),), quiet_at=30.0,
    ),
    "the-next-release-and-back": _trap(
        _update(8.0), _at(9.5, "release", 12.0), _update(14.0, "agent:v1"),
        _rolling(18.0, partition=1), _update(24.0), _update(26.0, "agent:v1"),
        nodes=4, quiet_at=45.0,
    ),
    "the-next-release-in-place": _trap(
        _update(8.0), _at(9.5, "release", 10.0), _update(22.0, "agent:v3"),
        _at(24.0, "release"), _update(30.0), sets=(daemonset(rolling=_IN_PLACE),),
        nodes=4, quiet_at=45.0,
    ),
    "two-releases-at-once": _trap(
        _at(20.0, "release", index=0), _update(25.0), _at(28.0, "restart", index=1),
        _update(40.0, "agent:v1"), _at(42.0, "restart", index=0), nodes=4, controllers=2,
        quiet_at=70.0,
    ),
}  # fmt: skip

_OTHERS: Final = {
    "the-crd-is-removed-and-comes-back": _trap(
        _update(8.0), _at(9.5, "remove-crd", 40.0), _update(54.0, "agent:v3"), quiet_at=70.0,
    ),
    "the-crd-is-gone-for-a-moment": _trap(
        _update(8.0), _at(9.5, "remove-crd", 0.5), _at(20.0, "remove-crd", 8.0), quiet_at=40.0,
        controllers=2,
    ),
    "overlapping-selectors": _trap(_update(8.0), sets=_overlapping(), quiet_at=1000.0),
    "an-orphan-is-found-later": _trap(
        _at(8.0, "orphan-pod", node=0, strip=True),
        _update(20.0, "agent:never-ready"), _update(1000.0, "agent:v3"), nodes=1, quiet_at=1010.0,
    ),
    "a-dying-orphan": _trap(
        _at(8.0, "stick-pod", node=0), _at(8.5, "delete-pod", node=0),
        _at(9.0, "orphan-pod", node=0), quiet_at=30.0,
    ),
    "orphans": _trap(
        _at(8.0, "orphan-pod", node=0), _at(12.0, "strip-hash", node=1),
        _at(14.0, "orphan-pod", node=1), _at(20.0, "strip-hash", node=2),
        _at(22.0, "delete-pod", node=0), quiet_at=30.0,
    ),
    "a-pod-is-taken-out": _trap(
        _at(8.0, "relabel-pod", node=0, keep=True), quiet_at=20.0,
    ),
    "adopted-behind-a-lagging-watch": _trap(
        _at(8.0, "recreate-set", 2.0, propagation="Orphan"),
        _at(10.01, "hold-watch", 15.0, kind="pods"), quiet_at=40.0,
    ),
    "set-free-and-created-anew": _trap(
        _at(8.0, "hold-watch", 12.0, kind="daemonsets", coalesce=True),
        _at(8.1, "recreate-set", 2.0, propagation="Orphan"), quiet_at=40.0,
    ),
    "the-set-is-gone-and-nobody-says-so": _trap(
        _at(7.9, "silence", 40.0, kind="daemonsets"),
        _at(7.9, "silence", 40.0, kind="controllerrevisions"),
        _at(8.0, "recreate-set", 2.0, propagation="Orphan"), quiet_at=50.0,
        sets=(daemonset(rolling=_ONE, api_version=keys.APPS_V1),), nodes=2,
    ),
    "deleted-and-created-anew": _trap(
        _at(8.0, "hold-watch", 12.0, kind="daemonsets", coalesce=True),
        _at(8.1, "recreate-set", 0.0, propagation="Background"), quiet_at=40.0,
    ),
    "a-revision-is-deleted": _trap(
        _at(8.0, "delete-revision"), _update(14.0), _at(30.0, "delete-revision", index=1),
        quiet_at=40.0,
    ),
    "another-condition": _trap(
        _at(8.0, "write-status", status={}, condition="Tended"), _update(10.0), quiet_at=30.0,
    ),
    "another-status": _trap(
        _at(8.0, "write-status", number=7), _update(10.0), _at(20.0, "write-status", number=9),
        quiet_at=30.0,
    ),
    "many-events": _trap(
        *(_update(8.0 + 10.0 * i, f"agent:v{i + 2}") for i in range(5)),
        sets=(daemonset(rolling={"maxUnavailable": "100%"}),), nodes=6,
        timing=Timing(pull=0.0, start=0.1, stop=0.1), quiet_at=70.0,
    ),
}  # fmt: skip

_SERVER: Final = {
    "creates-are-denied": _trap(
        _at(7.0, "deny-pods", 40.0), _at(8.0, "delete-pod", node=0), _update(9.0), quiet_at=60.0,
    ),
    "requests-are-lost": _trap(
        *(_call(i, "lose-request") for i in range(20, 90, 2)), _update(8.0), quiet_at=40.0,
    ),
    "answers-are-lost": _trap(
        *(_call(i, "lose-answer") for i in range(20, 60, 3)), _update(8.0), quiet_at=40.0,
    ),
    "a-delete-is-not-answered-and-the-watch-lags": _trap(
        _call(18, "lose-answer"), _call(19, "lose-answer"), _update(8.0),
        _at(7.9, "hold-watch", 12.0, kind="pods"), nodes=4, quiet_at=40.0,
    ),
    "a-create-is-lost": _trap(
        *(_call(i, "lose-request") for i in (19, 20, 21)), _update(8.0), quiet_at=40.0,
    ),
    "everything-is-refused-at-first": _trap(
        *(_call(i, "refuse", status=500) for i in range(4, 44)), _update(8.0),
        _update(20.0, "agent:v3"), quiet_at=40.0,
    ),
    "lost-in-an-outage": _trap(
        _update(8.0), _at(13.0, "outage", 40.0), quiet_at=60.0,
        sets=(daemonset(rolling=_ONE, min_ready=5),),
    ),
    "a-node-joins-behind-a-lagging-watch": _trap(
        _at(8.0, "hold-watch", 20.0, kind="pods"),
        _at(8.5, "add-node", node="late-01", labels={}), quiet_at=40.0,
    ),
    "a-node-goes-without-a-pod": _trap(
        _at(7.0, "deny-pods", 20.0), _at(8.0, "add-node", node="late-01", labels={}),
        _at(20.0, "remove-node", node="late-01"), quiet_at=30.0,
    ),
}  # fmt: skip


def _lagging(successor: str, *, leader: str) -> Plan:
    """A leader is cut off in the midst of an update; the other has not heard of it for a while."""
    return _trap(
        _at(24.0, "hold-watch", 60.0, kind="pods", who=successor), _update(25.0),
        _at(28.0, "cut-off", 60.0, who=leader), nodes=6, controllers=2,
        sets=(daemonset(rolling=_ONE, min_ready=5),), quiet_at=110.0, timing=_SLOW_STOP,
    )  # fmt: skip


_LEADING: Final = {
    "cut-off-and-back": _trap(
        _update(25.0), _at(27.0, "cut-off", 18.0, who="controller-0"),
        _at(50.0, "cut-off", 30.0, who="controller-1"),
        _at(85.0, "cut-off", 30.0, who="controller-0"), nodes=6, controllers=2,
        sets=(daemonset(rolling=_ONE, min_ready=5),), quiet_at=140.0,
    ),
    "frozen-in-the-middle": _trap(
        _update(25.0), _at(26.5, "freeze", 30.0, index=1), _at(70.0, "freeze", 30.0, index=0),
        nodes=8, controllers=2, sets=(daemonset(rolling=_ONE, min_ready=4),), quiet_at=110.0,
    ),
    "restarted-in-the-middle": _trap(
        _update(25.0), *(_at(26.5 + 8.0 * i, "restart", index=1 - i % 2) for i in range(6)),
        *(_call(i, "slow-answer", 2.5) for i in range(24, 200)), nodes=6, controllers=2,
        sets=(daemonset(rolling={"maxUnavailable": 3}),), quiet_at=90.0,
    ),
    # Who comes to lead first is a matter of chance: one of the two catches a successor.
    "a-successor-that-lags": _lagging("controller-1", leader="controller-0"),
    "the-other-successor-lags": _lagging("controller-0", leader="controller-1"),
}  # fmt: skip

TRAPS: Final[dict[str, Plan]] = {
    name: msgspec.structs.replace(plan, name=name)
    for some in (_BUDGET, _HELD, _PODS, _EVICTED, _RELEASES, _OTHERS, _SERVER, _LEADING)
    for name, plan in some.items()
}

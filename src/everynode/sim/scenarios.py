"""The reference scenarios: what the product does, one small world each, told in a few happenings.

Every one ends settled without any fault, before `quiet_at`, so that a crash can be put at every
request that the controller makes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Object, Plan

_ZONE_A: Final = {"matchLabels": {"topology.kubernetes.io/zone": "zone-a"}}
_IN_PLACE: Final = "InPlaceIfPossible"
_V2: Final = "agent:v2"


class Scenario(msgspec.Struct, frozen=True):
    """A plan in which nothing goes wrong, and what it shows."""

    name: str
    title: str
    plan: Plan


def _at(at: float, what: str, **args: Any) -> Happening:
    return Happening(what, at=at, args=args)


def _update(at: float, image: str = _V2) -> Happening:
    return _at(at, "set-image", image=image)


def _rolling(at: float, **fields: Any) -> Happening:
    return _at(at, "apply", spec={"updateStrategy": {"rollingUpdate": fields}})


def _containers(at: float, **fields: Any) -> Happening:
    spec = {"containers": [{"name": "agent", **fields}]}
    return _at(at, "apply", spec={"template": {"spec": spec}})


def _annotated(manifest: Object, **annotations: str) -> Object:
    metadata = {**manifest["metadata"], "annotations": annotations}
    return {**manifest, "metadata": metadata}


def _scenario(
    title: str,
    manifest: Object,
    *happenings: Happening,
    nodes: int = 3,
    controllers: int = 1,
    quiet_at: float = 40.0,
) -> tuple[str, Plan]:
    plan = Plan(
        seed=1,
        nodes=nodes,
        manifests=(manifest,),
        controllers=controllers,
        happenings=happenings,
        quiet_at=quiet_at,
        patience=1800.0,
    )
    return title, plan


def _resources(cpu: str) -> Object:
    return {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": cpu, "memory": "64Mi"}}


def _resized() -> Object:
    made = daemonset(rolling={"rollingUpdateType": _IN_PLACE, "maxUnavailable": 1})
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = _resources("100m")
    return made


_HOOKED: Final[Object] = {
    "lifecycle": {"preDelete": {"labelsHandler": {"hook": "yes"}}},
    "labels": {"hook": "yes"},
}

_ALL: Final = {
    "first-creation": _scenario(
        "every node gets its first pod, and so does one that joins",
        daemonset(),
        _at(8.0, "add-node", node="late-01", labels={}),
        quiet_at=20.0,
    ),
    "step-by-step": _scenario(
        "a first installation by partition, one more step, and an update that fills the rest",
        daemonset(rolling={"partition": 3}, scaleStrategy={"partitionedScaling": True}),
        _rolling(6.0, partition=2),
        _at(10.0, "add-node", node="late-01", labels={}),
        _update(16.0),
        nodes=4,
        quiet_at=40.0,
    ),
    "rolling-update": _scenario(
        "one node after the other, each available for a while before the next",
        daemonset(rolling={"maxUnavailable": 1}, min_ready=2),
        _update(8.0),
    ),
    "two-at-once": _scenario(
        "an update in the middle of another, two nodes at a time",
        daemonset(rolling={"maxUnavailable": "50%"}, min_ready=2),
        _update(8.0),
        _update(11.0, "agent:v3"),
        nodes=4,
    ),
    "surge": _scenario(
        "the new pod before the old one goes",
        daemonset(rolling={"maxSurge": 1, "maxUnavailable": 0}),
        _update(8.0),
    ),
    "in-place": _scenario(
        "new images in the pods that are there",
        daemonset(rolling={"rollingUpdateType": _IN_PLACE, "maxUnavailable": 1}),
        _update(8.0),
    ),
    "in-place-resize": _scenario(
        "more CPU and a new image in the pods that are there",
        _resized(),
        _containers(8.0, image=_V2, resources=_resources("200m")),
    ),
    "partition": _scenario(
        "a canary by partition, a pod that dies on a held node, then the rest",
        daemonset(rolling={"maxUnavailable": 1, "partition": 2}),
        _update(8.0),
        _at(14.0, "delete-pod", node=0),
        _rolling(20.0, partition=0),
    ),
    "selector": _scenario(
        "a canary by node selector, then the rest",
        daemonset(rolling={"maxUnavailable": 1, "selector": _ZONE_A}),
        _update(8.0),
        _rolling(18.0, selector=None),
    ),
    "pause": _scenario(
        "paused in the middle, a node joins, resumed",
        daemonset(rolling={"maxUnavailable": 1}),
        _update(8.0),
        _rolling(10.0, paused=True),
        _at(16.0, "add-node", node="late-01", labels={}),
        _rolling(22.0, paused=False),
        quiet_at=45.0,
    ),
    "rollback": _scenario(
        "a version that never becomes ready, and the way back",
        daemonset(rolling={"maxUnavailable": 1}),
        _update(8.0, "agent:never-ready"),
        _update(16.0, "agent:v1"),
    ),
    "pre-delete-hook": _scenario(
        "pods wait for the program behind their hook",
        daemonset(rolling={"maxUnavailable": 1}, **_HOOKED),
        _update(8.0),
        *(_at(10.0 + 5.0 * i, "release-hooks") for i in range(6)),
        quiet_at=50.0,
    ),
    "stuck-hook": _scenario(
        "the program behind the hook answers nobody, and the way back",
        daemonset(rolling={"maxUnavailable": 1}, **_HOOKED),
        Happening("hold-hooks", at=6.0, seconds=1000.0),
        _update(8.0),
        _at(12.0, "release-hooks"),
        _update(16.0, "agent:v1"),
        _at(20.0, "apply", spec={"lifecycle": None}),
    ),
    "drain": _scenario(
        "nodes are drained under a disruption budget in the middle of an update",
        daemonset(rolling={"maxUnavailable": 1}),
        _at(6.0, "protect", least=2),
        _update(8.0),
        Happening("drain-node", at=9.5, seconds=30.0, args={"node": 0}),
        Happening("drain-node", at=14.0, seconds=30.0, args={"node": 2}),
        quiet_at=50.0,
    ),
    "failed-pods": _scenario(
        "pods that fail, one of them twice, are replaced after a pause",
        daemonset(),
        _at(8.0, "fail-pod", node=0),
        _at(8.0, "fail-pod", node=1),
        _at(16.0, "fail-pod", node=0),
    ),
    "pre-pull": _scenario(
        "images are fetched ahead of the update, while most nodes are held",
        _annotated(
            daemonset(rolling={"maxUnavailable": 1, "partition": 2}),
            **{keys.PREDOWNLOAD_PARALLELISM: "2"},
        ),
        _update(8.0),
        _rolling(20.0, partition=0),
    ),
    "stuck-puller": _scenario(
        "who fetches images ahead cannot go, and the update goes on",
        daemonset(rolling={"maxUnavailable": 1}),
        Happening("stick-pullers", at=6.0, seconds=40.0),
        _update(8.0),
        quiet_at=60.0,
    ),
    "native": _scenario(
        "the DaemonSet of Kubernetes itself",
        daemonset(rolling={"maxUnavailable": 1}, api_version=keys.APPS_V1),
        _update(8.0),
    ),
    "on-delete": _scenario(
        "pods are updated when somebody deletes them",
        daemonset(updateStrategy={"type": "OnDelete"}),
        _update(8.0),
        *(_at(10.0 + 6.0 * i, "delete-pod", node=i) for i in range(3)),
    ),
    "adoption": _scenario(
        "deleted without its pods and created anew in the middle of an update",
        daemonset(rolling={"maxUnavailable": 1}),
        _update(8.0),
        Happening("recreate-set", at=10.0, seconds=2.0, args={"propagation": "Orphan"}),
        quiet_at=45.0,
    ),
    "upgrade": _scenario(
        "a newer server and the next release of Everynode in the middle of an update, and back",
        daemonset(rolling={"maxUnavailable": 1}, api_version=keys.APPS_V1),
        _update(8.0),
        _at(9.5, "grow-templates"),
        _rolling(12.0, maxUnavailable=2),
        _at(13.0, "release"),
        _update(22.0, "agent:v3"),
        _update(24.0),
    ),
    "failover": _scenario(
        "two controllers; the one that leads is cut off in the middle, the other goes on",
        daemonset(rolling={"maxUnavailable": 1}, min_ready=2),
        _update(25.0),
        Happening("cut-off", at=30.0, seconds=30.0, args={"who": "controller-0"}),
        controllers=2,
        quiet_at=90.0,
    ),
}

SCENARIOS: Final[dict[str, Scenario]] = {
    name: Scenario(name, title, msgspec.structs.replace(plan, name=name))
    for name, (title, plan) in _ALL.items()
}

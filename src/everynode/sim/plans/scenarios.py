"""Reference scenarios: what the product does, each in one small cluster with a few actions.

Each settles before `quiet_at` without any fault, so that a crash can be placed at every request of
the controller.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.sim.plans.builders import at, set_image, set_rolling_update
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Object, Plan

_ZONE_A: Final = {"matchLabels": {"topology.kubernetes.io/zone": "zone-a"}}
_IN_PLACE: Final = "InPlaceIfPossible"
_V2: Final = "agent:v2"


class Scenario(msgspec.Struct, frozen=True):
    """A plan without faults, and what it demonstrates."""

    name: str
    title: str
    plan: Plan


def _containers(time: float, **fields: Any) -> Action:
    spec = {"containers": [{"name": "agent", **fields}]}
    return at(time, "apply", spec={"template": {"spec": spec}})


def _annotate(manifest: Object, **annotations: str) -> Object:
    metadata = {**manifest["metadata"], "annotations": annotations}
    return {**manifest, "metadata": metadata}


def _scenario(
    title: str,
    manifest: Object,
    *actions: Action,
    nodes: int = 3,
    controllers: int = 1,
    quiet_at: float = 40.0,
) -> tuple[str, Plan]:
    plan = Plan(
        seed=1,
        nodes=nodes,
        manifests=(manifest,),
        controllers=controllers,
        actions=actions,
        quiet_at=quiet_at,
        patience=1800.0,
    )
    return title, plan


def _resources(cpu: str) -> Object:
    return {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": cpu, "memory": "64Mi"}}


def _resizable_daemonset() -> Object:
    manifest = daemonset(rolling={"rollingUpdateType": _IN_PLACE, "maxUnavailable": 1})
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = _resources("100m")
    return manifest


def _sized_container(cpu: str) -> Object:
    return {"name": "agent", "image": "agent:v1", "resources": {"requests": {"cpu": cpu}}}


_HOOKED: Final[Object] = {
    "lifecycle": {"preDelete": {"labelsHandler": {"hook": "yes"}}},
    "labels": {"hook": "yes"},
}

_ALL: Final = {
    "first-creation": _scenario(
        "every node gets its first pod, and so does one that joins",
        daemonset(),
        at(8.0, "add-node", node="late-01", labels={}),
        quiet_at=20.0,
    ),
    "step-by-step": _scenario(
        "a first installation by partition, one more step, and an update that fills the rest",
        daemonset(rolling={"partition": 3}, scaleStrategy={"partitionedScaling": True}),
        set_rolling_update(6.0, partition=2),
        at(10.0, "add-node", node="late-01", labels={}),
        set_image(16.0),
        nodes=4,
        quiet_at=40.0,
    ),
    "rolling-update": _scenario(
        "one node after the other, each available for a while before the next",
        daemonset(rolling={"maxUnavailable": 1}, min_ready=2),
        set_image(8.0),
    ),
    "two-at-once": _scenario(
        "an update in the middle of another, two nodes at a time",
        daemonset(rolling={"maxUnavailable": "50%"}, min_ready=2),
        set_image(8.0),
        set_image(11.0, "agent:v3"),
        nodes=4,
    ),
    "surge": _scenario(
        "the new pod before the old one goes",
        daemonset(rolling={"maxSurge": 1, "maxUnavailable": 0}),
        set_image(8.0),
    ),
    "in-place": _scenario(
        "new images in the pods that are there",
        daemonset(rolling={"rollingUpdateType": _IN_PLACE, "maxUnavailable": 1}),
        set_image(8.0),
    ),
    "in-place-resize": _scenario(
        "more CPU and a new image in the pods that are there",
        _resizable_daemonset(),
        _containers(8.0, image=_V2, resources=_resources("200m")),
    ),
    "partition": _scenario(
        "a canary by partition, a pod that dies on a held node, then the rest",
        daemonset(rolling={"maxUnavailable": 1, "partition": 2}),
        set_image(8.0),
        at(14.0, "delete-pod", node=0),
        set_rolling_update(20.0, partition=0),
    ),
    "selector": _scenario(
        "a canary by node selector, then the rest",
        daemonset(rolling={"maxUnavailable": 1, "selector": _ZONE_A}),
        set_image(8.0),
        set_rolling_update(18.0, selector=None),
    ),
    "pause": _scenario(
        "paused in the middle, a node joins, resumed",
        daemonset(rolling={"maxUnavailable": 1}),
        set_image(8.0),
        set_rolling_update(10.0, paused=True),
        at(16.0, "add-node", node="late-01", labels={}),
        set_rolling_update(22.0, paused=False),
        quiet_at=45.0,
    ),
    "rollback": _scenario(
        "a version that never becomes ready, and the way back",
        daemonset(rolling={"maxUnavailable": 1}),
        set_image(8.0, "agent:never-ready"),
        set_image(16.0, "agent:v1"),
    ),
    "full-node": _scenario(
        "a node that has no room for the new pod keeps the old one until there is room",
        daemonset(
            rolling={"maxUnavailable": 1}, template={"containers": [_sized_container("100m")]}
        ),
        at(6.0, "fill-node", 10.0, node=1, free=20),
        at(8.0, "set-requests", cpu="150m"),
    ),
    "pre-delete-hook": _scenario(
        "pods wait for the program behind their hook",
        daemonset(rolling={"maxUnavailable": 1}, **_HOOKED),
        set_image(8.0),
        *(at(10.0 + 5.0 * i, "release-hooks") for i in range(6)),
        quiet_at=50.0,
    ),
    "stuck-hook": _scenario(
        "the program behind the hook does not answer, and the user rolls back",
        daemonset(rolling={"maxUnavailable": 1}, **_HOOKED),
        at(6.0, "hold-hooks", 1000.0),
        set_image(8.0),
        at(12.0, "release-hooks"),
        set_image(16.0, "agent:v1"),
        at(20.0, "apply", spec={"lifecycle": None}),
    ),
    "drain": _scenario(
        "nodes are drained under a disruption budget in the middle of an update",
        daemonset(rolling={"maxUnavailable": 1}),
        at(6.0, "protect", least=2),
        set_image(8.0),
        at(9.5, "drain-node", 30.0, node=0),
        at(14.0, "drain-node", 30.0, node=2),
        quiet_at=50.0,
    ),
    "failed-pods": _scenario(
        "pods that fail, one of them twice, are replaced after a pause",
        daemonset(),
        at(8.0, "fail-pod", node=0),
        at(8.0, "fail-pod", node=1),
        at(16.0, "fail-pod", node=0),
    ),
    "pre-pull": _scenario(
        "images are fetched ahead of the update, while most nodes are held",
        _annotate(
            daemonset(rolling={"maxUnavailable": 1, "partition": 2}),
            **{keys.PREDOWNLOAD_PARALLELISM: "2"},
        ),
        set_image(8.0),
        set_rolling_update(20.0, partition=0),
    ),
    "stuck-puller": _scenario(
        "pull pods cannot be removed, and the update goes on",
        daemonset(rolling={"maxUnavailable": 1}),
        at(6.0, "stick-pullers", 40.0),
        set_image(8.0),
        quiet_at=60.0,
    ),
    "native": _scenario(
        "the DaemonSet of Kubernetes itself",
        daemonset(rolling={"maxUnavailable": 1}, api_version=keys.APPS_V1),
        set_image(8.0),
    ),
    "on-delete": _scenario(
        "pods are updated when a user deletes them",
        daemonset(updateStrategy={"type": "OnDelete"}),
        set_image(8.0),
        *(at(10.0 + 6.0 * i, "delete-pod", node=i) for i in range(3)),
    ),
    "adoption": _scenario(
        "deleted without its pods and created anew in the middle of an update",
        daemonset(rolling={"maxUnavailable": 1}),
        set_image(8.0),
        at(10.0, "recreate-set", 2.0, propagation="Orphan"),
        quiet_at=45.0,
    ),
    "upgrade": _scenario(
        "a newer server and the next release of Everynode in the middle of an update, and back",
        daemonset(rolling={"maxUnavailable": 1}, api_version=keys.APPS_V1),
        set_image(8.0),
        at(9.5, "grow-templates"),
        set_rolling_update(12.0, maxUnavailable=2),
        at(13.0, "release"),
        set_image(22.0, "agent:v3"),
        set_image(24.0),
    ),
    "failover": _scenario(
        "two controllers; the one that leads is cut off in the middle, the other goes on",
        daemonset(rolling={"maxUnavailable": 1}, min_ready=2),
        set_image(25.0),
        at(30.0, "cut-off", 30.0, who="controller-0"),
        controllers=2,
        quiet_at=90.0,
    ),
}

SCENARIOS: Final[dict[str, Scenario]] = {
    name: Scenario(name, title, msgspec.structs.replace(plan, name=name))
    for name, (title, plan) in _ALL.items()
}

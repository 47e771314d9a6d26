"""No field that a kubelet or a user may write stops more than its own node."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSetStatus,
    Flavour,
    IntOrPercent,
    LifecycleHook,
    RollingUpdateType,
    UpdateStrategy,
)
from everynode.api.decode import DecodeError
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.api.times import format_time
from everynode.api.versions import decode_daemonset, encode_status
from everynode.controller.pending_writes import version_of
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import DeletePod, DeleteRevision, PodAction
from everynode.decide.decision import Decision
from everynode.decide.ledger import Ledger
from everynode.decide.node import reasons
from everynode.decide.plan import Plan, make_plan
from everynode.decide.revisions.ownership import claim, claim_revision, recover_hash
from everynode.decide.revisions.target import (
    Revision,
    choose_target,
    prune_history,
    read_revision,
    relabel_patch,
)
from everynode.kube.watch.decode import Decoder
from tests.support.fleet import NEW, NOW, OLD, make
from tests.support.fleet import node as make_node
from tests.support.hostile_fields import Object, Path, anything, changes, encode, paths, put, spoil

NAMES: Final = ("n1", "n2", "n3", "n4", "n5")
BAD: Final = "n3"
FAST = settings(max_examples=250)
PLANS: Final = {
    "recreate": make(),
    "min ready": make(
        min_ready_seconds=30, strategy=UpdateStrategy(max_unavailable=IntOrPercent(2))
    ),
    "partition": make(strategy=UpdateStrategy(partition=IntOrPercent(50, percent=True))),
    "surge": make(
        strategy=UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(2))
    ),
    "in place": make(
        flavour=Flavour.ADVANCED,
        min_ready_seconds=30,
        strategy=UpdateStrategy(
            rolling=RollingUpdateType.IN_PLACE, max_unavailable=IntOrPercent(2)
        ),
    ),
    "hook": make(flavour=Flavour.ADVANCED, pre_delete=LifecycleHook(labels={"app": "agent"})),
}
GATES: Final = (keys.INPLACE_UPDATE_READY, keys.KRUISE_POD_READY)


def pod_json(on: str = BAD, hash: str = OLD, *, phase: str = "Running", **meta: Any) -> Object:
    """A pod with every part that we read."""
    ready = "True" if phase == "Running" else "False"
    since = format_time(NOW - 1000)
    running: Object = {"running": {"startedAt": since}}
    ended: Object = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": since}}
    amounts = {"cpu": "100m", "memory": "1Gi"}
    kinds = ("Ready", "ContainersReady", *GATES)
    return {
        "metadata": {
            "name": f"agent-{on}-{hash}",
            "namespace": "system",
            "uid": f"uid-{on}-{hash}",
            "resourceVersion": "7",
            "labels": {"app": "agent", keys.REVISION_HASH: hash},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "agent",
                    "uid": "ds",
                    "controller": True,
                }
            ],
            "creationTimestamp": format_time(NOW - 2000),
            **meta,
        },
        "spec": {
            "nodeName": on,
            "readinessGates": [{"conditionType": kind} for kind in GATES],
            "containers": [
                {"name": "agent", "image": f"agent:{hash}", "resources": {"requests": amounts}}
            ],
        },
        "status": {
            "phase": phase,
            "startTime": format_time(NOW - 1900),
            "conditions": [
                {"type": kind, "status": ready, "lastTransitionTime": since} for kind in kinds
            ],
            "containerStatuses": [
                {
                    "name": "agent",
                    "image": f"agent:{hash}",
                    "imageID": f"id-{hash}",
                    "ready": True,
                    "state": running if phase == "Running" else ended,
                    "resources": {"requests": amounts},
                }
            ],
        },
    }


def node_json(name: str = BAD) -> Object:
    return {
        "metadata": {"name": name, "uid": f"node-{name}", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def read_pod(made: Object) -> Pod:
    return Decoder(Pod).one(encode(made))


HEALTHY: Final = {name: read_pod(pod_json(name, NEW if name == "n5" else OLD)) for name in NAMES}
NODES: Final = {name: Decoder(Node).one(encode(node_json(name))) for name in NAMES}


def workload_of(plan: Plan, nodes: dict[str, Node], pods: Iterable[Pod]) -> DaemonSetState:
    """A DaemonSet as the controller holds it."""
    workload = DaemonSetState(plan.ds, nodes)
    for pod in pods:
        claim(plan.ds, pod)
        version_of(pod)
        recover_hash(pod)
        workload.pod_changed(None, pod)
    workload.ledger = Ledger(plan)
    workload.evaluate_all()
    return workload


def decide(workload: DaemonSetState, now: float = NOW) -> Decision:
    """One look, its writes encoded as they are sent."""
    assert workload.ledger is not None
    workload.refresh_ledger(7, now)
    decision = workload.ledger.decide(now, DaemonSetStatus())
    for made in workload.ledger.assessments():
        assert made.reason.code != reasons.NOT_ASSESSED, made.reason
    for action in decision.actions:
        encode_body(action)
    msgspec.json.encode(encode_status(workload.ds.flavour, decision.status))
    return decision


def encode_body(action: PodAction) -> None:
    if not isinstance(action, DeletePod):
        msgspec.json.encode(action.body)


def others(decision: Decision, own: set[str]) -> list[PodAction]:
    return [action for action in decision.actions if action.node not in own]


def ordinary(plan: Plan, own: set[str]) -> list[list[PodAction]]:
    """What the other nodes get beside a node that is in one of the ordinary states."""
    rest = [pod for name, pod in HEALTHY.items() if name not in own]
    silent = {**NODES, BAD: make_node(BAD, ready="Unknown")}
    away = {name: node for name, node in NODES.items() if name != BAD}
    states: list[tuple[dict[str, Node], list[Object]]] = [(away, []), (NODES, [])]
    for hash in (OLD, NEW, "lost"):
        phases = ("Running", "Pending", "Failed")
        states += [(NODES, [pod_json(hash=hash, phase=phase)]) for phase in phases]
        going = pod_json(hash=hash, deletionTimestamp=format_time(NOW - 5))
        states += [(NODES, [going]), (silent, [pod_json(hash=hash)])]
        states += [(silent, [pod_json(hash=hash, phase="Pending")])]
    return [
        others(decide(workload_of(plan, nodes, [*rest, *map(read_pod, pods)])), own)
        for nodes, pods in states
    ]


# --- One pod -----------------------------------------------------------------------------------

FAR: Final = ("status", "conditions", 0, "lastTransitionTime"), "9999-12-31T23:59:59Z"
ENDED: Final = (
    ("status", "containerStatuses", 0, "state", "terminated", "finishedAt"),
    "9999-12-31T23:59:59-14:00",
)
UPDATED: Final = (
    ("metadata", "annotations", keys.INPLACE_STATE),
    '{"revision":"v2","updateTimestamp":"9999-12-31T23:59:59Z","updateResources":true}',
)
HUGE: Final = (("spec", "containers", 0, "resources", "requests", "cpu"), 10**30)


@given(
    st.sampled_from(sorted(PLANS)),
    st.sampled_from([OLD, NEW]),
    st.sampled_from(["Running", "Failed", "Pending"]),
    changes(Pod),
)
@example("recreate", OLD, "Failed", [FAR])
@example("recreate", NEW, "Failed", [ENDED])
@example("surge", NEW, "Failed", [ENDED])
@example("min ready", NEW, "Running", [FAR])
@example("in place", NEW, "Running", [UPDATED])
@example("in place", OLD, "Running", [HUGE])
@example("recreate", OLD, "Running", [(("metadata", "resourceVersion"), "²")])
@FAST
def test_what_is_written_into_one_pod_concerns_its_own_node_only(
    strategy: str, hash: str, phase: str, changed: list[tuple[Path, Any]]
) -> None:
    plan = PLANS[strategy]
    try:
        pod = Decoder(Pod).one(spoil(pod_json(hash=hash, phase=phase), changed))
    except DecodeError:
        return
    own = {BAD, pod.node}
    rest = [each for name, each in HEALTHY.items() if name not in own]
    workload = workload_of(plan, NODES, [*rest, pod])
    decision = decide(workload)
    assert others(decision, own) in ordinary(plan, own)
    undisturbed = workload_of(plan, NODES, rest)
    decide(undisturbed)
    if not plan.ds.strategy.partition.value:  # there the cut depends on what all nodes carry
        assert own_words(workload, own) == own_words(undisturbed, own)
    decide(workload, NOW + 100_000)
    workload.pod_changed(pod, None)
    decide(workload, NOW + 200_000)


def own_words(workload: DaemonSetState, own: set[str]) -> list[object]:
    """What is said of every node but these, as far as the budget does not come into it."""
    assert workload.ledger is not None
    fleet = [made for made in workload.ledger.assessments() if made.name not in own]
    return [(made.name, made.eligibility, made.in_scope, made.revision) for made in fleet]


@given(st.sampled_from(sorted(PLANS)), changes(Node))
@FAST
def test_what_is_written_into_one_node_concerns_that_node_only(
    strategy: str, changed: list[tuple[Path, Any]]
) -> None:
    plan = PLANS[strategy]
    try:
        node = Decoder(Node).one(spoil(node_json(), changed))
    except DecodeError:
        return
    if node.name in NAMES and node.name != BAD:
        return
    nodes = {**{name: each for name, each in NODES.items() if name != BAD}, node.name: node}
    decision = decide(workload_of(plan, nodes, HEALTHY.values()))
    possible = ordinary(plan, {BAD, node.name})
    assert others(decision, {BAD, node.name}) in possible


# --- The DaemonSet and its revisions -----------------------------------------------------------

TEMPLATE: Final[Object] = {
    "metadata": {
        "labels": {"app": "agent"},
        "annotations": {"note": "x"},
        "finalizers": ["example.com/f"],
    },
    "spec": {
        "nodeSelector": {"zone": "a"},
        "hostNetwork": True,
        "nodeName": "",
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
            }
        },
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "initContainers": [{"name": "first", "image": "first:1", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "agent",
                "image": "agent:v2",
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}},
                    }
                ],
                "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "::", "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1"}},
                "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
            }
        ],
        "volumes": [{"name": "v", "projected": {"sources": [{"downwardAPI": {"items": [{}]}}]}}],
    },
}
ADVANCED: Final[Object] = {
    "apiVersion": keys.V1BETA1,
    "kind": "DaemonSet",
    "metadata": {
        "name": "agent",
        "namespace": "system",
        "uid": "ds",
        "resourceVersion": "9",
        "generation": 2,
        "labels": {"app": "agent"},
        "annotations": {keys.PROGRESSIVE_CREATE: "true", keys.TEMPLATE_GENERATION: "2"},
        "creationTimestamp": format_time(NOW - 5000),
    },
    "spec": {
        "selector": {
            "matchLabels": {"app": "agent"},
            "matchExpressions": [{"key": "app", "operator": "In", "values": ["agent"]}],
        },
        "template": TEMPLATE,
        "minReadySeconds": 30,
        "burstReplicas": "10%",
        "revisionHistoryLimit": 1,
        "lifecycle": {
            "preDelete": {
                "labelsHandler": {"app": "agent"},
                "finalizersHandler": ["example.com/f"],
                "markPodNotReady": True,
            }
        },
        "scaleStrategy": {"partitionedScaling": True},
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {
                "rollingUpdateType": "InPlaceIfPossible",
                "maxUnavailable": "10%",
                "maxSurge": 0,
                "partition": 1,
                "paused": False,
                "selector": {"matchLabels": {"zone": "a"}},
            },
        },
    },
    "status": {
        "observedGeneration": 1,
        "desiredNumberScheduled": 5,
        "currentNumberScheduled": 5,
        "numberMisscheduled": 0,
        "numberReady": 5,
        "updatedNumberScheduled": 5,
        "numberAvailable": 5,
        "numberUnavailable": 0,
        "updateRevision": "v1",
        "daemonSetHash": "v1",
        "collisionCount": 0,
        "conditions": [
            {
                "type": "Progressing",
                "status": "True",
                "reason": "x",
                "message": "y",
                "lastTransitionTime": format_time(NOW - 10),
            }
        ],
    },
}
NATIVE: Final[Object] = {**ADVANCED, "apiVersion": keys.APPS_V1}
REVISION: Final[Object] = {
    "metadata": {
        "name": "agent-v1",
        "namespace": "system",
        "uid": "rev-v1",
        "resourceVersion": "3",
        "labels": {"app": "agent", keys.REVISION_HASH: "v1"},
        "annotations": {keys.TARGET_GENERATION: "1/ds", keys.FROM_REVISION: "v0"},
        "ownerReferences": [
            {
                "apiVersion": keys.V1BETA1,
                "kind": "DaemonSet",
                "name": "agent",
                "uid": "ds",
                "controller": True,
            }
        ],
    },
    "revision": 1,
    "data": {"spec": {"template": {**TEMPLATE, "$patch": "replace"}}},
}


def spoiled(base: Object) -> st.SearchStrategy[bytes]:
    one = st.tuples(st.sampled_from(paths(base)), anything)
    return st.lists(one, min_size=1, max_size=2).map(lambda made: spoil(base, made))


def play(raw: bytes, stored: bytes) -> None:
    """All of the way from the bytes of a watch to the writes, with one stored revision."""
    try:
        ds = decode_daemonset(raw)
        kept = Decoder(ControllerRevision).one(stored)
    except DecodeError:
        return
    claim_revision(ds, kept)
    read = read_revision(kept, ds.uid)
    known = [read] if isinstance(read, Revision) else []
    choice = choose_target(ds, known, {"v1": 4, NEW: 1})
    for each in choice.actions:
        if not isinstance(each, DeleteRevision):
            msgspec.json.encode(each.body)
    prune_history(ds, known, ["v1"], target=choice.target)
    plan = make_plan(ds, choice.target, known, choice.from_hash)
    for pod in HEALTHY.values():
        relabel_patch(pod, choice)
    workload = workload_of(plan, NODES, HEALTHY.values())
    assert workload.ledger is not None
    workload.refresh_ledger(7, NOW)
    decision = workload.ledger.decide(NOW, ds.status)
    for made in workload.ledger.assessments():
        assert made.reason.code != reasons.NOT_ASSESSED, made.reason
    for action in decision.actions:
        encode_body(action)
    msgspec.json.encode(encode_status(ds.flavour, decision.status))
    workload.ledger.decide(NOW + 100_000, decision.status)


@given(spoiled(ADVANCED) | spoiled(NATIVE))
@FAST
def test_nothing_that_is_written_into_a_daemonset_raises(raw: bytes) -> None:
    play(raw, encode(REVISION))


@given(spoiled(REVISION))
@FAST
def test_nothing_that_is_written_into_a_revision_raises(stored: bytes) -> None:
    play(encode(ADVANCED), stored)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "minReadySeconds"), 10**400),
        (("spec", "revisionHistoryLimit"), 10**400),
        (("spec", "burstReplicas"), "1e9999%"),
        (("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), "9" * 5000 + "%"),
        (("status", "conditions", 0, "lastTransitionTime"), "0001-01-01T00:00:00+14:00"),
        (("metadata", "generation"), 10**30),
        (("status", "collisionCount"), 10**400),
    ],
)
def test_numbers_and_times_of_any_size_in_a_daemonset_are_borne(path: Path, value: Any) -> None:
    play(encode(put(ADVANCED, path, value)), encode(REVISION))
    play(encode(put(NATIVE, path, value)), encode(REVISION))


def test_the_corpus_is_whole_and_goes_all_the_way() -> None:
    """Without a hostile value the objects here are ordinary ones, and something is decided."""
    ds = decode_daemonset(encode(ADVANCED))
    assert not ds.faults
    decision = decide(workload_of(PLANS["recreate"], NODES, HEALTHY.values()))
    assert [action.node for action in decision.actions] == ["n4"]
    assert json.loads(encode(REVISION))["data"]

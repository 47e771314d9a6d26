"""Questions that are asked of a real API server and of ours, to see that they answer alike.

Every path and body may contain NS, the name of a namespace that is new for each run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everynode.kube.requests import APPLY_PATCH as A
from everynode.kube.requests import JSON, JSON_PATCH
from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Question:
    """One request; `differs` says why the answers may differ, which then only must both be errors
    or both be none."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    differs: str = ""


def ask(method: str, path: str, body: Any = None, kind: str = JSON, **more: str) -> Question:
    return Question(method, path, body, kind, **more)


SPACE = "/api/v1/namespaces/NS"
PODS = f"{SPACE}/pods"
MAPS = f"{SPACE}/configmaps"
EVENTS = f"{SPACE}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/NS/events"
SETS = "/apis/apps/v1/namespaces/NS/daemonsets"
REVISIONS = "/apis/apps/v1/namespaces/NS/controllerrevisions"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"
BUDGETS = "/apis/policy/v1/namespaces/NS/poddisruptionbudgets"
NODE = "/api/v1/nodes/NS-node"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ADVANCED = "/apis/apps.kruise.io/v1beta1/namespaces/NS/daemonsets"
OLD = "/apis/apps.kruise.io/v1alpha1/namespaces/NS/daemonsets"

CONTAINERS = [{"name": "c", "image": "x:1"}]


def meta(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {**meta(name), "spec": {"containers": CONTAINERS, **spec}}


def daemonset(name: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": CONTAINERS}}
    selector = {"matchLabels": {"a": name}}
    return {**meta(name), "spec": {"selector": selector, "template": template, **spec}}


def advanced(name: str, version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    named = {"apiVersion": f"apps.kruise.io/{version}", "kind": "DaemonSet"}
    return {**named, **daemonset(name, **spec)}


def rolling(**strategy: Any) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": strategy}}


def container(**more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", **more}]}}


def resized(**resources: Any) -> dict[str, Any]:
    return container(resources=resources)


LIMITS = {"limits": {"cpu": "1000m", "memory": "1Gi"}}
HOST_POD = pod(
    "host",
    hostNetwork=True,
    nodeName="somewhere",
    containers=[
        {
            "name": "c",
            "image": "x@sha256:" + "a" * 64,
            "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
    volumes=[
        {"name": "v"},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "s", "secret": {"secretName": "q"}},
    ],
    tolerations=[{"operator": "Exists"}],
)

NEW_PODS = [
    ask("POST", PODS, pod("a")),
    ask("POST", PODS, pod("a")),
    ask("POST", PODS, pod("Bad")),
    ask("POST", PODS, pod("x" * 300)),
    ask("POST", PODS, meta("e")),
    ask("POST", PODS, {}),
    ask("POST", PODS, b"{"),
    ask("POST", PODS, b""),
    ask("POST", PODS, {**meta("e"), "spec": {"containers": []}}),
    ask("POST", PODS, {**meta("e"), "spec": {"containers": [{"name": "c"}]}}),
    ask("POST", PODS, {**meta("e", labels={"-": "x"}), "spec": {"containers": CONTAINERS}}),
    ask("POST", PODS, {**meta("e", namespace="other"), "spec": {"containers": CONTAINERS}}),
    ask("POST", PODS, {**meta("e", resourceVersion="1"), "spec": {"containers": CONTAINERS}}),
    ask("POST", PODS, {**meta("e", ownerReferences=[{"kind": "x"}]), "spec": {}}),
    ask("POST", PODS, pod("res", containers=[{"name": "c", "image": "x", "resources": LIMITS}])),
    ask(
        "POST",
        PODS,
        pod("burst", **container(image="x", resources={"requests": {"cpu": "0.1"}})["spec"]),
    ),
    ask(
        "POST",
        PODS,
        pod("bad", **container(image="x", resources={"requests": {"cpu": "?"}})["spec"]),
    ),
    ask("POST", PODS, HOST_POD),
    ask("POST", PODS, pod("critical", priorityClassName="system-node-critical")),
    ask("POST", PODS, pod("unknown", priorityClassName="nope")),
    ask("POST", PODS, pod("chosen", priority=7)),
    ask("POST", PODS, pod("gated", schedulingGates=[{"name": "g"}])),
    ask("POST", PODS, pod("quick", terminationGracePeriodSeconds=0, restartPolicy="Never")),
    ask("POST", f"{PODS}?dryRun=All", pod("dry")),
    ask("GET", f"{PODS}/dry"),
    ask("POST", f"{PODS}?dryRun=Foo", pod("dry")),
    ask("GET", f"{PODS}?limit=2"),
    ask("GET", f"{PODS}?labelSelector=x%3Dy"),
    ask("GET", f"{PODS}?labelSelector=x+in+y"),
    ask("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dsomewhere"),
    ask("GET", f"{PODS}?fieldSelector=spec.foo%3Dx"),
    ask("GET", f"{PODS}?limit=abc"),
    ask("GET", f"{PODS}?resourceVersionMatch=Exact"),
    ask("GET", f"{PODS}?resourceVersion=0&resourceVersionMatch=Exact"),
    ask("GET", f"{PODS}?sendInitialEvents=true"),
    ask("GET", PODS, accept=TABLE),
    ask("GET", f"{PODS}/a?includeObject=None", accept=TABLE),
    ask("GET", f"{PODS}/none", accept=TABLE),
    ask("POST", "/api/v1/namespaces/nowhere/pods", pod("a")),
    ask("PUT", f"{PODS}/a", pod("b")),
    ask("PUT", f"{PODS}/a", {"metadata": {}, "spec": {"containers": CONTAINERS}}),
    ask("PUT", f"{PODS}/a", {**meta("a", resourceVersion="1"), "spec": pod("a")["spec"]}),
]

CHANGED_PODS = [
    ask("PATCH", f"{PODS}/a", container(image="x:2"), S),
    ask("PATCH", f"{PODS}/a", {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}, S),
    ask("PATCH", f"{PODS}/a", meta("a", labels={"x": "y"}), M),
    ask(
        "PATCH",
        f"{PODS}/a",
        [{"op": "add", "path": "/metadata/labels/z", "value": "1"}],
        JSON_PATCH,
    ),
    ask("PATCH", f"{PODS}/a", [{"op": "remove", "path": "/metadata/labels/nope"}], JSON_PATCH),
    ask("PATCH", f"{PODS}/a", meta("b"), M),
    ask("PATCH", f"{PODS}/a", {"metadata": {"namespace": "b"}}, M),
    ask("PATCH", f"{PODS}/a", {"metadata": {"resourceVersion": "1"}}, M),
    ask("PATCH", f"{PODS}/a", {"metadata": {"generation": 99}}, M),
    ask("PATCH", f"{PODS}/a", {}, "application/x-foo", differs="ours says what is accepted"),
    ask("PATCH", f"{PODS}/none", {}, M),
    ask("PATCH", f"{PODS}/a?fieldValidation=Strict", {"spec": {"foo": 1}}, S),
    ask(
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        S,
    ),
    ask(
        "PATCH",
        f"{PODS}/a/status",
        {
            "status": {"conditions": [{"type": "Ready", "status": "False"}]},
            "spec": {"nodeName": "zz"},
            "metadata": {"labels": {"st": "1"}},
        },
        S,
    ),
    ask("GET", f"{PODS}/a/status"),
    ask("PATCH", f"{PODS}/a", {"status": {"phase": "Failed"}}, M),
    ask("PATCH", f"{PODS}/res/resize", resized(limits={"cpu": "2"}, requests={"cpu": "2"}), S),
    ask("PATCH", f"{PODS}/burst/resize", resized(requests={"cpu": None}), S),
    ask("PATCH", f"{PODS}/burst/resize", resized(requests={"cpu": "200m"}), S),
    ask("PATCH", f"{PODS}/burst/resize", resized(requests={"ephemeral-storage": "1Gi"}), S),
    ask("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": [{"name": "h"}]}}, M),
    ask("POST", f"{PODS}/gated/binding", {**meta("gated"), "target": {"name": "n"}}),
    ask(
        "POST",
        f"{PODS}/a/binding",
        {**meta("a", uid="zz"), "target": {"name": "n"}},
        differs="the real one names its storage key",
    ),
    ask("POST", f"{PODS}/a/binding", {**meta("b"), "target": {"name": "n"}}),
    ask(
        "POST", f"{PODS}/a/binding", {**meta("a", annotations={"b": "c"}), "target": {"name": "n"}}
    ),
    ask("POST", f"{PODS}/a/binding", {**meta("a"), "target": {"name": "n"}}),
    ask("GET", f"{PODS}/a"),
]

DELETED_PODS = [
    ask("DELETE", f"{PODS}/a", {"preconditions": {"uid": "x"}}),
    ask("DELETE", f"{PODS}/a?dryRun=All"),
    ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 20, "propagationPolicy": "Background"}),
    ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 25}),
    ask("DELETE", f"{PODS}/a", {}),
    ask("POST", PODS, pod("a")),
    ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 5}),
    ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0}),
    ask("DELETE", f"{PODS}/a"),
    ask("DELETE", f"{PODS}/quick"),
    ask("DELETE", f"{PODS}/host", {"propagationPolicy": "Foreground"}),
    ask("DELETE", f"{PODS}/host", {"propagationPolicy": "Orphan", "orphanDependents": True}),
    ask("DELETE", f"{PODS}/host", {"propagationPolicy": "Foo"}),
    ask("DELETE", f"{PODS}/host", {"gracePeriodSeconds": -5}),
    ask("GET", f"{PODS}/host"),
    ask("POST", PODS, pod("evicted", nodeName="n")),
    ask(
        "POST",
        f"{PODS}/evicted/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", **meta("b")},
    ),
    ask(
        "POST",
        f"{PODS}/none/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", **meta("none")},
    ),
    ask(
        "POST",
        f"{PODS}/evicted/eviction",
        {"apiVersion": "policy/v1beta1", "kind": "Eviction", **meta("evicted")},
    ),
    ask("GET", f"{PODS}/evicted"),
    ask("DELETE", f"{PODS}?labelSelector=none"),
]

DAEMONSETS = [
    ask("POST", SETS, daemonset("d1")),
    ask("POST", SETS, daemonset("d2", updateStrategy={"type": "Foo"})),
    ask("POST", SETS, daemonset("d2", **rolling(maxUnavailable=0))),
    ask("POST", SETS, daemonset("d2", **rolling(maxUnavailable="120%", maxSurge=1))),
    ask("POST", SETS, meta("d3")),
    ask("POST", SETS, daemonset("d3", selector={"matchLabels": {"a": "b"}})),
    ask("POST", SETS, daemonset("d3", minReadySeconds="3")),
    ask("POST", f"{SETS}?fieldValidation=Strict", daemonset("d3", foo=1)),
    ask(
        "POST",
        SETS,
        {
            **daemonset("d4"),
            **meta(
                "d4", annotations={"deprecated.daemonset.template.generation": "7"}, generation=8
            ),
            "status": {"numberReady": 3},
        },
    ),
    ask(
        "POST",
        SETS,
        {
            **daemonset("d5"),
            **meta("d5", annotations={"deprecated.daemonset.template.generation": "x"}),
        },
    ),
    ask("PATCH", f"{SETS}/d1", {"spec": {"template": container(image="x:2")}}, S),
    ask("PATCH", f"{SETS}/d1", {"spec": {"minReadySeconds": 5}}, S),
    ask(
        "PATCH",
        f"{SETS}/d1",
        meta("d1", annotations={"deprecated.daemonset.template.generation": "55", "q": "r"}),
        M,
    ),
    ask("PATCH", f"{SETS}/d1", {"spec": {"selector": {"matchLabels": {"z": "z"}}}}, M),
    ask("PATCH", f"{SETS}/d1/status", {"status": {"numberReady": 5, "collisionCount": 3}}, M),
    ask("PATCH", f"{SETS}/d1/status", {"status": {"numberReady": -5, "collisionCount": 1}}, M),
    ask("PATCH", f"{SETS}/d1", {"spec": {"updateStrategy": None}}, M),
    ask("PATCH", f"{SETS}/d1", {"spec": {"template": container(args=[], env=[])}}, S),
    ask("GET", SETS, accept=TABLE, differs="the real one hides an annotation in tables"),
    ask("DELETE", f"{SETS}/d1", {"propagationPolicy": "Foreground"}),
    ask("DELETE", f"{SETS}/d1", {"propagationPolicy": "Background"}),
    ask("DELETE", f"{SETS}/d4", {"propagationPolicy": "Orphan"}),
    ask("PATCH", f"{SETS}/d4", {"metadata": {"finalizers": []}}, M),
    ask("GET", f"{SETS}/d4"),
]

APPLIED = {"apiVersion": "v1", "kind": "ConfigMap"}
STORED = [
    ask("POST", MAPS, {**meta("a"), "data": {"x": "1"}, "immutable": True}),
    ask("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, M),
    ask("POST", MAPS, {**meta("b"), "data": {"x": 1}}),
    ask("POST", f"{MAPS}?fieldValidation=Strict", {**meta("b"), "datum": 1}),
    ask("POST", f"{MAPS}?fieldValidation=Ignore", {**meta("b"), "datum": 1}),
    ask("POST", f"{MAPS}?fieldValidation=Foo", meta("b")),
    ask("PUT", f"{MAPS}/b", {**meta("b"), "data": {"y": "z"}}),
    ask("PUT", f"{MAPS}/none", meta("none")),
    ask("PUT", f"{MAPS}/b", {**meta("b", uid="x")}, differs="the real one names its storage key"),
    ask("DELETE", f"{MAPS}/b"),
    ask("PATCH", f"{MAPS}/s", {**APPLIED, **meta("s")}, A),
    ask(
        "PATCH",
        f"{MAPS}/s?fieldManager=1",
        {**APPLIED, **meta("s"), "data": {"a": "1", "b": "1"}},
        A,
    ),
    ask(
        "PATCH",
        f"{MAPS}/s?fieldManager=2",
        {**APPLIED, **meta("s"), "data": {"a": "2", "c": "1"}},
        A,
    ),
    ask(
        "PATCH",
        f"{MAPS}/s?fieldManager=2&force=true",
        {**APPLIED, **meta("s"), "data": {"a": "2", "c": "1"}},
        A,
    ),
    ask("PATCH", f"{MAPS}/s?fieldManager=1", {**APPLIED, **meta("s"), "data": {"b": "1"}}, A),
    ask("PATCH", f"{MAPS}/s?fieldManager=1", {**APPLIED, **meta("other")}, A),
    ask(
        "PATCH",
        f"{MAPS}/s?fieldManager=1",
        {**APPLIED, **meta("s"), "odd": 1},
        A,
        differs="the real one writes /v1 for v1",
    ),
    ask("PATCH", f"{MAPS}/s?force=true", {"data": {"q": "q"}}, M),
    ask("POST", LEASES, {**meta("l"), "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
    ask("PUT", f"{LEASES}/l", {**meta("l"), "spec": {}}),
    ask("PUT", f"{LEASES}/l", {**meta("l", resourceVersion="1"), "spec": {}}),
    ask("PUT", f"{LEASES}/l2", {**meta("l2"), "spec": {"holderIdentity": "b"}}),
    ask("POST", LEASES, {**meta("l3"), "spec": {"leaseDurationSeconds": 0}}),
    ask(
        "POST",
        EVENTS,
        {**meta("e"), "involvedObject": {"namespace": "NS", "name": "p"}, "count": 1},
    ),
    ask("POST", EVENTS, {**meta("e2"), "involvedObject": {"namespace": "other", "name": "p"}}),
    ask("PATCH", f"{EVENTS}/e", {"count": 2}, S),
    ask("GET", f"{EVENTS}?fieldSelector=involvedObject.name%3Dp"),
    ask("GET", f"{NEW_EVENTS}/e"),
    ask("POST", REVISIONS, {**meta("r"), "revision": 1, "data": {"a": {"b": [1]}, "z": 1}}),
    ask("PATCH", f"{REVISIONS}/r", {"revision": 2}, M),
    ask("PATCH", f"{REVISIONS}/r", {"data": {"z": 2}}, M),
    ask("POST", REVISIONS, {**meta("r2"), "revision": -1}),
    ask("POST", f"{SPACE}/secrets", {**meta("s"), "stringData": {"a": "b"}}),
    ask("PATCH", f"{SPACE}/secrets/s", {"type": "foo"}, M),
    ask("POST", f"{SPACE}/services", {**meta("s"), "spec": {"ports": [{"port": 80}]}}),
    ask("POST", f"{SPACE}/services", {**meta("s.2"), "spec": {}}),
    ask("POST", BUDGETS, {**meta("p"), "spec": {"minAvailable": "x%"}}),
    ask("POST", BUDGETS, {**meta("p"), "spec": {"minAvailable": "50%", "selector": {}}}),
    ask("DELETE", f"{BUDGETS}/p"),
    ask("POST", f"{SPACE.replace('/api/v1', '/apis/apps/v1')}/deployments", daemonset("d")),
    ask(
        "POST",
        f"{SPACE.replace('/api/v1', '/apis/apps/v1')}/deployments",
        {**meta("d2"), "spec": {}},
    ),
    ask("POST", f"{RBAC}/clusterroles", {**meta("NS:x"), "rules": []}),
    ask(
        "POST",
        f"{RBAC}/clusterrolebindings",
        {**meta("NS"), "roleRef": {"kind": "ClusterRole", "name": "x"}},
    ),
    ask("PATCH", f"{RBAC}/clusterrolebindings/NS", {"roleRef": {"name": "z"}}, M),
    ask("DELETE", f"{RBAC}/clusterrolebindings/NS"),
    ask("DELETE", f"{RBAC}/clusterroles/NS:x"),
    ask("POST", CLASSES, {**meta("NS"), "value": 5}),
    ask("PATCH", f"{CLASSES}/NS", {"value": 6}, M),
    ask("DELETE", f"{CLASSES}/NS"),
    ask("POST", "/api/v1/nodes", {**meta("NS-node"), "status": {"capacity": {"cpu": "4000m"}}}),
    ask("PATCH", NODE, {"spec": {"unschedulable": True, "taints": None}, "status": {}}, S),
    ask(
        "PATCH",
        f"{NODE}/status",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        S,
    ),
    ask("PATCH", NODE, {"spec": {"podCIDR": "10.1.0.0/24"}}, S),
    ask("PATCH", NODE, {"spec": {"podCIDR": "10.2.0.0/24"}}, S),
    ask("DELETE", NODE),
    ask("POST", "/api/v1/pods", {}),
    ask("DELETE", "/api/v1/namespaces"),
    ask("PUT", PODS, {}),
    ask("GET", "/api/v1/foos"),
    ask("GET", "/apis/nope/v1"),
    ask("GET", f"{PODS}/a/foo"),
    ask("GET", "/apis/policy"),
    ask("PUT", SPACE, meta("NS")),
    ask("DELETE", SPACE),
    ask("POST", MAPS, meta("late")),
    ask("PUT", f"{SPACE}/finalize", {**meta("NS"), "spec": {"finalizers": []}}),
    ask("GET", SPACE),
]

HALF = "a real server says which rules it did not get to"
ADVANCED_SETS = [
    ask("POST", ADVANCED, advanced("a")),
    ask("POST", OLD, advanced("b", "v1alpha1", **rolling(rollingUpdateType="Surging"))),
    ask("POST", ADVANCED, advanced("c", **rolling(rollingUpdateType="Foo")), differs=HALF),
    ask(
        "POST",
        ADVANCED,
        advanced(
            "c",
            **rolling(
                type="InPlaceIfPossible",
                maxUnavailable="30%",
                partition="50%",
                paused=True,
                selector={"matchLabels": {"x": "y"}},
            ),
        ),
    ),
    ask("POST", ADVANCED, advanced("d", **rolling(maxUnavailable="x"))),
    ask("POST", ADVANCED, advanced("d", **rolling(maxUnavailable=0, maxSurge=0))),
    ask("POST", ADVANCED, advanced("d", **rolling(maxUnavailable=1, maxSurge=1))),
    ask("POST", ADVANCED, advanced("d", **rolling(partition=-1))),
    ask("POST", ADVANCED, advanced("d", minReadySeconds=-1)),
    ask("POST", ADVANCED, advanced("d", foo=1)),
    ask("POST", f"{ADVANCED}?fieldValidation=Strict", advanced("e", foo=1)),
    ask("POST", ADVANCED, advanced("f", selector={"matchLabels": {"a": "b"}})),
    ask("POST", ADVANCED, advanced("f", selector={"matchLabels": {}})),
    ask(
        "POST",
        ADVANCED,
        advanced(
            "g",
            lifecycle={"preDelete": {"labelsHandler": {"a": "b"}, "markPodNotReady": True}},
            scaleStrategy={"partitionedScaling": True},
        ),
    ),
    ask("GET", f"{OLD}/g"),
    ask("GET", f"{OLD}/c"),
    ask("GET", f"{ADVANCED}/b"),
    ask("PATCH", f"{ADVANCED}/a", {"spec": rolling(partition=3)}, M),
    ask("PATCH", f"{OLD}/a", {"spec": rolling(partition=None)}, M),
    ask("PATCH", f"{ADVANCED}/a", {"spec": {"minReadySeconds": 5}}, S),
    ask(
        "PATCH",
        f"{ADVANCED}/a/status",
        {
            "status": {
                "desiredNumberScheduled": 3,
                "currentNumberScheduled": 0,
                "numberMisscheduled": 0,
                "numberReady": 0,
                "updatedNumberScheduled": 0,
                "updateRevision": "abc",
                "conditions": [{"type": "Progressing", "status": "True"}],
            }
        },
        M,
    ),
    ask("GET", f"{OLD}/a"),
    ask("PUT", f"{ADVANCED}/a", advanced("a")),
    ask("GET", ADVANCED, accept=TABLE),
    ask("DELETE", f"{ADVANCED}/a", {"propagationPolicy": "Foreground"}),
    ask("PATCH", f"{ADVANCED}/a", {"metadata": {"finalizers": []}}, M),
    ask("DELETE", f"{ADVANCED}/b"),
    ask("PATCH", f"{ADVANCED}/s?fieldManager=1", advanced("s", foo=1), A),
    ask("PATCH", f"{ADVANCED}/s?fieldManager=1", advanced("s"), A),
    ask("PATCH", f"{ADVANCED}/s?fieldManager=2", advanced("s", minReadySeconds=3), A),
    ask("PATCH", f"{ADVANCED}/s?fieldManager=3", advanced("s", minReadySeconds=4), A),
]

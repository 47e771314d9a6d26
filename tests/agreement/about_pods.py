"""Questions about pods: create, update, bind, evict and delete."""

from __future__ import annotations

from typing import Any

from everynode.kube.requests import JSON_PATCH
from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S
from tests.agreement.question import (
    CONTAINERS,
    PODS,
    TABLE,
    ask,
    container,
    meta,
    pod,
)


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

"""Questions about deleting: preconditions, grace, finalizers, whole collections, and budgets."""

from __future__ import annotations

from everynode.kube.requests import JSON
from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S
from tests.agreement.question import (
    BUDGETS,
    MAPS,
    PODS,
    SETS,
    Object,
    Question,
    ask,
    condition,
    config_map,
    daemonset,
    get,
    meta,
    pod,
)

MORE = "ours says more"
UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"
HELD = {"finalizers": ["example.test/hold"]}
KEPT = {"UID": "metadata.uid", "V": "metadata.resourceVersion"}


def expecting(**what: str) -> Object:
    return {"preconditions": what}


DELETES = [
    ask("POST", MAPS, config_map("m"), keep=KEPT),
    ask("DELETE", f"{MAPS}/m", expecting(uid=UNKNOWN_UID)),
    ask("DELETE", f"{MAPS}/m", expecting(resourceVersion="1")),
    ask("DELETE", f"{MAPS}/m", expecting(uid="<UID>", resourceVersion="1")),
    ask("DELETE", f"{MAPS}/m", {"dryRun": ["All"]}),
    ask("DELETE", f"{MAPS}/m?dryRun=All"),
    ask("DELETE", f"{MAPS}/m", {"dryRun": ["Foo"]}),
    ask("DELETE", f"{MAPS}/m", {"propagationPolicy": "Foo"}),
    ask("DELETE", f"{MAPS}/m?propagationPolicy=Foo"),
    ask("DELETE", f"{MAPS}/m", {"propagationPolicy": "Orphan", "orphanDependents": True}),
    ask("DELETE", f"{MAPS}/m", {"odd": 1}),
    ask("POST", MAPS, config_map("m"), keep=KEPT),
    ask("DELETE", f"{MAPS}/m", b"{", differs=MORE),
    ask("DELETE", f"{MAPS}/m", {"kind": "Pod", "apiVersion": "v1"}, differs=MORE),
    ask("DELETE", f"{MAPS}/m", {"gracePeriodSeconds": "x"}, differs=MORE),
    ask("DELETE", f"{MAPS}/m", expecting(uid="<UID>", resourceVersion="<V>")),
    ask("DELETE", f"{MAPS}/m"),
    ask("POST", MAPS, config_map("held", **HELD)),
    ask("DELETE", f"{MAPS}/held"),
    ask("DELETE", f"{MAPS}/held"),
    ask("POST", MAPS, config_map("held")),
    ask("PUT", f"{MAPS}/held", config_map("held", {"a": "1"}, **HELD)),
    ask("PATCH", f"{MAPS}/held", {"metadata": {"finalizers": ["example.test/more"]}}, M),
    ask("PATCH", f"{MAPS}/held", {"metadata": {"deletionTimestamp": None}}, M),
    ask("PATCH", f"{MAPS}/held", {"metadata": {"finalizers": []}}, M),
    get(f"{MAPS}/held"),
    ask("POST", SETS, daemonset("d")),
    ask("DELETE", f"{SETS}/d?propagationPolicy=Foreground"),
    get(f"{SETS}/d"),
    ask("DELETE", f"{SETS}/d?propagationPolicy=Background"),
    ask("PATCH", f"{SETS}/d", {"spec": {"minReadySeconds": 3}}, M),
    ask("PATCH", f"{SETS}/d", {"metadata": {"finalizers": None}}, M),
    ask("POST", SETS, daemonset("e")),
    ask("DELETE", f"{SETS}/e?orphanDependents=true"),
    get(f"{SETS}/e"),
    ask("POST", SETS, daemonset("f")),
    ask("DELETE", f"{SETS}/f?orphanDependents=false"),
    ask("POST", PODS, {**pod("p", nodeName="n"), **meta("p", **HELD)}),
    ask("DELETE", f"{PODS}/p?gracePeriodSeconds=7"),
    ask("DELETE", f"{PODS}/p?gracePeriodSeconds=3"),
    ask("DELETE", f"{PODS}/p?gracePeriodSeconds=9"),
    ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0"),
    ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0"),
    ask("PATCH", f"{PODS}/p", {"metadata": {"finalizers": None}}, M),
    get(f"{PODS}/p"),
    *(ask("POST", MAPS, config_map(name, labels={"a": name[:1]})) for name in ("x1", "x2", "y1")),
    ask("DELETE", f"{MAPS}?labelSelector=a%3Dx&dryRun=All"),
    ask("DELETE", f"{MAPS}?labelSelector=a%3Dx"),
    get(MAPS),
    ask("DELETE", f"{MAPS}?labelSelector=a+in+x"),
    ask("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Dnone"),
    ask("DELETE", MAPS, {"propagationPolicy": "Foo"}),
    ask("DELETE", MAPS, {"dryRun": ["All"]}),
    ask("DELETE", f"{MAPS}?limit=1"),
    ask("DELETE", MAPS),
    get(MAPS),
    ask("POST", PODS, pod("q", nodeName="n")),
    ask("POST", PODS, pod("r")),
    ask("DELETE", PODS),
    get(PODS),
    ask("DELETE", "/api/v1/pods"),
    ask("DELETE", "/api/v1/namespaces"),
    ask("DELETE", f"{MAPS}/none"),
]


def evict(name: str, body: Object | None = None, kind: str = JSON) -> Question:
    whole = {"apiVersion": "policy/v1", "kind": "Eviction", **meta(name), **(body or {})}
    return ask("POST", f"{PODS}/{name}/eviction", whole, kind)


def budget(name: str, **spec: object) -> Object:
    return {**meta(name), "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec}}


def counted(path: str, value: int) -> Question:
    return get(f"{BUDGETS}/b", until=(f"status.{path}", value), only="status")


RUNNING = {"status": {"phase": "Running", **condition("Ready")["status"]}}
EVICTIONS = [
    *(
        question
        for name in ("one", "two", "three")
        for question in (
            ask("POST", PODS, {**pod(name, nodeName="n"), **meta(name, labels={"app": "a"})}),
            ask("PATCH", f"{PODS}/{name}/status", RUNNING, S),
        )
    ),
    ask("POST", BUDGETS, budget("b", minAvailable=2)),
    counted("currentHealthy", 3),
    evict("one", {"deleteOptions": {"dryRun": ["All"]}}),
    evict("one", {"deleteOptions": {"gracePeriodSeconds": 5}}),
    counted("currentHealthy", 2),
    evict("two"),
    evict("one"),
    get(f"{PODS}/one"),
    get(f"{PODS}/two"),
    # A pod that is not ready may be evicted while enough others are ready.
    ask("PATCH", f"{PODS}/two/status", condition("Ready", "False"), S),
    counted("currentHealthy", 1),
    evict("two"),
    ask(
        "PATCH",
        f"{BUDGETS}/b",
        {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}},
        M,
        only="spec",
    ),
    counted("observedGeneration", 2),
    evict("two"),
    ask("POST", BUDGETS, budget("c", maxUnavailable=1)),
    evict("three"),
    ask("DELETE", f"{BUDGETS}/c"),
    ask("DELETE", f"{BUDGETS}/b"),
    evict("three", {"deleteOptions": expecting(uid=UNKNOWN_UID)}),
    evict("three"),
    evict("none"),
    ask("POST", f"{PODS}/three/eviction", {**meta("three"), "apiVersion": "policy/v1beta1"}),
    ask("POST", f"{PODS}/three/eviction", {}),
    ask("GET", f"{PODS}/three/eviction"),
    ask("POST", BUDGETS, budget("d", minAvailable=1, maxUnavailable=1)),
    ask("POST", BUDGETS, budget("d", minAvailable=-1)),
    ask("POST", BUDGETS, budget("d", minAvailable="200%")),
    ask("POST", BUDGETS, budget("d", maxUnavailable="x")),
    ask("POST", BUDGETS, budget("d", unhealthyPodEvictionPolicy="Foo")),
]

"""Questions about DaemonSets, the native ones and the Advanced ones of both versions."""

from __future__ import annotations

from everynode.kube.requests import APPLY_PATCH as A
from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S
from tests.agreement.question import (
    ADVANCED,
    OLD,
    SETS,
    TABLE,
    advanced,
    ask,
    container,
    daemonset,
    meta,
    rolling,
)

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

"""Questions about how many pods a workload wants."""

from __future__ import annotations

from typing import Final

from everynode.kube.requests import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.agreement.question import DEPLOYMENTS, TABLE, Object, Question, ask, daemonset, get, meta

D: Final = f"{DEPLOYMENTS}/d"
SCALE: Final = f"{D}/scale"
SETS: Final = "/apis/apps/v1/namespaces/NS/replicasets"
MANAGED: Final = "?fieldManager=somebody"


def scale(replicas: object, **more: str) -> Object:
    return {**meta("d", **more), "spec": {"replicas": replicas}}


SCALED: Final[list[Question]] = [
    ask("POST", DEPLOYMENTS, daemonset("d"), keep={"VERSION": "metadata.resourceVersion"}),
    get(SCALE),
    get(SCALE, accept=TABLE),
    get(f"{DEPLOYMENTS}/none/scale"),
    ask("PATCH", f"{SCALE}{MANAGED}", {"spec": {"replicas": 3}}, MERGE_PATCH),
    get(D),
    ask("PATCH", SCALE, {"spec": {"replicas": 3}}, MERGE_PATCH),
    ask("PATCH", SCALE, [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH),
    ask("PATCH", SCALE, {"spec": {"replicas": 5}}, STRATEGIC_PATCH),
    ask("PATCH", SCALE, {"spec": {"replicas": -1}}, MERGE_PATCH),
    ask("PATCH", SCALE, {"spec": {"replicas": None}}, MERGE_PATCH),
    get(D, only="spec.replicas"),
    ask("PATCH", SCALE, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH),
    ask("PATCH", SCALE, {"metadata": {"name": "other"}}, MERGE_PATCH),
    ask("PATCH", SCALE, {"metadata": {"resourceVersion": "<VERSION>"}}, MERGE_PATCH),
    ask("PATCH", SCALE, {"status": {"replicas": 7}}, MERGE_PATCH),
    ask("PATCH", f"{SCALE}?fieldValidation=Ignore", {"spec": {"odd": 1}}, MERGE_PATCH),
    ask("PATCH", SCALE, {"spec": {"odd": 1}}, MERGE_PATCH),
    ask("PATCH", f"{DEPLOYMENTS}/none/scale", {"spec": {"replicas": 1}}, MERGE_PATCH),
    ask("PUT", SCALE, scale(2)),
    ask("PUT", f"{SCALE}?dryRun=All", scale(9)),
    get(SCALE),
    ask("PUT", SCALE, scale(-2)),
    ask("PUT", SCALE, scale("two")),
    ask("PUT", SCALE, {**meta("other"), "spec": {"replicas": 2}}),
    ask("PUT", SCALE, {"spec": {"replicas": 2}}),
    ask("PUT", SCALE, scale(2, namespace="other")),
    ask("PUT", SCALE, scale(3, uid="another"), differs="the real one tells the key in etcd"),
    ask("PUT", SCALE, scale(3, resourceVersion="<VERSION>")),
    ask("PUT", SCALE, {**scale(3), "kind": "Deployment", "apiVersion": "apps/v1"}),
    ask("PUT", f"{DEPLOYMENTS}/none/scale", {**meta("none"), "spec": {}}),
    ask("PUT", f"{SCALE}?fieldValidation=Strict", {**scale(3), "odd": 1}),
    ask("POST", SCALE, scale(1)),
    ask("DELETE", SCALE),
    get(D, differs="the real one forgets who scaled it with a PUT"),
    ask("POST", SETS, daemonset("d")),
    ask("PUT", f"{SETS}/d/scale", scale(2)),
    get(f"{SETS}/d/scale"),
]

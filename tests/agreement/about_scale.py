"""Questions about the scale subresource."""

from __future__ import annotations

from typing import Final

from everynode.kube.requests import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.agreement.question import DEPLOYMENTS, TABLE, Object, Question, ask, daemonset, get, meta

D: Final = f"{DEPLOYMENTS}/d"
SCALE: Final = f"{D}/scale"
SETS: Final = "/apis/apps/v1/namespaces/NS/replicasets"
MANAGED: Final = "?fieldManager=another"


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
    ask("PATCH", SCALE, {"metadata": {"uid": "another"}}, MERGE_PATCH),
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


def apply(
    manager: str,
    replicas: object = None,
    name: str = "d",
    query: str = "",
    path: str = DEPLOYMENTS,
    **more: object,
) -> Question:
    spec = {} if replicas is None else {"spec": {"replicas": replicas}}
    sent = {"apiVersion": "autoscaling/v1", "kind": "Scale", **meta(name), **spec, **more}
    return ask("PATCH", f"{path}/{name}/scale?fieldManager={manager}{query}", sent, APPLY_PATCH)


def apply_whole(manager: str, name: str = "d", query: str = "", **spec: object) -> Question:
    sent = {"apiVersion": "apps/v1", "kind": "Deployment", **daemonset(name, **spec)}
    return ask("PATCH", f"{DEPLOYMENTS}/{name}?fieldManager={manager}{query}", sent, APPLY_PATCH)


FORCE: Final = "&force=true"

# A workload that was applied as a whole before it is scaled.
APPLIED: Final[list[Question]] = [
    apply("one", 2, "none"),
    apply_whole("owner", replicas=2, minReadySeconds=3),
    apply("one", 2),  # a second owner
    get(D),
    apply("one", 3),  # the first one objects
    apply("one", 3, query="&dryRun=All"),
    apply("one", 3, query=f"{FORCE}&dryRun=All"),
    get(D),
    apply("one", 3, query=FORCE),
    get(D),
    apply("one", 3),  # changes nothing
    get(D),
    apply("two", 4),
    apply("two", 4, query=FORCE),
    get(D),
    apply_whole("owner", minReadySeconds=3),
    get(D),
    apply_whole("owner", replicas=5, minReadySeconds=3),
    apply_whole("owner", query=FORCE, replicas=5, minReadySeconds=3),
    get(D),
    ask("PATCH", f"{SCALE}{MANAGED}", {"spec": {"replicas": 6}}, MERGE_PATCH),
    get(D),
    apply("one", 7),
    apply("one", 7, query=FORCE),
    get(D),
    apply("one", 7, status={"replicas": 9}),
    apply("one", 7, metadata={"name": "d", "labels": {"a": "b"}}),
    get(D),
    apply("one"),  # what one had, and no one else, goes
    get(D),
    apply("one"),
    apply("one", 0),
    apply("one", 0),
    get(D),
    apply("one", 4),
    apply("one", metadata={"name": "d", "labels": {"a": "b"}}),
    get(D),
    apply("one", 4),
    apply("one", spec={}),
    get(D),
    apply("one", 0),
    apply("one", -1),
    apply("one", "two"),
    apply("one", 1, odd=1),
    apply("one", 1, spec={"odd": 1}),
    apply("one", 1, query="&fieldValidation=Strict", odd=1),
    apply("", 1),
    apply("one", 1, metadata={"name": "other"}),
    apply("one", 1, metadata={}),
    apply("one", 1, metadata={"name": "d", "uid": "another"}),
    apply("one", 1, metadata={"name": "d", "resourceVersion": "1"}),
    apply("one", 1, metadata={"name": "d", "namespace": "other"}),
    apply("one", 1, metadata={"name": "d", "managedFields": [{"manager": "x"}]}),
    apply("one", 1, kind="Deployment", apiVersion="apps/v1"),
    apply("one", 1, apiVersion="autoscaling/v2"),
    ask("PATCH", f"{SCALE}{MANAGED}", b"text", APPLY_PATCH),
    get(D),
]

# A workload of which others have written parts.
APPLIED_AFTER_UPDATES: Final[list[Question]] = [
    ask("POST", f"{DEPLOYMENTS}?fieldManager=maker", daemonset("d")),
    apply("one", 2),
    apply("one", 2, query=FORCE),
    get(D),
    ask("PATCH", f"{D}?fieldManager=maker", {"spec": {"replicas": 3}}, MERGE_PATCH),
    get(D),
    apply("one", 4),
    apply("one", 4, query=FORCE),
    get(D),
    ask("PATCH", f"{SCALE}?fieldManager=maker", {"spec": {"replicas": 5}}, MERGE_PATCH),
    get(D),
    apply("one", 6),
    apply("two", 5),
    get(D),
    apply("one", 5),
    apply("one", 6),
    apply("one", 6, query=FORCE),
    get(D),
    ask("PATCH", f"{D}?fieldManager=maker", {"metadata": {"managedFields": [{}]}}, MERGE_PATCH),
    get(D),
    apply("one", 6),
    get(D),
    apply("one", 7),
    apply("one", 7, query=FORCE),
    get(D),
    # The number of replicas is not set.
    apply_whole("owner", "e"),
    apply("one", 2, "e"),
    apply("one", 1, "e"),
    get(f"{DEPLOYMENTS}/e"),
    # The replicas were written by a manager that owns other fields, too.
    ask("POST", f"{DEPLOYMENTS}?fieldManager=maker", daemonset("f")),
    apply("one", 1, "f"),
    get(f"{DEPLOYMENTS}/f", differs="the real one lists an updater twice, and forgets half of it"),
    ask("POST", SETS, daemonset("d")),
    apply("one", 2, path=SETS, query=FORCE),
    get(f"{SETS}/d"),
    apply("two", 3, path=SETS),
]

"""Questions about patches of all formats, and about field ownership."""

from __future__ import annotations

from typing import Any

from everynode.kube.requests import APPLY_PATCH as A
from everynode.kube.requests import JSON_PATCH
from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S
from tests.agreement.question import (
    LEASES,
    MAPS,
    NODES,
    PODS,
    SETS,
    Object,
    Question,
    ask,
    config_map,
    container,
    daemonset,
    get,
    meta,
    pod,
)


def operation(op: str, path: str, **more: Any) -> Question:
    return ask("PATCH", f"{MAPS}/m", [{"op": op, "path": path, **more}], JSON_PATCH)


JSON_PATCHES = [
    ask("POST", MAPS, config_map("m", {"a": "1"}, labels={"l": "v", "b/c": "2"})),
    operation("add", "/data/d", value="4"),
    operation("add", "/data/a", value="5"),
    operation("add", "/metadata/annotations", value={"n": "v"}),
    operation("add", "/nothing/d", value="4"),
    operation("replace", "/metadata/labels/b~1c", value="3"),
    operation("replace", "/data/none", value="3"),
    operation("remove", "/data/d"),
    operation("remove", "/data/d"),
    operation("copy", "/data/e", **{"from": "/data/a"}),
    operation("copy", "/data/e", **{"from": "/data/none"}),
    operation("move", "/data/f", **{"from": "/data/e"}),
    operation("test", "/data/a", value="5"),
    operation("test", "/data/a", value="6"),
    operation("test", "/data/none", value=None),
    operation("frobnicate", "/data/a", value="6"),
    ask(
        "PATCH",
        f"{MAPS}/m",
        [{"op": "replace", "path": "", "value": {"data": {}}}],
        JSON_PATCH,
        differs="the real one goes on for a while with the object that is left",
    ),
    operation("replace", "/metadata/name", value="other"),
    ask(
        "PATCH",
        f"{MAPS}/m",
        [{"op": "replace", "path": "/kind", "value": "Secret"}],
        JSON_PATCH,
        differs="the real one reads it as what it says it is",
    ),
    operation("replace", "/data", value="text"),
    operation("add", "data/x", value="y"),
    ask("PATCH", f"{MAPS}/m", [], JSON_PATCH),
    ask("PATCH", f"{MAPS}/m", {}, JSON_PATCH),
    ask("PATCH", f"{MAPS}/m", b"[", JSON_PATCH),
    ask("PATCH", f"{MAPS}/m", [{"op": "test"}], JSON_PATCH),
    ask(
        "PATCH",
        f"{MAPS}/m",
        [
            {"op": "test", "path": "/data/a", "value": "5"},
            {"op": "replace", "path": "/data/a", "value": "7"},
        ],
        f"{JSON_PATCH};charset=utf-8",
    ),
    get(f"{MAPS}/m"),
]

MERGE_PATCHES = [
    ask(
        "POST", MAPS, config_map("m", {"a": "1", "b": "2"}), keep={"V": "metadata.resourceVersion"}
    ),
    ask("PATCH", f"{MAPS}/m", {"data": {"a": None, "c": "3"}}, M),
    ask("PATCH", f"{MAPS}/m", {"data": {"c": "3"}}, M),
    ask("PATCH", f"{MAPS}/m", {}, M),
    ask("PATCH", f"{MAPS}/m", {"data": None}, M),
    ask("PATCH", f"{MAPS}/m", {"data": 5}, M),
    ask("PATCH", f"{MAPS}/m", [], M),
    ask("PATCH", f"{MAPS}/m", b"{", M),
    ask("PATCH", f"{MAPS}/m", b"null", M),
    ask("PATCH", f"{MAPS}/m", b"", M),
    ask("PATCH", f"{MAPS}/m", {"metadata": {"resourceVersion": "<V>"}, "data": {"z": "z"}}, M),
    ask("PATCH", f"{MAPS}/m", {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}, M),
    ask("PATCH", f"{MAPS}/m", {"metadata": {"creationTimestamp": None, "generation": 5}}, M),
    ask("PATCH", f"{MAPS}/m", {"metadata": {"finalizers": ["nonsense"]}}, M),
    ask("PATCH", f"{MAPS}/m", {"metadata": {"finalizers": ["example.test/f"]}}, M),
    ask("PATCH", f"{MAPS}/m", {"metadata": {"labels": {"bad key": "x"}}}, M),
    ask("PATCH", f"{MAPS}/m?dryRun=All", {"data": {"dry": "run"}}, M),
    ask("PATCH", f"{MAPS}/m?dryRun=Foo", {"data": {"dry": "run"}}, M),
    ask("PATCH", f"{MAPS}/m?fieldManager={'m' * 129}", {}, M),
    ask("PATCH", f"{MAPS}/m?fieldManager=%00", {}, M),
    ask("PATCH", f"{MAPS}/none", {"data": {}}, M),
    ask("PATCH", f"{MAPS}/m", {"data": {}}, "application/json", differs="ours says what it takes"),
    ask("PATCH", MAPS, {"data": {}}, M),
    ask("PUT", f"{MAPS}/m", config_map("m", {"a": "1"}, resourceVersion="<V>")),
    ask("PUT", f"{MAPS}/m", config_map("m", {"a": "1"}), keep={"V": "metadata.resourceVersion"}),
    ask("PUT", f"{MAPS}/m", config_map("m", {"a": "1"}, resourceVersion="<V>")),
    ask("PUT", f"{MAPS}/m?dryRun=All", config_map("m", {"a": "2"})),
    get(f"{MAPS}/m"),
]

TWO = [
    {"name": "c", "image": "x:1", "env": [{"name": "A", "value": "1"}]},
    {"name": "d", "image": "y"},
]
TAINTS = [{"key": "k", "value": "v", "effect": "NoSchedule"}]


def templated(**spec: Any) -> Object:
    return {"spec": {"template": {"spec": spec}}}


STRATEGIC_PATCHES = [
    ask(
        "POST",
        SETS,
        daemonset("d", template={"metadata": {"labels": {"a": "d"}}, "spec": {"containers": TWO}}),
    ),
    ask("PATCH", f"{SETS}/d", templated(containers=[{"name": "c", "image": "x:2"}]), S),
    ask(
        "PATCH",
        f"{SETS}/d",
        templated(containers=[{"name": "c", "env": [{"name": "B", "value": "2"}]}]),
        S,
    ),
    ask(
        "PATCH",
        f"{SETS}/d",
        templated(containers=[{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}]),
        S,
    ),
    ask("PATCH", f"{SETS}/d", templated(containers=[{"name": "d", "$patch": "delete"}]), S),
    ask(
        "PATCH",
        f"{SETS}/d",
        templated(
            containers=[{"name": "e", "image": "e"}],
            **{"$setElementOrder/containers": [{"name": "e"}, {"name": "c"}]},
        ),
        S,
    ),
    ask("PATCH", f"{SETS}/d", templated(containers=[{"image": "nameless"}]), S),
    ask(
        "PATCH",
        f"{SETS}/d",
        templated(containers=[{"$patch": "replace"}, {"name": "n", "image": "n"}]),
        S,
    ),
    ask("PATCH", f"{SETS}/d", templated(volumes=[{"name": "v", "emptyDir": {}}]), S),
    # A real server may first try it on a cached object without the volume, and warn of the field.
    ask(
        "PATCH",
        f"{SETS}/d?fieldValidation=Ignore",
        templated(
            volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]
        ),
        S,
    ),
    ask("PATCH", f"{SETS}/d", templated(tolerations=[{"operator": "Exists"}]), S),
    ask("PATCH", f"{SETS}/d", templated(tolerations=[{"key": "k", "operator": "Exists"}]), S),
    ask(
        "PATCH", f"{SETS}/d", {"metadata": {"finalizers": ["example.test/a", "example.test/b"]}}, S
    ),
    ask(
        "PATCH",
        f"{SETS}/d",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.test/a"]}},
        S,
    ),
    ask("PATCH", f"{SETS}/d", {"metadata": {"finalizers": ["example.test/c"]}}, S),
    ask(
        "PATCH",
        f"{SETS}/d",
        {
            "spec": {
                "template": {
                    "$patch": "replace",
                    "metadata": {"labels": {"a": "d"}},
                    "spec": {"containers": [{"name": "r", "image": "r"}]},
                }
            }
        },
        S,
    ),
    ask(
        "PATCH",
        f"{SETS}/d",
        {"spec": {"updateStrategy": {"$patch": "replace", "type": "OnDelete"}}},
        S,
    ),
    ask("PATCH", f"{SETS}/d", {"spec": {"$patch": "frobnicate"}}, S),
    ask("PATCH", f"{SETS}/d", {"metadata": {"labels": {"a": "1", "b": "2"}}}, S),
    ask("PATCH", f"{SETS}/d", {"metadata": {"labels": {"a": None}}}, S),
    ask("PATCH", f"{SETS}/d", {"spec": {"template": {"spec": {"containers": "text"}}}}, S),
    ask("PATCH", f"{SETS}/d", {"spec": {"minReadySeconds": "five"}}, S),
    ask("PATCH", f"{SETS}/d?fieldValidation=Strict", {"spec": {"minReadySeconds": 5, "foo": 1}}, S),
    ask("PATCH", f"{SETS}/d", {"spec": {"minReadySeconds": 5, "foo": 1}}, S),
    ask("PATCH", f"{SETS}/d", [], S),
    ask("PATCH", f"{SETS}/d", b"x", S),
    ask(
        "PATCH",
        f"{SETS}/d/status",
        {"status": {"conditions": [{"type": "A", "status": "True"}]}},
        S,
    ),
    ask(
        "PATCH",
        f"{SETS}/d/status",
        {"status": {"conditions": [{"type": "B", "status": "True"}]}},
        S,
    ),
    ask(
        "PATCH",
        f"{SETS}/d/status",
        {
            "status": {"conditions": [{"type": "A", "$patch": "delete"}]},
            "spec": {"minReadySeconds": 9},
        },
        S,
    ),
    ask("POST", NODES, {**meta("NS-n"), "spec": {"taints": TAINTS}}),
    ask("PATCH", f"{NODES}/NS-n", {"spec": {"taints": [{"key": "o", "effect": "NoExecute"}]}}, S),
    ask("PATCH", f"{NODES}/NS-n", {"spec": {"taints": None}}, S),
    ask(
        "PATCH",
        f"{NODES}/NS-n/status",
        {"status": {"addresses": [{"type": "Hostname", "address": "h"}]}},
        S,
    ),
    ask(
        "PATCH",
        f"{NODES}/NS-n/status",
        {"status": {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}},
        S,
    ),
    ask("DELETE", f"{NODES}/NS-n"),
    ask("POST", PODS, pod("p")),
    ask("PATCH", f"{PODS}/p", container(image="x:2"), S),
    ask(
        "PATCH",
        f"{PODS}/p",
        {
            "metadata": {
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u1"}]
            }
        },
        S,
    ),
    ask(
        "PATCH",
        f"{PODS}/p",
        {
            "metadata": {
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o2", "uid": "u2"}]
            }
        },
        S,
    ),
    ask(
        "PATCH",
        f"{PODS}/p",
        {"metadata": {"ownerReferences": [{"uid": "u1", "$patch": "delete"}]}},
        S,
    ),
    get(f"{PODS}/p"),
    get(f"{SETS}/d"),
]

MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
SET = {"apiVersion": "apps/v1", "kind": "DaemonSet"}


def apply(manager: str, obj: Object, path: str = MAPS, query: str = "") -> Question:
    name = obj.get("metadata", {}).get("name", "none")
    return ask("PATCH", f"{path}/{name}?fieldManager={manager}{query}", obj, A)


APPLIES = [
    apply("one", {**MAP, **config_map("m", {"a": "1", "b": "1"})}),
    apply("one", {**MAP, **config_map("m", {"a": "1", "b": "1"})}),
    apply("two", {**MAP, **config_map("m", {"c": "1"})}),
    apply("two", {**MAP, **config_map("m", {"a": "2", "b": "2", "c": "1"})}),
    apply("two", {**MAP, **config_map("m", {"a": "2", "c": "1"})}, query="&force=true"),
    apply("one", {**MAP, **config_map("m", {"b": "1"})}),
    apply("one", {**MAP, **config_map("m")}),
    apply("two", {**MAP, **config_map("m", {"c": "1"})}, query="&dryRun=All"),
    get(f"{MAPS}/m"),
    ask("PATCH", f"{MAPS}/m?fieldManager=three", {"data": {"c": "9"}}, M),
    apply("two", {**MAP, **config_map("m", {"c": "1"})}),
    apply("two", {**MAP, **config_map("m", {"c": "9"})}),
    ask("PUT", f"{MAPS}/m?fieldManager=four", config_map("m", {"c": "9", "d": "4"})),
    get(f"{MAPS}/m"),
    apply("", {**MAP, **config_map("m")}),
    apply("one", {**MAP, **config_map("m", managedFields=[])}),
    apply("one", {**MAP, **config_map("m", managedFields=[{"manager": "x"}])}),
    apply("one", {**MAP, **config_map("m", resourceVersion="1")}),
    apply("one", {**MAP, **config_map("m", uid="00000000-0000-0000-0000-000000000000")}),
    apply("one", {**config_map("m")}),
    apply("one", {"apiVersion": "v1", "kind": "Secret", **meta("m")}),
    apply("one", {"apiVersion": "apps/v1", "kind": "ConfigMap", **meta("m")}),
    apply("one", {**MAP, **meta("m"), "odd": 1}),
    apply("one", {**MAP, **meta("m"), "data": {"a": 1}}),
    apply("one", {**MAP, **meta("m"), "data": "text"}),
    apply("one", {**MAP, **config_map("m", {"e": "5"})}, query="&fieldValidation=Strict"),
    apply("one", {**MAP, **meta("m"), "odd": 1}, query="&fieldValidation=Strict"),
    ask(
        "PATCH",
        f"{MAPS}/m?fieldManager=one",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  y: ml\n",
        A,
    ),
    ask(
        "PATCH",
        f"{MAPS}/m?fieldManager=one",
        b"apiVersion: [",
        A,
        differs="each YAML reader has its own words",
    ),
    ask("PATCH", f"{MAPS}/m?fieldManager=one", b"text", A),
    ask("PATCH", f"{MAPS}/m?fieldManager=one", b"", A),
    ask("PATCH", f"{MAPS}/m?fieldManager=one&force=maybe", {**MAP, **meta("m")}, A),
    apply("one", {**SET, **daemonset("d")}, SETS),
    apply("two", {**SET, **daemonset("d")}, SETS),
    apply("two", {**SET, **daemonset("d", minReadySeconds=3)}, SETS),
    apply("three", {**SET, **daemonset("d", template={**container(image="x:9")})}, SETS),
    apply(
        "three",
        {**SET, **meta("d"), "spec": {"minReadySeconds": 9, "template": container(image="x:9")}},
        SETS,
    ),
    apply(
        "three",
        {**SET, **meta("d"), "spec": {"template": container(env=[{"name": "E", "value": "1"}])}},
        SETS,
    ),
    apply(
        "three",
        {**SET, **meta("d"), "spec": {"template": container(env=[{"name": "E"}, {"name": "E"}])}},
        SETS,
    ),
    apply(
        "three",
        {
            **SET,
            **meta("d"),
            "spec": {"template": {"spec": {"containers": [{"image": "nameless"}]}}},
        },
        SETS,
    ),
    apply("three", {**SET, **meta("d")}, SETS),
    apply("status", {**SET, **meta("d"), "status": {"numberReady": 4}}, SETS),
    ask(
        "PATCH",
        f"{SETS}/d/status?fieldManager=status",
        {
            **SET,
            **meta("d"),
            "status": {
                "numberReady": 4,
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
            },
        },
        A,
    ),
    ask(
        "PATCH",
        f"{SETS}/d/status?fieldManager=other",
        {
            **SET,
            **meta("d"),
            "status": {
                "numberReady": 5,
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
            },
        },
        A,
    ),
    get(f"{SETS}/d"),
    apply("one", {**SET, **daemonset("bad", minReadySeconds=-1)}, SETS),
    apply(
        "one",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            **meta("l"),
            "spec": {"holderIdentity": "a"},
        },
        LEASES,
    ),
    apply(
        "two",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            **meta("l"),
            "spec": {"holderIdentity": "b"},
        },
        LEASES,
    ),
]

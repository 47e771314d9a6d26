"""Questions about fields: unknown ones, generated names, protobuf."""

from __future__ import annotations

import base64
import json

from everynode.apiserver.request.protobuf import MAGIC
from everynode.kube.requests import MERGE_PATCH as M
from tests.agreement.question import (
    CLASSES,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    MAPS,
    NODES,
    PODS,
    SETS,
    SPACE,
    Question,
    ask,
    config_map,
    daemonset,
    get,
    meta,
    pod,
)
from tests.support.paths import ANSWERS as RECORDED

PROTOBUF = "application/vnd.kubernetes.protobuf"
_ANSWERS = RECORDED / "protobufs.json"
WORDS = "the real one speaks of its own types"
LEVELS = ("Strict", "Warn", "Ignore", "")

UNKNOWN = [
    *(
        question
        for level in LEVELS
        for question in (
            ask("POST", f"{PODS}?dryRun=All&fieldValidation={level}", pod("p", odd=1, even={})),
            ask("POST", f"{SETS}?dryRun=All&fieldValidation={level}", daemonset("d", odd=1)),
            ask("POST", f"{NODES}?dryRun=All&fieldValidation={level}", {**meta("n"), "odd": []}),
            ask(
                "POST",
                f"{MAPS}?dryRun=All&fieldValidation={level}",
                b'{"metadata":{"name":"m","name":"n"},"data":{"a":"1","a":"2"},"odd":1}',
            ),
            ask(
                "POST",
                f"{SETS}?dryRun=All&fieldValidation={level}",
                daemonset(
                    "d",
                    template={
                        "metadata": {"labels": {"a": "d"}, "odd": 1},
                        "spec": {"containers": [{"name": "c", "image": "x", "imagee": "y"}]},
                    },
                ),
            ),
        )
    ),
    ask("POST", f"{MAPS}?fieldValidation=strict", config_map("m")),
    ask("POST", MAPS, config_map("m")),
    *(
        question
        for level in LEVELS
        for question in (
            ask("PUT", f"{MAPS}/m?fieldValidation={level}", {**config_map("m"), "odd": 1}),
            ask("PATCH", f"{MAPS}/m?fieldValidation={level}", {"odd": 1}, M),
            ask("PATCH", f"{MAPS}/m?fieldValidation={level}", b'{"odd":1,"odd":2}', M),
        )
    ),
    ask("POST", f"{PODS}?fieldValidation=Strict", {**pod("p"), "Spec": {}}),
    ask(
        "POST", PODS, b'{"metadata":{"name":"p"},"SPEC":{"containers":[{"name":"c","image":"x"}]}}'
    ),
    ask("POST", MAPS, b"apiVersion: v1\nmetadata: {name: y}\ndata: {a: b}\n", "application/yaml"),
    ask("POST", MAPS, b"a: [", "application/yaml", differs="each YAML reader has its own words"),
    ask("POST", MAPS, config_map("m"), "text/plain"),
    ask("POST", MAPS, config_map("z"), "application/json; charset=utf-8"),
    ask("POST", MAPS, b"[]", differs=WORDS),
    ask("POST", MAPS, b"null"),
    ask("POST", MAPS, b'"text"', differs=WORDS),
    ask("POST", MAPS, {"kind": "Pod", **meta("m")}),
    ask("POST", MAPS, {"kind": "Nope", **meta("m")}),
    ask("POST", MAPS, {"apiVersion": "v2", **meta("m")}),
    ask("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMapList", **meta("m")}),
]

NAMES = [
    ask("POST", MAPS, {"metadata": {"generateName": "gen-"}}),
    ask("POST", MAPS, {"metadata": {"generateName": "gen-", "name": "chosen"}}),
    ask("POST", MAPS, {"metadata": {"generateName": "x" * 70}}),
    ask("POST", MAPS, {"metadata": {"generateName": "Bad_"}}),
    ask("POST", f"{MAPS}?dryRun=All", {"metadata": {"generateName": "gen-"}}),
    ask("POST", MAPS, {"metadata": {}}),
    ask("POST", MAPS, {}),
    *(
        ask("POST", path, {**meta(name), **more})
        for name in ("UPPER", "a_b", "-a", "a" * 254, "a.b", "a..b", "a/b", "..", "%")
        for path, more in ((MAPS, {}), (LEASES, {}), (SETS, {"spec": daemonset("d")["spec"]}))
    ),
    ask("POST", f"{SPACE}/serviceaccounts", meta("a.b")),
    ask("POST", f"{SPACE}/services", {**meta("1a"), "spec": {"ports": [{"port": 80}]}}),
    ask("POST", "/api/v1/namespaces", meta("NS.dotted")),
    ask("POST", MAPS, config_map("k", labels={"a" * 64: "x"})),
    ask("POST", MAPS, config_map("k", labels={"a": "x" * 64})),
    ask("POST", MAPS, config_map("k", labels={"a/b/c": "x"})),
    ask("POST", MAPS, config_map("k", annotations={"Bad Key": "x"})),
    ask("POST", MAPS, config_map("k", annotations={"big": "x" * 300_000})),
    ask("POST", MAPS, config_map("k", {"bad key": "x"})),
    ask("POST", MAPS, config_map("k", {"..": "x"})),
    ask("POST", MAPS, config_map("k", ownerReferences=[{"kind": "x", "name": "y", "uid": "u"}])),
    ask("POST", MAPS, config_map("k", finalizers=["x"])),
    ask("POST", MAPS, config_map("k", generation=-1)),
    ask("POST", MAPS, config_map("k", namespace="other")),
    ask("POST", MAPS, config_map("k", creationTimestamp="nonsense")),
    ask(
        "POST",
        MAPS,
        config_map(
            "sent", uid="u", generation=5, selfLink="x", deletionTimestamp="2020-01-01T00:00:00Z"
        ),
    ),
    # Which changes are counted.
    ask("POST", SETS, daemonset("d")),
    ask("PATCH", f"{SETS}/d", {"metadata": {"labels": {"x": "y"}}}, M),
    ask("PATCH", f"{SETS}/d", {"spec": {"minReadySeconds": 1}}, M),
    ask("PATCH", f"{SETS}/d", {"spec": {"minReadySeconds": 1}}, M),
    ask("PATCH", f"{SETS}/d/status", {"status": {"numberReady": 1}}, M),
    ask(
        "PUT",
        f"{SETS}/d/status",
        {**daemonset("d", minReadySeconds=7), "status": {"numberReady": 2}},
        only="status",
    ),
    ask("PUT", f"{SETS}/d", {**daemonset("d"), "status": {"numberReady": 9}}),
    get(f"{SETS}/d"),
    get(f"{SETS}/d/status"),
    ask("POST", DEPLOYMENTS, daemonset("d")),
    ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"replicas": 3}}, M),
    ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"paused": True}}, M),
    ask("PATCH", f"{DEPLOYMENTS}/d/status", {"status": {"replicas": 3, "readyReplicas": 3}}, M),
    ask("POST", CLASSES, {**meta("NS-c"), "value": 5}),
    ask("PATCH", f"{CLASSES}/NS-c", {"description": "d"}, M),
    ask("DELETE", f"{CLASSES}/NS-c"),
    ask(
        "POST",
        EVENTS,
        {"metadata": {"generateName": "gen-"}, "involvedObject": {"namespace": "NS"}},
    ),
]


def _protobufs() -> list[Question]:
    found = {
        each["kind"]: base64.b64decode(each["protobuf"])
        for each in json.loads(_ANSWERS.read_text())
    }
    made = []
    for kind, path, where in (
        ("ConfigMap", MAPS, "data"),
        ("Pod", PODS, "spec"),
        ("DaemonSet", SETS, "spec"),
        ("Lease", LEASES, "spec"),
    ):
        space = path.replace("NS", "default")
        made += [
            ask("POST", f"{space}?dryRun=All", found[kind], PROTOBUF, only=where),
            ask("POST", f"{space}?dryRun=All", found[kind][:40], PROTOBUF, differs=WORDS),
        ]
    return made


def _short(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def _wrapped(version: str, kind: str, content: bytes) -> bytes:
    names = _short(1, version.encode()) + _short(2, kind.encode())
    return MAGIC + _short(1, names) + _short(2, content)


def _named(name: str) -> bytes:
    return _short(1, _short(1, name.encode()))


PROTOBUFS = [
    *_protobufs(),
    ask("POST", MAPS, _wrapped("v1", "ConfigMap", _named("proto")), PROTOBUF),
    ask("POST", MAPS, _wrapped("v1", "Secret", _named("proto")), PROTOBUF),
    ask("POST", MAPS, _wrapped("v2", "ConfigMap", _named("proto")), PROTOBUF, differs=WORDS),
    ask("POST", MAPS, b"k8s\x00", PROTOBUF, differs=WORDS),
    ask("POST", MAPS, b"{}", PROTOBUF, differs=WORDS),
    get(f"{MAPS}/proto"),
    # gracePeriodSeconds 0, dryRun All
    ask(
        "DELETE",
        f"{MAPS}/proto",
        _wrapped("v1", "DeleteOptions", b"\x08\x00" + _short(5, b"All")),
        PROTOBUF,
    ),
    ask(
        "DELETE",
        f"{MAPS}/proto",
        _wrapped("v1", "DeleteOptions", _short(4, b"Background")),
        PROTOBUF,
    ),
    get(f"{MAPS}/proto"),
]

"""Questions that are refused: unknown paths, and verbs that are not served."""

from __future__ import annotations

from everynode.kube.requests import MERGE_PATCH as M
from tests.agreement.question import (
    DEFINITIONS,
    MAPS,
    NODES,
    PODS,
    SETS,
    SPACE,
    ask,
    config_map,
    daemonset,
    get,
    meta,
    pod,
)

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ACCESS = {"resourceAttributes": {"namespace": "NS", "verb": "get", "resource": "pods"}}

REFUSALS = [
    *(
        get(path)
        for path in (
            "/nothing",
            "/api/v2",
            "/api/v1/nothing",
            "/apis/nothing.test",
            "/apis/apps/v9",
            "/apis/apps/v1/nothing",
            f"{SPACE}/nothing",
            f"{SPACE}/nothing/x",
            f"{MAPS}/none",
            f"{MAPS}/none/status",
            f"{PODS}/none",
            f"{PODS}/none/status",
            f"{PODS}/none/log",
            f"{PODS}/none/foo",
            f"{SETS}/none",
            f"{SETS}/none/scale",
            f"{NODES}/none",
            "/api/v1/namespaces/none",
            "/api/v1/namespaces/none/pods",
            "/api/v1/namespaces/none/pods/x",
            "/api/v1/namespaces/NS/nodes",
            "/api/v1/configmaps/x",
            f"{DEFINITIONS}/none",
            REVIEWS,
        )
    ),
    *(
        ask(method, path, {})
        for method in ("POST", "PUT", "PATCH", "DELETE")
        for path in (
            "/api",
            "/api/v1",
            "/apis/apps/v1",
            "/version",
            "/api/v1/pods",
            "/nothing",
        )
    ),
    ask("POST", MAPS, config_map("m")),
    ask("POST", f"{MAPS}/m", config_map("m")),
    ask("PUT", MAPS, config_map("m")),
    ask("PATCH", MAPS, {}, M),
    ask("PUT", f"{MAPS}/m/status", config_map("m")),
    ask("DELETE", f"{MAPS}/m/status"),
    ask("POST", f"{PODS}/none/binding", {**meta("none"), "target": {"name": "n"}}),
    ask("PUT", f"{PODS}/none/status", pod("none")),
    ask("PUT", f"{SETS}/none", daemonset("none")),
    ask("PATCH", f"{SETS}/none/status", {}, M),
    ask("POST", REVIEWS, {"spec": ACCESS}, only="spec"),
    ask("POST", REVIEWS, {"spec": {}}),
    ask(
        "POST", REVIEWS, {"spec": {**ACCESS, "nonResourceAttributes": {"path": "/", "verb": "get"}}}
    ),
    ask("PUT", f"{REVIEWS}/x", {}),
    ask("PATCH", f"{MAPS}/m", {}, "application/x-foo", differs="ours says what it takes"),
    ask("PATCH", f"{MAPS}/m", {}, "", differs="ours says what it takes"),
    ask("POST", MAPS, b"x", "application/x-foo"),
    ask("POST", MAPS, b"x", "nonsense"),
    ask(
        "POST",
        PODS,
        pod("two", containers=[{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]),
    ),
    get(f"{PODS}/two/log"),
    get(f"{PODS}/two/log?container=none"),
]

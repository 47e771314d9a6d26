"""Questions about quotas, network policies and flow schemas, which are stored."""

from __future__ import annotations

from typing import Final

from everynode.kube.requests import MERGE_PATCH, STRATEGIC_PATCH
from tests.agreement.question import SPACE, TABLE, Object, Question, ask, get, meta

QUOTAS: Final = f"{SPACE}/resourcequotas"
POLICIES: Final = "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies"
FLOWS: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
HANDLED: Final = "ours warns that all requests are handled alike, and writes no status"
WARNED: Final = "ours warns that nothing counts the usage"
COUNTED: Final = {"status": {"hard": {"pods": "3", "limits.cpu": "2"}, "used": {"pods": "1"}}}


def quota(name: str, **hard: object) -> Object:
    return {**meta(name), "spec": {"hard": hard}}


def policy(name: str, **spec: object) -> Object:
    return {**meta(name), "spec": {"podSelector": {"matchLabels": {"a": "b"}}, **spec}}


def flow(name: str, level: str = "workload-high", **spec: object) -> Object:
    account = {"name": "a", "namespace": "b"}
    subject = {"kind": "ServiceAccount", "serviceAccount": account}
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}
    rules = [{"subjects": [subject], "resourceRules": [rule]}]
    return {
        **meta(name),
        "spec": {"priorityLevelConfiguration": {"name": level}, "rules": rules, **spec},
    }


KEPT: Final[list[Question]] = [
    ask("POST", QUOTAS, quota("q", cpu="1000m", pods=10, memory="1024Mi"), differs=WARNED),
    get(f"{QUOTAS}/q", only="spec"),
    ask("POST", QUOTAS, quota("bad", pods="-1")),
    ask("POST", QUOTAS, quota("bad", pods="many")),
    ask("POST", QUOTAS, {**meta("empty"), "spec": {}}, differs=WARNED),
    ask("PATCH", f"{QUOTAS}/q", {"spec": {"hard": {"pods": "2"}}}, MERGE_PATCH, only="spec"),
    ask("PATCH", f"{QUOTAS}/q", {"spec": {"hard": {"cpu": "-2"}}}, STRATEGIC_PATCH),
    ask("PATCH", f"{QUOTAS}/empty/status", COUNTED, MERGE_PATCH, only="spec"),
    ask("DELETE", f"{QUOTAS}/empty", only="spec"),
    ask("DELETE", f"{QUOTAS}/none"),
    ask("POST", POLICIES, policy("p", ingress=[{"ports": [{"port": 8080}]}])),
    ask("POST", POLICIES, policy("both", egress=[{}])),
    ask("POST", POLICIES, policy("none", policyTypes=["Egress"])),
    ask("POST", POLICIES, {**meta("all"), "spec": {"podSelector": {}}}),
    ask("POST", POLICIES, {**meta("bad"), "spec": {"podSelector": {"matchLabels": {"-": "-"}}}}),
    ask("POST", f"{POLICIES}?fieldValidation=Strict", policy("odd", odd=1)),
    ask("PATCH", f"{POLICIES}/p", {"spec": {"egress": [{}]}}, MERGE_PATCH),
    ask("PATCH", f"{POLICIES}/p", {"metadata": {"labels": {"x": "y"}}}, MERGE_PATCH),
    get(f"{POLICIES}/p", accept=TABLE),
    get(f"{POLICIES}/all", accept=TABLE),
    get(POLICIES),
    ask("DELETE", f"{POLICIES}/p"),
    ask("POST", FLOWS, flow("agreed-flow"), differs=HANDLED),
    get(f"{FLOWS}/agreed-flow", only="spec"),
    ask("POST", FLOWS, flow("bad-flow", level="")),
    ask("POST", FLOWS, flow("bad-flow", matchingPrecedence=10_001)),
    ask("POST", FLOWS, flow("bad-flow", matchingPrecedence=-1)),
    ask("POST", f"{FLOWS}?fieldValidation=Strict", flow("odd-flow", odd=1)),
    ask(
        "PATCH",
        f"{FLOWS}/agreed-flow",
        {"spec": {"matchingPrecedence": 7}},
        MERGE_PATCH,
        only="spec",
    ),
    ask("DELETE", f"{FLOWS}/agreed-flow"),
]

"""A question to an API server, and the words that questions are made of.

Paths and bodies may contain NS, the name of a namespace that is new for each run, and what an
earlier question has kept: with `keep={"TOKEN": "metadata.continue"}` later ones may say <TOKEN>.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from everynode.kube.requests import JSON

Object = dict[str, Any]

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Question:
    """One request; `differs` says why the answers may differ, which then only must both be errors
    or both be none. It is asked again until the answer has what `until` says, and the answers are
    compared where `only` leads. Ours is asked at the path `instead`, where one is given."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    differs: str = ""
    keep: Mapping[str, str] = field(default_factory=dict)
    until: tuple[str, Any] | None = None
    only: str = ""
    instead: str = ""
    verbatim: bool = False  # whether the path is sent without being encoded again

    def __str__(self) -> str:
        told = self.body[:60] if isinstance(self.body, bytes) else self.body
        return f"{self.method} {self.path} {told!r} ({self.content_type}, wants {self.accept})"


def ask(method: str, path: str, body: Any = None, kind: str = JSON, **more: Any) -> Question:
    return Question(method, path, body, kind, **more)


def get(path: str, **more: Any) -> Question:
    return Question("GET", path, **more)


SPACE: Final = "/api/v1/namespaces/NS"
PODS: Final = f"{SPACE}/pods"
MAPS: Final = f"{SPACE}/configmaps"
EVENTS: Final = f"{SPACE}/events"
NEW_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/NS/events"
SETS: Final = "/apis/apps/v1/namespaces/NS/daemonsets"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/NS/deployments"
REVISIONS: Final = "/apis/apps/v1/namespaces/NS/controllerrevisions"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"
BUDGETS: Final = "/apis/policy/v1/namespaces/NS/poddisruptionbudgets"
NODES: Final = "/api/v1/nodes"
NODE: Final = f"{NODES}/NS-node"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADVANCED: Final = "/apis/apps.kruise.io/v1beta1/namespaces/NS/daemonsets"
OLD: Final = "/apis/apps.kruise.io/v1alpha1/namespaces/NS/daemonsets"

CONTAINERS: Final = [{"name": "c", "image": "x:1"}]
NAMESPACE: Final = Question("POST", "/api/v1/namespaces", {"metadata": {"name": "NS"}})


def meta(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name, **more}}


def config_map(name: str, data: Any = None, **more: Any) -> Object:
    return {**meta(name, **more), "data": data or {}}


def pod(name: str, **spec: Any) -> Object:
    return {**meta(name), "spec": {"containers": CONTAINERS, **spec}}


def daemonset(name: str, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": CONTAINERS}}
    selector = {"matchLabels": {"a": name}}
    return {**meta(name), "spec": {"selector": selector, "template": template, **spec}}


def advanced(name: str, version: str = "v1beta1", **spec: Any) -> Object:
    named = {"apiVersion": f"apps.kruise.io/{version}", "kind": "DaemonSet"}
    return {**named, **daemonset(name, **spec)}


def rolling(**strategy: Any) -> Object:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": strategy}}


def container(**more: Any) -> Object:
    return {"spec": {"containers": [{"name": "c", **more}]}}


def condition(kind: str, status: str = "True") -> Object:
    return {"status": {"conditions": [{"type": kind, "status": status}]}}

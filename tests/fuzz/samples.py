"""One valid object of every kind that is served, to start from."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

from everynode.api import types

Object = dict[str, Any]

_LABELS: Final = {"matchLabels": {"a": "b"}}
_CONTAINERS: Final = [{"name": "c", "image": "x:1"}]
_TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": _CONTAINERS}}
_WORKLOAD: Final = {"selector": _LABELS, "template": _TEMPLATE}
_RULES: Final = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
_ROLE: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"}
_INVOLVED: Final = {"namespace": "default", "kind": "Pod", "name": "a"}


@dataclass(frozen=True)
class Sample:
    """A kind, where its objects are, and a right one; `parts` are its subresources."""

    group: str
    version: str
    kind: str
    plural: str
    type_name: str
    content: Object
    namespaced: bool = True
    parts: tuple[str, ...] = ()
    lists: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str = "default") -> str:
        root = f"/apis/{self.group}" if self.group else "/api"
        space = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}/{self.version}{space}/{self.plural}"

    def example(self, name: str = "a") -> Object:
        """A right object, which the caller may change."""
        named = {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}}
        return {**named, **copy.deepcopy(self.content)}


def _sample(api_version: str, kind: str, plural: str, content: Object, **more: Any) -> Sample:
    group, _, version = api_version.rpartition("/")
    name = types.type_for(group, version, kind)
    assert name is not None, kind
    return Sample(group, version, kind, plural, name, content, **more)


_STATUS: Final = ("status",)
_RBAC: Final = "rbac.authorization.k8s.io/v1"

PODS: Final = _sample(
    "v1",
    "Pod",
    "pods",
    {"spec": {"containers": _CONTAINERS}},
    parts=("status", "binding", "eviction", "resize", "log"),
)
MAPS: Final = _sample("v1", "ConfigMap", "configmaps", {"data": {"a": "b"}})
SETS: Final = _sample("apps/v1", "DaemonSet", "daemonsets", {"spec": _WORKLOAD}, parts=_STATUS)
NODES: Final = _sample("v1", "Node", "nodes", {}, namespaced=False, parts=_STATUS)
REVISIONS: Final = _sample(
    "apps/v1",
    "ControllerRevision",
    "controllerrevisions",
    {"revision": 1, "data": {"spec": {"template": _TEMPLATE}}},
)
ADVANCED: Final = tuple(
    Sample(
        "apps.kruise.io",
        version,
        "DaemonSet",
        "daemonsets",
        types.ADVANCED_DAEMONSET,
        {"spec": _WORKLOAD},
        parts=_STATUS,
    )
    for version in ("v1beta1", "v1alpha1")
)
NAMESPACED: Final = (
    PODS,
    MAPS,
    SETS,
    REVISIONS,
    *ADVANCED,
    _sample(
        "v1",
        "Event",
        "events",
        {"involvedObject": _INVOLVED, "reason": "A", "type": "Normal", "count": 1},
    ),
    _sample("v1", "ResourceQuota", "resourcequotas", {"spec": {"hard": {"pods": "5"}}}),
    _sample("v1", "Secret", "secrets", {"data": {"a": "Yg=="}}),
    _sample("v1", "ServiceAccount", "serviceaccounts", {}),
    _sample(
        "v1",
        "Service",
        "services",
        {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
        parts=_STATUS,
    ),
    _sample("apps/v1", "Deployment", "deployments", {"spec": _WORKLOAD}, parts=("status", "scale")),
    _sample("apps/v1", "ReplicaSet", "replicasets", {"spec": _WORKLOAD}, parts=("status", "scale")),
    _sample(
        "networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", {"spec": {"podSelector": {}}}
    ),
    _sample(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": _LABELS}},
        parts=_STATUS,
    ),
    _sample(_RBAC, "Role", "roles", {"rules": _RULES}),
    _sample(_RBAC, "RoleBinding", "rolebindings", {"roleRef": _ROLE, "subjects": []}),
    _sample("coordination.k8s.io/v1", "Lease", "leases", {"spec": {"holderIdentity": "a"}}),
    _sample(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    ),
)
CLUSTER_WIDE: Final = (
    NODES,
    _sample("v1", "Namespace", "namespaces", {}, namespaced=False, parts=("status", "finalize")),
    _sample(_RBAC, "ClusterRole", "clusterroles", {"rules": _RULES}, namespaced=False),
    _sample(
        _RBAC, "ClusterRoleBinding", "clusterrolebindings", {"roleRef": _ROLE}, namespaced=False
    ),
    _sample(
        "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", {"value": 5}, namespaced=False
    ),
)
NEW_EVENTS: Final = _sample(
    "events.k8s.io/v1",
    "Event",
    "events",
    {
        "regarding": _INVOLVED,
        "reason": "A",
        "type": "Normal",
        "action": "B",
        "eventTime": "2024-01-01T00:00:00.000000Z",
        "reportingController": "example.test/x",
        "reportingInstance": "y",
    },
)
REVIEWS: Final = tuple(
    _sample(f"{group}/v1", kind, f"{kind.lower()}s", content, namespaced=False, lists=False)
    for group, kind, content in (
        ("authentication.k8s.io", "SelfSubjectReview", {}),
        ("authorization.k8s.io", "SelfSubjectAccessReview", {"spec": {"resourceAttributes": {}}}),
        ("authorization.k8s.io", "SelfSubjectRulesReview", {"spec": {"namespace": "default"}}),
    )
)
ALL: Final = (*NAMESPACED, *CLUSTER_WIDE, NEW_EVENTS, *REVIEWS)
DEFINITIONS: Final = _sample(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    {},
    namespaced=False,
    parts=_STATUS,
)

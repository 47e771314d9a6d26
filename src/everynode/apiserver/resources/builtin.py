"""Built-in kinds: one entry each, with its strategy."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from everynode.api.types import type_for
from everynode.apiserver.resources.custom_resources import CustomResourceDefinitionStrategy
from everynode.apiserver.resources.daemonsets import DaemonSetStrategy
from everynode.apiserver.resources.events_k8s_io import EventConversion
from everynode.apiserver.resources.events_leases_revisions import (
    ControllerRevisionStrategy,
    EventStrategy,
    LeaseStrategy,
)
from everynode.apiserver.resources.namespaces import NamespaceStrategy
from everynode.apiserver.resources.nodes import NodeStrategy
from everynode.apiserver.resources.pods import PodStrategy
from everynode.apiserver.resources.policies import (
    FlowSchemaStrategy,
    NetworkPolicyStrategy,
    ResourceQuotaStrategy,
)
from everynode.apiserver.resources.rbac_and_config import (
    RBAC_GROUP,
    ClusterRoleStrategy,
    ConfigMapStrategy,
    RoleBindingStrategy,
    RoleStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from everynode.apiserver.resources.registry import (
    STATUS_VERBS,
    VERBS,
    Kind,
    Subresource,
    status_subresource,
)
from everynode.apiserver.resources.services import ServiceStrategy
from everynode.apiserver.resources.strategy import ResourceStrategy
from everynode.apiserver.resources.workloads import (
    DeploymentStrategy,
    PodDisruptionBudgetStrategy,
    PriorityClassStrategy,
    ReplicaSetStrategy,
    SpecAndStatusStrategy,
)
from everynode.apiserver.verbs.scale import SCALE

_NO_DELETE_COLLECTION: Final = tuple(verb for verb in VERBS if verb != "deletecollection")
_RBAC_V1: Final = f"{RBAC_GROUP}/v1"
_CREATE: Final = ("create",)
_CONNECT: Final = ("create", "get")

_NAMESPACE_SUBRESOURCES: Final = (
    Subresource("finalize", "Namespace", ("update",)),
    status_subresource("Namespace"),
)
_POD_SUBRESOURCES: Final = (
    Subresource("attach", "PodAttachOptions", _CONNECT),
    Subresource("binding", "Binding", _CREATE),
    Subresource("eviction", "Eviction", _CREATE, group="policy", version="v1"),
    Subresource("exec", "PodExecOptions", _CONNECT),
    Subresource("log", "Pod", ("get",)),
    Subresource("portforward", "PodPortForwardOptions", _CONNECT),
    Subresource("resize", "Pod", STATUS_VERBS),
    status_subresource("Pod"),
)


def _kind(
    address: str, kind: str, plural: str, strategy: ResourceStrategy | None = None, **options: Any
) -> Kind:
    """Make a built-in kind; the address is its apiVersion."""
    group, _, version = address.rpartition("/")
    return Kind(
        group,
        version,
        kind,
        plural,
        kind.lower(),
        strategy=strategy or ResourceStrategy(),
        type_name=options.pop("type_name", type_for(group, version, kind)),
        **options,
    )


def _review(group: str, kind: str) -> Kind:
    return _kind(f"{group}/v1", kind, f"{kind.lower()}s", namespaced=False, verbs=_CREATE)


@cache
def builtin_kinds() -> tuple[Kind, ...]:
    """Return all built-in kinds: core first, then by group as kube-apiserver lists them."""
    return (*_core(), *_apps(), *_others(), *_policies())


def _core() -> tuple[Kind, ...]:
    cluster_scoped = {"namespaced": False}
    in_all = {"categories": ("all",)}
    return (
        _kind("v1", "Binding", "bindings", verbs=_CREATE),
        _kind("v1", "ConfigMap", "configmaps", ConfigMapStrategy(), short_names=("cm",)),
        _kind("v1", "Event", "events", EventStrategy(), short_names=("ev",)),
        _kind(
            "v1",
            "Namespace",
            "namespaces",
            NamespaceStrategy(),
            short_names=("ns",),
            verbs=_NO_DELETE_COLLECTION,
            subresources=_NAMESPACE_SUBRESOURCES,
            **cluster_scoped,
        ),
        _kind(
            "v1",
            "Node",
            "nodes",
            NodeStrategy(),
            short_names=("no",),
            subresources=(status_subresource("Node"),),
            **cluster_scoped,
        ),
        _kind(
            "v1",
            "Pod",
            "pods",
            PodStrategy(),
            short_names=("po",),
            subresources=_POD_SUBRESOURCES,
            **in_all,
        ),
        _kind(
            "v1",
            "ResourceQuota",
            "resourcequotas",
            ResourceQuotaStrategy(),
            short_names=("quota",),
            subresources=(status_subresource("ResourceQuota"),),
        ),
        _kind("v1", "Secret", "secrets", SecretStrategy()),
        _kind(
            "v1", "ServiceAccount", "serviceaccounts", ServiceAccountStrategy(), short_names=("sa",)
        ),
        _kind(
            "v1",
            "Service",
            "services",
            ServiceStrategy(),
            short_names=("svc",),
            subresources=(status_subresource("Service"),),
            **in_all,
        ),
    )


def _apps() -> tuple[Kind, ...]:
    return (
        _kind("apps/v1", "ControllerRevision", "controllerrevisions", ControllerRevisionStrategy()),
        *(
            _kind(
                "apps/v1",
                kind,
                f"{kind.lower()}s",
                strategy,
                short_names=(short,),
                categories=("all",),
                subresources=(*parts, status_subresource(kind)),
            )
            for kind, short, strategy, parts in (
                ("DaemonSet", "ds", DaemonSetStrategy(), ()),
                ("Deployment", "deploy", DeploymentStrategy(), (SCALE,)),
                ("ReplicaSet", "rs", ReplicaSetStrategy(), (SCALE,)),
            )
        ),
    )


def _others() -> tuple[Kind, ...]:
    return (
        _kind(
            "events.k8s.io/v1",
            "Event",
            "events",
            EventStrategy(new_style=True),
            short_names=("ev",),
            stored_as="events",
            conversion=EventConversion(),
        ),
        _review("authentication.k8s.io", "SelfSubjectReview"),
        _review("authorization.k8s.io", "SelfSubjectAccessReview"),
        _review("authorization.k8s.io", "SelfSubjectRulesReview"),
    )


def _policies() -> tuple[Kind, ...]:
    return (
        _kind(
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            "flowschemas",
            FlowSchemaStrategy(),
            namespaced=False,
            subresources=(status_subresource("FlowSchema"),),
        ),
        _kind(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "networkpolicies",
            NetworkPolicyStrategy(),
            short_names=("netpol",),
        ),
        _kind(
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            PodDisruptionBudgetStrategy(),
            short_names=("pdb",),
            subresources=(status_subresource("PodDisruptionBudget"),),
        ),
        _kind(
            _RBAC_V1,
            "ClusterRoleBinding",
            "clusterrolebindings",
            RoleBindingStrategy(),
            namespaced=False,
        ),
        _kind(_RBAC_V1, "ClusterRole", "clusterroles", ClusterRoleStrategy(), namespaced=False),
        _kind(_RBAC_V1, "RoleBinding", "rolebindings", RoleBindingStrategy()),
        _kind(_RBAC_V1, "Role", "roles", RoleStrategy()),
        _kind(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            CustomResourceDefinitionStrategy(),
            namespaced=False,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources=(status_subresource("CustomResourceDefinition"),),
        ),
        _kind(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            "priorityclasses",
            PriorityClassStrategy(),
            namespaced=False,
            short_names=("pc",),
        ),
        _kind("coordination.k8s.io/v1", "Lease", "leases", LeaseStrategy()),
        _kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", SpecAndStatusStrategy()),
    )

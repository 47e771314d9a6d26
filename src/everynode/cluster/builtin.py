"""The kinds that every cluster of ours has: one line each, and the rules that are its own."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from everynode.api.types import type_for
from everynode.cluster.access import (
    ClusterRoleRules,
    ConfigMapRules,
    RoleBindingRules,
    RoleRules,
    SecretRules,
    ServiceAccountRules,
)
from everynode.cluster.customresources import DefinitionRules
from everynode.cluster.daemonsets import DaemonSetRules
from everynode.cluster.events import EventsView
from everynode.cluster.kinds import STATUS_VERBS, VERBS, Kind, Subresource, status_of
from everynode.cluster.namespaces import NamespaceRules
from everynode.cluster.nodes import NodeRules
from everynode.cluster.pods import PodRules
from everynode.cluster.policies import NetworkPolicyRules, QuotaRules
from everynode.cluster.records import EventRules, LeaseRules, RevisionRules
from everynode.cluster.rules import Rules
from everynode.cluster.scale import PART as SCALE
from everynode.cluster.services import ServiceRules
from everynode.cluster.workloads import (
    BudgetRules,
    DeploymentRules,
    PriorityRules,
    ReplicaSetRules,
    SpecRules,
)

RBAC: Final = "rbac.authorization.k8s.io"
_NO_COLLECTION: Final = tuple(verb for verb in VERBS if verb != "deletecollection")
_CREATE: Final = ("create",)

_NAMESPACE_PARTS: Final = (
    Subresource("finalize", "Namespace", ("update",)),
    status_of("Namespace"),
)
_POD_PARTS: Final = (
    Subresource("binding", "Binding", _CREATE),
    Subresource("eviction", "Eviction", _CREATE, group="policy", version="v1"),
    Subresource("log", "Pod", ("get",)),
    Subresource("resize", "Pod", STATUS_VERBS),
    status_of("Pod"),
)


def _kind(address: str, kind: str, plural: str, rules: Rules | None = None, **options: Any) -> Kind:
    """A kind of the table of types; a slash in the address parts the group from the version."""
    group, _, version = address.rpartition("/")
    return Kind(
        group,
        version,
        kind,
        plural,
        kind.lower(),
        rules=rules or Rules(),
        type_name=options.pop("type_name", type_for(group, version, kind)),
        **options,
    )


def _review(group: str, kind: str) -> Kind:
    return _kind(f"{group}/v1", kind, f"{kind.lower()}s", namespaced=False, verbs=_CREATE)


@cache
def builtin() -> tuple[Kind, ...]:
    """All of them; core first, then by group as the real server lists them."""
    return (*_core(), *_apps(), *_others())


def _core() -> tuple[Kind, ...]:
    both = {"namespaced": False}
    everyone = {"categories": ("all",)}
    return (
        _kind("v1", "Binding", "bindings", verbs=_CREATE),
        _kind("v1", "ConfigMap", "configmaps", ConfigMapRules(), short_names=("cm",)),
        _kind("v1", "Event", "events", EventRules(), short_names=("ev",)),
        _kind(
            "v1",
            "Namespace",
            "namespaces",
            NamespaceRules(),
            short_names=("ns",),
            verbs=_NO_COLLECTION,
            subresources=_NAMESPACE_PARTS,
            **both,
        ),
        _kind(
            "v1",
            "Node",
            "nodes",
            NodeRules(),
            short_names=("no",),
            subresources=(status_of("Node"),),
            **both,
        ),
        _kind(
            "v1",
            "Pod",
            "pods",
            PodRules(),
            short_names=("po",),
            subresources=_POD_PARTS,
            **everyone,
        ),
        _kind(
            "v1",
            "ResourceQuota",
            "resourcequotas",
            QuotaRules(),
            short_names=("quota",),
            subresources=(status_of("ResourceQuota"),),
        ),
        _kind("v1", "Secret", "secrets", SecretRules()),
        _kind(
            "v1", "ServiceAccount", "serviceaccounts", ServiceAccountRules(), short_names=("sa",)
        ),
        _kind(
            "v1",
            "Service",
            "services",
            ServiceRules(),
            short_names=("svc",),
            subresources=(status_of("Service"),),
            **everyone,
        ),
    )


def _apps() -> tuple[Kind, ...]:
    return (
        _kind("apps/v1", "ControllerRevision", "controllerrevisions", RevisionRules()),
        *(
            _kind(
                "apps/v1",
                kind,
                f"{kind.lower()}s",
                rules,
                short_names=(short,),
                categories=("all",),
                subresources=(*parts, status_of(kind)),
            )
            for kind, short, rules, parts in (
                ("DaemonSet", "ds", DaemonSetRules(), ()),
                ("Deployment", "deploy", DeploymentRules(), (SCALE,)),
                ("ReplicaSet", "rs", ReplicaSetRules(), (SCALE,)),
            )
        ),
    )


def _others() -> tuple[Kind, ...]:
    return (
        _kind(
            "events.k8s.io/v1",
            "Event",
            "events",
            EventRules(new_style=True),
            short_names=("ev",),
            stored_as="events",
            view=EventsView(),
        ),
        _review("authentication.k8s.io", "SelfSubjectReview"),
        _review("authorization.k8s.io", "SelfSubjectAccessReview"),
        _review("authorization.k8s.io", "SelfSubjectRulesReview"),
        _kind(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "networkpolicies",
            NetworkPolicyRules(),
            short_names=("netpol",),
        ),
        _kind(
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            BudgetRules(),
            short_names=("pdb",),
            subresources=(status_of("PodDisruptionBudget"),),
        ),
        _kind(
            f"{RBAC}/v1",
            "ClusterRoleBinding",
            "clusterrolebindings",
            RoleBindingRules(),
            namespaced=False,
        ),
        _kind(f"{RBAC}/v1", "ClusterRole", "clusterroles", ClusterRoleRules(), namespaced=False),
        _kind(f"{RBAC}/v1", "RoleBinding", "rolebindings", RoleBindingRules()),
        _kind(f"{RBAC}/v1", "Role", "roles", RoleRules()),
        _kind(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            DefinitionRules(),
            namespaced=False,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources=(status_of("CustomResourceDefinition"),),
        ),
        _kind(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            "priorityclasses",
            PriorityRules(),
            namespaced=False,
            short_names=("pc",),
        ),
        _kind("coordination.k8s.io/v1", "Lease", "leases", LeaseRules()),
        _kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", SpecRules()),
    )

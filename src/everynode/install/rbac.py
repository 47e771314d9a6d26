"""RBAC of the controller: each rule with the reason why it is needed.

No rule reads a Secret, changes a Node or has a wildcard. A new request of the controller needs its
verb here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from everynode.api.keys import KRUISE_GROUP, NATIVE_GROUP
from everynode.install.metadata import Object, new_object, with_labels

LEASE: Final = "everynode"
RBAC_GROUP: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Verbs on one resource, and what they are needed for."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()  # resourceNames


class CommentedRule(dict[str, Any]):
    """A PolicyRule that keeps its reason, printed as a YAML comment."""

    why: str = ""


def _daemonset_rules(group: str, kind: str) -> tuple[PolicyRule, ...]:
    return (
        PolicyRule(group, "daemonsets", ("get", "list", "watch"), f"what is wanted: {kind}"),
        PolicyRule(group, "daemonsets/status", ("patch",), "report the progress of a rollout"),
        PolicyRule(
            group,
            "daemonsets/finalizers",
            ("update",),
            "own pods and revisions on clusters that protect owners from being blocked",
        ),
    )


ADVANCED_RULES: Final = _daemonset_rules(KRUISE_GROUP, "Advanced DaemonSets")
"""Needed in all namespaces when Advanced DaemonSets are served."""

CLUSTER_RULES: Final = (
    PolicyRule(
        "",
        "nodes",
        ("list", "watch"),
        "which nodes there are, and which of them can take a pod",
    ),
    PolicyRule(
        "",
        "pods",
        ("get", "list", "watch", "create", "patch", "delete"),
        "one pod on every node: created, updated in place, adopted, released, deleted",
    ),
    PolicyRule("", "pods/status", ("patch",), "readiness gates around updates in place and hooks"),
    PolicyRule("", "pods/resize", ("patch",), "new resources in place, without a restart"),
    PolicyRule(
        NATIVE_GROUP,
        "controllerrevisions",
        ("get", "list", "watch", "create", "patch", "delete"),
        "the history of templates: what to roll out, what to hold, what to go back to",
    ),
    PolicyRule("", "events", ("create", "patch"), "Events of the DaemonSet"),
)
"""Needed in all namespaces for both kinds."""

NATIVE_RULES: Final = _daemonset_rules(NATIVE_GROUP, "native DaemonSets, with --native")
"""Needed in all namespaces when native DaemonSets are served."""

OWN_NAMESPACE_RULES: Final = (
    PolicyRule(
        "coordination.k8s.io",
        "leases",
        ("get", "patch"),
        "leader election of the replicas",
        names=(LEASE,),
    ),
    PolicyRule(
        "coordination.k8s.io",
        "leases",
        ("create",),
        "the first replica creates the Lease; RBAC cannot restrict create by name",
    ),
)
"""Needed in the controller's own namespace only."""

DASHBOARD_RULES: Final = (
    PolicyRule(
        "authentication.k8s.io",
        "tokenreviews",
        ("create",),
        "whose token a viewer of the dashboard has",
    ),
    PolicyRule(
        "authorization.k8s.io",
        "subjectaccessreviews",
        ("create",),
        "what that user may see",
    ),
    PolicyRule("", "events", ("list",), "the story of a node"),
)
"""Needed in all namespaces when the dashboard is served."""

_DASHBOARD_USERS: Final = (
    PolicyRule(
        "", "nodes", ("list",), "a rollout is shown node by node; the built-in view lacks this"
    ),
)
_VIEW: Final = (
    PolicyRule(
        KRUISE_GROUP,
        "daemonsets",
        ("get", "list", "watch"),
        "users who may view native DaemonSets may view these",
    ),
    PolicyRule(KRUISE_GROUP, "daemonsets/status", ("get",), "and the progress of their rollout"),
)
_EDIT: Final = (
    PolicyRule(
        KRUISE_GROUP,
        "daemonsets",
        ("create", "delete", "deletecollection", "patch", "update"),
        "users who may change native DaemonSets may change these",
    ),
)


def rules(*, native: bool, advanced: bool = True) -> tuple[PolicyRule, ...]:
    """Everything the controller may do in all namespaces."""
    return (ADVANCED_RULES if advanced else ()) + CLUSTER_RULES + (NATIVE_RULES if native else ())


def rbac_objects(namespace: str, *, native: bool) -> list[Object]:
    """Build the controller's ServiceAccount, its roles and bindings, and the roles of users."""
    return [
        {
            **new_object("v1", "ServiceAccount", "everynode", namespace=namespace),
            # Only the controller's pods mount the token.
            "automountServiceAccountToken": False,
        },
        _role("ClusterRole", "everynode", rules(native=native)),
        _binding("ClusterRoleBinding", "ClusterRole", account_namespace=namespace),
        _role("Role", "everynode", OWN_NAMESPACE_RULES, namespace=namespace),
        _binding("RoleBinding", "Role", account_namespace=namespace, namespace=namespace),
        *user_roles(),
    ]


def dashboard_objects(namespace: str) -> list[Object]:
    """Build what the dashboard needs besides, and a role for those who look at it."""
    name = "everynode-dashboard"
    return [
        _role("ClusterRole", name, DASHBOARD_RULES),
        _binding("ClusterRoleBinding", "ClusterRole", account_namespace=namespace, name=name),
        _role("ClusterRole", "everynode-dashboard-viewer", _DASHBOARD_USERS),
    ]


def user_roles() -> list[Object]:
    """Build the roles that add Advanced DaemonSets to the built-in view, edit and admin."""
    view = _role("ClusterRole", "everynode-daemonsets-view", _VIEW)
    edit = _role("ClusterRole", "everynode-daemonsets-edit", _EDIT)
    # The built-in edit includes view, and admin includes edit.
    return [
        with_labels(view, {f"{RBAC_GROUP}/aggregate-to-view": "true"}),
        with_labels(edit, {f"{RBAC_GROUP}/aggregate-to-edit": "true"}),
    ]


def _role(kind: str, name: str, given: tuple[PolicyRule, ...], *, namespace: str = "") -> Object:
    return {
        **new_object(f"{RBAC_GROUP}/v1", kind, name, namespace=namespace),
        "rules": [_as_object(rule) for rule in given],
    }


def _as_object(rule: PolicyRule) -> CommentedRule:
    commented = CommentedRule(apiGroups=[rule.group], resources=[rule.resource])
    if rule.names:
        commented["resourceNames"] = list(rule.names)
    commented["verbs"] = list(rule.verbs)
    commented.why = rule.why
    return commented


def _binding(
    kind: str, role: str, *, account_namespace: str, namespace: str = "", name: str = "everynode"
) -> Object:
    return {
        **new_object(f"{RBAC_GROUP}/v1", kind, name, namespace=namespace),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": role, "name": name},
        "subjects": [
            {"kind": "ServiceAccount", "name": "everynode", "namespace": account_namespace}
        ],
    }

"""What the controller may do, and why: each rule beside the reason it is there.

Nothing here reads a secret, changes a node or holds a wildcard. Whoever adds a request to the
controller adds its verb here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from everynode.api.keys import KRUISE_GROUP, NATIVE_GROUP
from everynode.cli.manifests.names import Object, labelled, named

LEASE: Final = "everynode"
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on one resource, and what they are needed for."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()  # only the objects called so


class Reasoned(dict[str, Any]):
    """A rule as Kubernetes has it, which remembers its reason for whoever prints it."""

    why: str = ""


def _daemonset_rules(group: str, kind: str) -> tuple[Rule, ...]:
    return (
        Rule(group, "daemonsets", ("get", "list", "watch"), f"what is wanted: {kind}"),
        Rule(group, "daemonsets/status", ("patch",), "say how far a rollout is"),
        Rule(
            group,
            "daemonsets/finalizers",
            ("update",),
            "own pods and revisions on clusters that protect owners from being blocked",
        ),
    )


ADVANCED: Final = _daemonset_rules(KRUISE_GROUP, "Advanced DaemonSets")
"""Needed in all namespaces when Advanced DaemonSets are served."""

EVERYWHERE: Final = (
    Rule(
        "",
        "nodes",
        ("list", "watch"),
        "which nodes there are, and which of them can take a pod",
    ),
    Rule(
        "",
        "pods",
        ("get", "list", "watch", "create", "patch", "delete"),
        "one pod on every node: created, updated in place, adopted, released, deleted",
    ),
    Rule("", "pods/status", ("patch",), "readiness gates around updates in place and hooks"),
    Rule("", "pods/resize", ("patch",), "new resources in place, without a restart"),
    Rule(
        NATIVE_GROUP,
        "controllerrevisions",
        ("get", "list", "watch", "create", "patch", "delete"),
        "the history of templates: what to roll out, what to hold, what to go back to",
    ),
    Rule("", "events", ("create", "patch"), "tell people what happened, beside the DaemonSet"),
)
"""Needed in all namespaces, whatever is served."""

NATIVE: Final = _daemonset_rules(NATIVE_GROUP, "native DaemonSets, with --native")
"""Needed in all namespaces when native DaemonSets are served."""

AT_HOME: Final = (
    Rule(
        "coordination.k8s.io",
        "leases",
        ("get", "patch"),
        "one of the replicas leads",
        names=(LEASE,),
    ),
    Rule(
        "coordination.k8s.io",
        "leases",
        ("create",),
        "the first of them makes the lease; a name cannot be asked for here",
    ),
)
"""Needed in the controller's own namespace only."""

_VIEW: Final = (
    Rule(
        KRUISE_GROUP,
        "daemonsets",
        ("get", "list", "watch"),
        "whoever may look at native DaemonSets may look at these",
    ),
    Rule(KRUISE_GROUP, "daemonsets/status", ("get",), "and at how far their rollout is"),
)
_EDIT: Final = (
    Rule(
        KRUISE_GROUP,
        "daemonsets",
        ("create", "delete", "deletecollection", "patch", "update"),
        "whoever may change native DaemonSets may change these",
    ),
)


def rules(*, native: bool, advanced: bool = True) -> tuple[Rule, ...]:
    """Everything the controller may do in all namespaces."""
    return (ADVANCED if advanced else ()) + EVERYWHERE + (NATIVE if native else ())


def access(namespace: str, *, native: bool) -> list[Object]:
    """Build the controller's account, its roles and their bindings, and the roles of users."""
    return [
        {
            **named("v1", "ServiceAccount", "everynode", namespace=namespace),
            # Only the controller's pods ask for the token.
            "automountServiceAccountToken": False,
        },
        _role("ClusterRole", "everynode", rules(native=native)),
        _binding("ClusterRoleBinding", "ClusterRole", account_namespace=namespace),
        _role("Role", "everynode", AT_HOME, namespace=namespace),
        _binding("RoleBinding", "Role", account_namespace=namespace, namespace=namespace),
        *user_roles(),
    ]


def user_roles() -> list[Object]:
    """Build the roles that widen the built-in view, edit and admin by Advanced DaemonSets."""
    view = _role("ClusterRole", "everynode-daemonsets-view", _VIEW)
    edit = _role("ClusterRole", "everynode-daemonsets-edit", _EDIT)
    # The built-in view is itself part of edit, and edit of admin.
    return [
        labelled(view, {f"{_RBAC}/aggregate-to-view": "true"}),
        labelled(edit, {f"{_RBAC}/aggregate-to-edit": "true"}),
    ]


def _role(kind: str, name: str, given: tuple[Rule, ...], *, namespace: str = "") -> Object:
    return {
        **named(f"{_RBAC}/v1", kind, name, namespace=namespace),
        "rules": [_as_object(rule) for rule in given],
    }


def _as_object(rule: Rule) -> Reasoned:
    made = Reasoned(apiGroups=[rule.group], resources=[rule.resource])
    if rule.names:
        made["resourceNames"] = list(rule.names)
    made["verbs"] = list(rule.verbs)
    made.why = rule.why
    return made


def _binding(kind: str, role: str, *, account_namespace: str, namespace: str = "") -> Object:
    return {
        **named(f"{_RBAC}/v1", kind, "everynode", namespace=namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": "everynode"},
        "subjects": [
            {"kind": "ServiceAccount", "name": "everynode", "namespace": account_namespace}
        ],
    }

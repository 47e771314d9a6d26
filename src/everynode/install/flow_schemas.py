"""FlowSchemas: at which priority the API server handles the controller's requests.

Without them a service account outside kube-system is served at the lowest level of all workloads
(workload-low), its Lease included: other clients' lists can cost it the lead. With them it is
handled as kube-controller-manager is.
"""

from __future__ import annotations

from typing import Any, Final

from everynode.install.metadata import Object, new_object

_API_VERSION: Final = "flowcontrol.apiserver.k8s.io/v1"
# Between those that come with a cluster: workload-leader-election has 200, the service accounts of
# kube-system 900 and all others 9000. The first one that matches a request decides.
_LEASE_PRECEDENCE: Final = 250
_PRECEDENCE: Final = 950


def flow_schemas(namespace: str) -> list[Object]:
    """Build the FlowSchemas of the controller's ServiceAccount in this namespace."""
    lease = {
        "verbs": ["get", "create", "patch"],
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "namespaces": [namespace],
    }
    everything = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "clusterScope": True,
        "namespaces": ["*"],
    }
    return [
        _schema(
            "everynode-leader-election", "leader-election", _LEASE_PRECEDENCE, namespace, lease
        ),
        _schema("everynode", "workload-high", _PRECEDENCE, namespace, everything),
    ]


def _schema(name: str, level: str, precedence: int, namespace: str, rule: dict[str, Any]) -> Object:
    account = {"name": "everynode", "namespace": namespace}
    subject = {"kind": "ServiceAccount", "serviceAccount": account}
    return {
        **new_object(_API_VERSION, "FlowSchema", name),
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [subject], "resourceRules": [rule]}],
        },
    }

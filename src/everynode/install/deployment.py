"""Deployment of the controller, with its quota, network policy and disruption budget."""

from __future__ import annotations

from typing import Final

from everynode.install.metadata import LABELS, POD_LABELS, Object, new_object

METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 8081
DASHBOARD_PORT: Final = 8082
REPLICAS: Final = 2  # one leads, one stands by with filled caches
_USER: Final = 65532  # no user of any node has this id; the image uses it too
_PRIORITY: Final = "system-cluster-critical"


def controller_objects(
    namespace: str, *, image: str, native: bool, dashboard: bool = False
) -> list[Object]:
    """Build the Deployment and the objects that protect it."""
    return [
        _quota(namespace),
        _network_policy(namespace),
        _budget(namespace),
        _deployment(namespace, image, run_arguments(native=native, dashboard=dashboard)),
    ]


def _quota(namespace: str) -> Object:
    """Allow critical pods here: some clusters (GKE) refuse them where no quota names them."""
    return {
        **new_object("v1", "ResourceQuota", "everynode-critical-pods", namespace=namespace),
        "spec": {
            "hard": {"pods": "10"},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": [_PRIORITY]}
                ]
            },
        },
    }


def _network_policy(namespace: str) -> Object:
    """Allow only the scraping of metrics; probes come from the node and are always allowed."""
    return {
        **new_object("networking.k8s.io/v1", "NetworkPolicy", "everynode", namespace=namespace),
        "spec": {
            "podSelector": {"matchLabels": POD_LABELS},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": METRICS_PORT}]}],
        },
    }


def _budget(namespace: str) -> Object:
    """Let a drain evict one replica at a time, and an unhealthy one always."""
    return {
        **new_object("policy/v1", "PodDisruptionBudget", "everynode", namespace=namespace),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": POD_LABELS},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _deployment(namespace: str, image: str, arguments: list[str]) -> Object:
    return {
        **new_object("apps/v1", "Deployment", "everynode", namespace=namespace),
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": POD_LABELS},
            # The new replica is ready, with filled caches, before an old one is deleted.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": {
                    "labels": LABELS,
                    "annotations": {
                        "prometheus.io/scrape": "true",
                        "prometheus.io/port": str(METRICS_PORT),
                    },
                },
                "spec": _pod(image, arguments),
            },
        },
    }


def _pod(image: str, arguments: list[str]) -> Object:
    return {
        "serviceAccountName": "everynode",
        "automountServiceAccountToken": True,
        # A cluster depends on node agents: their controller must start when nodes are full.
        "priorityClassName": _PRIORITY,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {
                "key": "node-role.kubernetes.io/control-plane",
                "operator": "Exists",
                "effect": "NoSchedule",
            },
        ],
        "topologySpreadConstraints": [
            _spread_over("kubernetes.io/hostname"),
            _spread_over("topology.kubernetes.io/zone"),
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # A leader waits for the answers to its last writes before it releases the Lease.
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(image, arguments)],
    }


def _spread_over(key: str) -> Object:
    """Spread the replicas over a topology key if possible."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": POD_LABELS},
        "matchLabelKeys": ["pod-template-hash"],
    }


def run_arguments(*, native: bool, dashboard: bool = False) -> list[str]:
    """Return the arguments of the container."""
    return [
        "run",
        f"--metrics-address=:{METRICS_PORT}",
        f"--health-address=:{HEALTH_PORT}",
        *(["--native"] if native else []),
        # On the pod's loopback: kubectl port-forward reaches it, and nothing else does.
        *([f"--dashboard-address=127.0.0.1:{DASHBOARD_PORT}"] if dashboard else []),
    ]


def _container(image: str, arguments: list[str]) -> Object:
    return {
        "name": "everynode",
        "image": image,
        "args": arguments,
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        # No limit on CPU: a throttled leader loses its Lease under load.
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "startupProbe": _probe("/livez", period=2, failures=30),
        "livenessProbe": _probe("/livez", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
    }


def _probe(path: str, *, period: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": period,
        "timeoutSeconds": 5 if period > 5 else 2,
        "failureThreshold": failures,
    }

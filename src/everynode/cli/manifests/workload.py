"""The controller as it runs in a cluster: a Deployment and what protects it."""

from __future__ import annotations

from typing import Final

from everynode.cli.manifests.names import LABELS, SELECTOR, Object, named

METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 8081
REPLICAS: Final = 2  # one works, one stands by with warm caches
_USER: Final = 65532  # nobody's on any node; the image runs as it too
_PRIORITY: Final = "system-cluster-critical"


def workload(namespace: str, *, image: str, native: bool) -> list[Object]:
    """Build everything that runs the controller in this namespace."""
    return [
        _quota(namespace),
        _network_policy(namespace),
        _budget(namespace),
        _deployment(namespace, image=image, native=native),
    ]


def _quota(namespace: str) -> Object:
    """Allow critical pods here: some clusters (GKE) refuse them where no quota names them."""
    return {
        **named("v1", "ResourceQuota", "everynode-critical-pods", namespace=namespace),
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
    """Let nothing in but the scraping of metrics; probes come from the node and always pass."""
    return {
        **named("networking.k8s.io/v1", "NetworkPolicy", "everynode", namespace=namespace),
        "spec": {
            "podSelector": {"matchLabels": SELECTOR},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": METRICS_PORT}]}],
        },
    }


def _budget(namespace: str) -> Object:
    """Let a drain take one of the replicas at a time, and a broken one whenever it wants."""
    return {
        **named("policy/v1", "PodDisruptionBudget", "everynode", namespace=namespace),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": SELECTOR},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _deployment(namespace: str, *, image: str, native: bool) -> Object:
    return {
        **named("apps/v1", "Deployment", "everynode", namespace=namespace),
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": SELECTOR},
            # The new one is ready, its caches filled, before an old one goes.
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
                "spec": _pod(image, native=native),
            },
        },
    }


def _pod(image: str, *, native: bool) -> Object:
    return {
        "serviceAccountName": "everynode",
        "automountServiceAccountToken": True,
        # Node agents are what the rest of a cluster stands on; when nodes are full their
        # controller must not be what waits.
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
            _apart("kubernetes.io/hostname"),
            _apart("topology.kubernetes.io/zone"),
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # A leader waits for its last writes to be answered before it lets go of the lease.
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(image, native=native)],
    }


def _apart(key: str) -> Object:
    """Spread the replicas as far as the cluster has room, and no further."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": SELECTOR},
        "matchLabelKeys": ["pod-template-hash"],
    }


def run_arguments(*, native: bool) -> list[str]:
    """Return what the container is started with."""
    return [
        "run",
        f"--metrics-address=:{METRICS_PORT}",
        f"--health-address=:{HEALTH_PORT}",
        *(["--native"] if native else []),
    ]


def _container(image: str, *, native: bool) -> Object:
    return {
        "name": "everynode",
        "image": image,
        "args": run_arguments(native=native),
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        # No limit on CPU: a throttled leader loses its lease when it is needed most.
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

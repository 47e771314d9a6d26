"""What decoding costs: time per watch event and memory per cached pod and node.

    python -m bench.decode [--pods 5000] [--json]

The pods are as a node agent's pods are on a real cluster: about 7 KB of JSON with managedFields,
two containers, a service account token volume under a random name, and names, uids, addresses,
nodes, versions and times of their own.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from bench.process_usage import own_resident_bytes
from everynode.api.objects import Node, Pod
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import split_event

EVENT_LIMIT_US = 50.0
POD_LIMIT_BYTES = 2500.0


def stamp(chance: random.Random, base: int = 1_760_000_000) -> str:
    moment = time.gmtime(base + chance.randrange(1_000_000))
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)


def identifier(chance: random.Random) -> str:
    text = f"{chance.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def suffix(chance: random.Random, length: int = 5) -> str:
    return "".join(chance.choices("bcdfghjklmnpqrstvwxz2456789", k=length))


OWNER = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "DaemonSet",
    "name": "node-agent",
    "uid": "5e9b3c60-1f0e-4b8a-9a43-2d0f6f1c7a55",
    "controller": True,
    "blockOwnerDeletion": True,
}


def metadata(chance: random.Random, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "generateName": "node-agent-",
        "namespace": "observability",
        "uid": identifier(chance),
        "resourceVersion": str(chance.randrange(10**8, 10**9)),
        "generation": 1,
        "creationTimestamp": stamp(chance),
        "labels": {
            "app.kubernetes.io/component": "agent",
            "app.kubernetes.io/instance": "node-agent",
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/name": "node-agent",
            "app.kubernetes.io/version": "2.14.3",
            "controller-revision-hash": "7c6f5d8b94",
            "pod-template-generation": "7",
            "helm.sh/chart": "node-agent-2.14.3",
        },
        "annotations": {
            "checksum/config": f"{7:064x}",
            "prometheus.io/port": "9100",
            "prometheus.io/scrape": "true",
        },
        "ownerReferences": [OWNER],
        "managedFields": managed_fields(chance),
    }


def managed_fields(chance: random.Random) -> list[dict[str, Any]]:
    container: dict[str, Any] = {
        ".": {},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:resources": {".": {}, "f:limits": {".": {}, "f:memory": {}}, "f:requests": {".": {}}},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
        "f:volumeMounts": {".": {}, 'k:{"mountPath":"/host"}': {".": {}, "f:mountPath": {}}},
    }
    conditions: dict[str, Any] = {
        f'k:{{"type":"{kind}"}}': {".": {}, "f:lastTransitionTime": {}, "f:status": {}}
        for kind in ("ContainersReady", "Initialized", "Ready")
    }
    return [
        {
            "manager": "everynode",
            "operation": "Update",
            "apiVersion": "v1",
            "time": stamp(chance),
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}}, "f:ownerReferences": {".": {}}},
                "f:spec": {"f:containers": {'k:{"name":"agent"}': container}, "f:hostPID": {}},
            },
        },
        {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": stamp(chance),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": conditions, "f:podIP": {}}},
            "subresource": "status",
        },
    ]


RESOURCES = {
    "agent": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "200m", "memory": "256Mi"}},
    "reloader": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m", "memory": "32Mi"}},
}


def container(name: str, token: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": f"registry.example.com/observability/{name}:v2.14.3",
        "args": ["--config=/etc/agent/config.yaml", "--log-level=info", "--storage=/var/lib/agent"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "resources": RESOURCES[name],
        "volumeMounts": [
            {"mountPath": "/host", "name": "root", "readOnly": True},
            {"mountPath": "/etc/agent", "name": "config"},
            {
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "name": token,
                "readOnly": True,
            },
        ],
        "livenessProbe": {
            "httpGet": {"path": "/-/healthy", "port": 9100, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
    }


def spec(chance: random.Random, node: str) -> dict[str, Any]:
    token = f"kube-api-access-{suffix(chance)}"
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    pressures = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    return {
        "volumes": [
            {"name": "root", "hostPath": {"path": "/", "type": ""}},
            {"name": "config", "configMap": {"name": "node-agent", "defaultMode": 420}},
            {
                "name": token,
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt"}},
                    ],
                    "defaultMode": 420,
                },
            },
        ],
        "containers": [container("agent", token), container("reloader", token)],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "serviceAccountName": "node-agent",
        "serviceAccount": "node-agent",
        "nodeName": node,
        "hostNetwork": True,
        "hostPID": True,
        "securityContext": {},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"operator": "Exists"},
            *(
                {
                    "key": f"node.kubernetes.io/{pressure}",
                    "operator": "Exists",
                    "effect": "NoSchedule",
                }
                for pressure in pressures
            ),
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
    }


CONDITIONS = (
    "PodReadyToStartContainers",
    "InPlaceUpdateReady",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)


def status(chance: random.Random, address: str) -> dict[str, Any]:
    return {
        "observedGeneration": 1,
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "observedGeneration": 1,
                "lastProbeTime": None,
                "lastTransitionTime": stamp(chance),
            }
            for kind in CONDITIONS
        ],
        "hostIP": address,
        "hostIPs": [{"ip": address}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": stamp(chance),
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": stamp(chance)}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": f"registry.example.com/observability/{name}:v2.14.3",
                "imageID": f"registry.example.com/observability/{name}@sha256:{len(name):064x}",
                "containerID": f"containerd://{chance.getrandbits(256):064x}",
                "started": True,
                "allocatedResources": RESOURCES[name]["requests"],
                "resources": RESOURCES[name],
            }
            for name in RESOURCES
        ],
        "qosClass": "Burstable",
    }


def pod(chance: random.Random, index: int) -> dict[str, Any]:
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata(chance, f"node-agent-{suffix(chance)}{index}"),
        "spec": spec(chance, f"ip-{address.replace('.', '-')}.eu-west-1.compute.internal"),
        "status": status(chance, address),
    }


def lines_of(count: int, make: Callable[[random.Random, int], dict[str, Any]]) -> list[bytes]:
    chance = random.Random(7)
    return [
        json.dumps(
            {"type": "MODIFIED", "object": make(chance, index)}, separators=(",", ":")
        ).encode()
        for index in range(count)
    ]


def node(chance: random.Random, index: int) -> dict[str, Any]:
    name = f"ip-10-{index >> 16 & 255}-{index >> 8 & 255}-{index & 255}.eu-west-1.compute.internal"
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": identifier(chance),
            "resourceVersion": str(chance.randrange(10**8, 10**9)),
            "creationTimestamp": stamp(chance),
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/instance-type": "m6i.2xlarge",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "m6i.2xlarge",
                "nodepool": chance.choice(("general", "batch", "gpu")),
                "topology.kubernetes.io/region": "eu-west-1",
                "topology.kubernetes.io/zone": f"eu-west-1{chance.choice('abc')}",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "300"},
        },
        "spec": {"podCIDR": f"10.{index & 255}.0.0/24", "providerID": f"aws:///{name}"},
        "status": {
            "conditions": [
                {
                    "type": kind,
                    "status": "True" if kind == "Ready" else "False",
                    "lastHeartbeatTime": stamp(chance),
                    "lastTransitionTime": stamp(chance),
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                }
                for kind in kinds
            ],
            "images": [
                {"names": [f"registry.example.com/{n}@sha256:{n:064x}"], "sizeBytes": 10**7 + n}
                for n in range(30)
            ],
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "58"},
        },
    }


def microseconds_each(lines: list[bytes], decode: Callable[[bytes], object]) -> float:
    """The best of five passes: the machine is shared, and only ever adds."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for line in lines:
            decode(line)
        best = min(best, time.perf_counter() - start)
    return best / len(lines) * 1e6


def bytes_each(lines: list[bytes], decode: Callable[[bytes], object]) -> float:
    """What stays allocated for each object held, the shared tables included."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    held = [decode(line) for line in lines]
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / len(held)


def resident_each(lines: list[bytes], decode: Callable[[bytes], object]) -> float:
    """The growth of the process for each object held, waste of the allocator included."""
    gc.collect()
    before = own_resident_bytes()
    held = [decode(line) for line in lines]
    grown = own_resident_bytes() - before
    return grown / len(held)


def read_with(decoder: Decoder[Any]) -> Callable[[bytes], object]:
    """How a watch reads one of its lines."""
    return lambda line: decoder.one(split_event(line)[1])


def measure(count: int) -> dict[str, float]:
    pods, nodes = lines_of(count, pod), lines_of(count, node)
    read_pod, read_node = read_with(Decoder(Pod)), read_with(Decoder(Node))
    # Memory first, on fresh tables: what was freed before would hide what is needed.
    resident_pod = resident_each(pods, read_pod)
    return {
        "pod_json_bytes": sum(map(len, pods)) / len(pods),
        "pod_resident_bytes": resident_pod,
        "pod_bytes": bytes_each(pods, read_pod),
        "pod_event_us": microseconds_each(pods, read_pod),
        "node_json_bytes": sum(map(len, nodes)) / len(nodes),
        "node_bytes": bytes_each(nodes, read_node),
        "node_event_us": microseconds_each(nodes, read_node),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pods", type=int, default=5000, help="how many objects to decode")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = measure(options.pods)
    if options.json:
        print(json.dumps({name: round(value, 1) for name, value in figures.items()}))
        return
    limits = {"pod_event_us": EVENT_LIMIT_US, "pod_bytes": POD_LIMIT_BYTES}
    for name, value in figures.items():
        limit = f"  (must: ≤ {limits[name]:.0f})" if name in limits else ""
        print(f"{name:22} {value:10.1f}{limit}")


if __name__ == "__main__":
    main()

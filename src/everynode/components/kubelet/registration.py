"""Node registration: the Node object of a simulated node, and its conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from everynode.api import types
from everynode.api.times import format_time

Object = dict[str, Any]
ConditionRow = tuple[str, str, str, str]  # type, status, reason, message

KUBELET_VERSION: Final = types.KUBERNETES
OS_IMAGE: Final = "Everynode simulated node"  # commands know simulated nodes by it
FIRST_REGION: Final = "local"
MAX_NODES: Final = 16384  # the number of /24 networks in 10.64.0.0/10
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The size of every simulated node."""

    cpus: int = 8
    memory_gib: int = 32
    pods: int = 110
    instance_type: str = "everynode.large"


STANDARD_MACHINE: Final = Machine()


def node_name(index: int, total: int) -> str:
    """The name of a node by its index, padded so that the names of `total` nodes sort."""
    return f"node-{index + 1:0{max(4, len(str(total)))}d}"


def host_address(index: int) -> str:
    """The InternalIP of a node by its index."""
    host = index + 1
    return f"172.{16 + (host >> 16)}.{(host >> 8) & 255}.{host & 255}"


def pod_network(index: int) -> str:
    """The first three bytes of a node's podCIDR, by its index."""
    return f"10.{64 + (index >> 8)}.{index & 255}."


def node_object(name: str, index: int, *, zone: str, now: float, machine: Machine) -> Object:
    """A new Node as its kubelet registers it: Ready."""
    network = pod_network(index) + "0/24"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(name, zone, machine)},
        "spec": {
            "podCIDR": network,
            "podCIDRs": [network],
            "providerID": f"everynode://{zone}/{name}",
        },
        "status": {
            **node_status(name, index, machine=machine),
            "conditions": healthy_conditions(now),
        },
    }


def _labels(name: str, zone: str, machine: Machine) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.instance_type,
        "topology.kubernetes.io/region": FIRST_REGION,
        "topology.kubernetes.io/zone": zone,
    }


def node_status(name: str, index: int, *, machine: Machine) -> Object:
    """The part of a node's status that does not change."""
    memory = machine.memory_gib * _KIB * _KIB
    capacity = {
        "cpu": str(machine.cpus),
        "ephemeral-storage": "102400Mi",
        "memory": f"{memory}Ki",
        "pods": str(machine.pods),
    }
    # A kubelet reserves some memory for itself.
    allocatable = {**capacity, "memory": f"{memory - 100 * _KIB}Ki"}
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": [
            {"type": "InternalIP", "address": host_address(index)},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "containerd://2.0.0",
            "kernelVersion": "6.1.0",
            "kubeProxyVersion": "",
            "kubeletVersion": KUBELET_VERSION,
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": OS_IMAGE,
            "systemUUID": "",
        },
    }


def healthy_conditions(now: float) -> list[Object]:
    """The conditions of a healthy node."""
    rows = [condition_row(kind, under_pressure=False) for kind in PRESSURE_REASONS]
    rows.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    return [write_condition(*row, now=now, since=now) for row in rows]


PRESSURE_REASONS: Final = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "KubeletHasInsufficientMemory", "memory"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "KubeletHasDiskPressure", "disk"),
    "PIDPressure": ("KubeletHasSufficientPID", "KubeletHasInsufficientPID", "PID"),
}


def condition_row(kind: str, *, under_pressure: bool) -> ConditionRow:
    """A pressure condition."""
    without, under, resource = PRESSURE_REASONS[kind]
    if kind == "DiskPressure":
        text = f"kubelet has {'' if under_pressure else 'no '}disk pressure"
    else:
        text = (
            f"kubelet has {'insufficient' if under_pressure else 'sufficient'} {resource} available"
        )
    return kind, "True" if under_pressure else "False", under if under_pressure else without, text


def write_condition(
    kind: str, status: str, reason: str, message: str, *, now: float, since: float
) -> Object:
    """A node condition as JSON."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": format_time(now),
        "lastTransitionTime": format_time(since),
    }

"""Resources: whether a pod fits on a node by cpu, memory, other resources, pods and host ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from everynode.api import resources
from everynode.api.resources import PODS, resource_order
from everynode.components.objects import FullContainer, FullPod

Port = tuple[str, str, int]  # address, protocol, number

ANY_ADDRESS: Final = "0.0.0.0"
PORTS_TAKEN: Final = "node(s) didn't have free ports for the requested pod ports"


@dataclass(frozen=True, slots=True)
class PodRequests:
    """The resources that a pod requests: cpu in thousandths, all others in whole units."""

    amounts: dict[str, int]
    ports: tuple[Port, ...] = ()


def pod_requests(pod: FullPod) -> PodRequests:
    """The resources that the scheduler has to find for a pod."""
    return PodRequests(resources.pod_requests(pod.spec), _ports(pod.spec.containers))


def _ports(containers: tuple[FullContainer, ...]) -> tuple[Port, ...]:
    return tuple(
        (port.host_ip or ANY_ADDRESS, port.protocol, port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port
    )


@dataclass(slots=True)
class AllocatedResources:
    """The resources that the pods of one node request together."""

    amounts: dict[str, int] = field(default_factory=dict)
    ports: dict[Port, int] = field(default_factory=dict)
    pods: int = 0

    def add(self, requests: PodRequests) -> None:
        """Add the requests of a pod."""
        self._change(requests, 1)

    def remove(self, requests: PodRequests) -> None:
        """Subtract the requests of a pod."""
        self._change(requests, -1)

    def copy(self) -> AllocatedResources:
        """A copy that can be changed."""
        return AllocatedResources(dict(self.amounts), dict(self.ports), self.pods)

    def _change(self, requests: PodRequests, sign: int) -> None:
        self.pods += sign
        for name, amount in requests.amounts.items():
            self.amounts[name] = self.amounts.get(name, 0) + sign * amount
        for port in requests.ports:
            left = self.ports.get(port, 0) + sign
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]


def insufficient_resources(
    requests: PodRequests, allocated: AllocatedResources, allocatable: Mapping[str, int]
) -> list[str]:
    """The resources of which too little is left, `pods` included, in kube-scheduler's order."""
    insufficient = []
    if allocated.pods + 1 > allocatable.get(PODS, 0):
        insufficient.append(PODS)
    for name in sorted(requests.amounts, key=resource_order):
        wanted = requests.amounts[name]
        if wanted and wanted > allocatable.get(name, 0) - allocated.amounts.get(name, 0):
            insufficient.append(name)
    return insufficient


def fit_errors(
    requests: PodRequests, allocated: AllocatedResources, allocatable: Mapping[str, int]
) -> list[str]:
    """Why a pod does not fit, in kube-scheduler's words; empty if it fits."""
    if requests.ports and ports_conflict(requests.ports, allocated.ports):
        return [PORTS_TAKEN]
    return [
        insufficient_message(name)
        for name in insufficient_resources(requests, allocated, allocatable)
    ]


def insufficient_message(name: str) -> str:
    """kube-scheduler's message for an insufficient resource."""
    return "Too many pods" if name == PODS else f"Insufficient {name}"


def ports_conflict(wanted: Iterable[Port], taken: Mapping[Port, int]) -> bool:
    """Whether one of these host ports is in use; 0.0.0.0 conflicts with every address."""
    for address, protocol, number in wanted:
        for other, other_protocol, other_number in taken:
            same = number == other_number and protocol == other_protocol
            if same and (address == other or ANY_ADDRESS in (address, other)):
                return True
    return False

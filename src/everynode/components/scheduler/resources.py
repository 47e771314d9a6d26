"""Resources: whether a pod fits on a node by cpu, memory, other resources, pods and host ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from everynode.api.quantity import QuantityError, parse_quantity
from everynode.components.objects import FullContainer, FullPod

Amounts = Mapping[str, str | int | float]
Port = tuple[str, str, int]  # address, protocol, number

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
ANY_ADDRESS: Final = "0.0.0.0"
PORTS_TAKEN: Final = "node(s) didn't have free ports for the requested pod ports"
_FIRST_LISTED: Final = (CPU, MEMORY, "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class PodRequests:
    """The resources that a pod requests: cpu in thousandths, all others in whole units."""

    amounts: dict[str, int]
    ports: tuple[Port, ...] = ()


def parse_amounts(amounts: Amounts) -> dict[str, int]:
    """Parse resource quantities to whole numbers; those that are not quantities are left out."""
    parsed = {}
    for name, text in amounts.items():
        try:
            quantity = parse_quantity(text)
        except QuantityError:
            continue
        parsed[name] = quantity.milli if name == CPU else quantity.units
    return parsed


def pod_requests(pod: FullPod) -> PodRequests:
    """The resources that the scheduler has to find for a pod."""
    spec = pod.spec
    amounts = _sum(parse_amounts(container.resources.requests) for container in spec.containers)
    if spec.init_containers:
        amounts = _with_init(amounts, spec.init_containers)
    if spec.resources.requests:
        amounts = {**amounts, **parse_amounts(spec.resources.requests)}
    if spec.overhead:
        amounts = _sum((amounts, parse_amounts(spec.overhead)))
    return PodRequests(amounts, _ports(spec.containers))


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _with_init(main: dict[str, int], init: tuple[FullContainer, ...]) -> dict[str, int]:
    """The requests of a pod with init containers.

    Init containers run one after the other, so their maximum counts; a sidecar keeps running
    beside everything that starts after it, so it is added. With cpu 100m for the container, init
    containers of 300m and, after a sidecar of 50m, 200m: max(100+50, 300, 50+200) = 300m.
    """
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init:
        own = parse_amounts(container.resources.requests)
        together = _sum((sidecars, own))
        peak = {
            name: max(peak.get(name, 0), together.get(name, 0)) for name in {**peak, **together}
        }
        if container.restart_policy == "Always":
            sidecars = together
    total = _sum((main, sidecars))
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in {**total, **peak}}


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
    for name in sorted(requests.amounts, key=_order):
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


def _order(name: str) -> tuple[int, str]:
    return (_FIRST_LISTED.index(name) if name in _FIRST_LISTED else len(_FIRST_LISTED), name)

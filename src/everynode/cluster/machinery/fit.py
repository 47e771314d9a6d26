"""Whether a pod fits on a node: cpu, memory, other resources, the number of pods, host ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from everynode.api.quantity import QuantityError, parse_quantity
from everynode.cluster.machinery.objects import Container, Pod

Amounts = Mapping[str, str | int | float]
Port = tuple[str, str, int]  # address, protocol, number

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
ANY_ADDRESS: Final = "0.0.0.0"
PORTS_TAKEN: Final = "node(s) didn't have free ports for the requested pod ports"
_FIRST: Final = (CPU, MEMORY, "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod takes of its node: thousandths of cpus, whole units of all else."""

    amounts: dict[str, int]
    ports: tuple[Port, ...] = ()


def count(amounts: Amounts) -> dict[str, int]:
    """Resources as whole numbers; what is no quantity counts as nothing."""
    counted = {}
    for name, written in amounts.items():
        try:
            quantity = parse_quantity(written)
        except QuantityError:
            continue
        counted[name] = quantity.milli if name == CPU else quantity.units
    return counted


def demand_of(pod: Pod) -> Demand:
    """What the scheduler must find for a pod."""
    spec = pod.spec
    amounts = _sum(count(container.resources.requests) for container in spec.containers)
    if spec.init_containers:
        amounts = _with_init(amounts, spec.init_containers)
    if spec.resources.requests:
        amounts = {**amounts, **count(spec.resources.requests)}
    if spec.overhead:
        amounts = _sum((amounts, count(spec.overhead)))
    return Demand(amounts, _ports(spec.containers))


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _with_init(main: dict[str, int], init: tuple[Container, ...]) -> dict[str, int]:
    """Init containers run one after the other; sidecars stay beside all that comes after them."""
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init:
        own = count(container.resources.requests)
        together = _sum((sidecars, own))
        peak = {
            name: max(peak.get(name, 0), together.get(name, 0)) for name in {**peak, **together}
        }
        if container.restart_policy == "Always":
            sidecars = together
    total = _sum((main, sidecars))
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in {**total, **peak}}


def _ports(containers: tuple[Container, ...]) -> tuple[Port, ...]:
    return tuple(
        (port.host_ip or ANY_ADDRESS, port.protocol, port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port
    )


@dataclass(slots=True)
class Load:
    """What the pods of one node take together."""

    amounts: dict[str, int] = field(default_factory=dict)
    ports: dict[Port, int] = field(default_factory=dict)
    pods: int = 0

    def add(self, demand: Demand) -> None:
        """A pod came."""
        self._change(demand, 1)

    def remove(self, demand: Demand) -> None:
        """A pod went."""
        self._change(demand, -1)

    def copy(self) -> Load:
        """The same load, free to be changed."""
        return Load(dict(self.amounts), dict(self.ports), self.pods)

    def _change(self, demand: Demand, sign: int) -> None:
        self.pods += sign
        for name, amount in demand.amounts.items():
            self.amounts[name] = self.amounts.get(name, 0) + sign * amount
        for port in demand.ports:
            left = self.ports.get(port, 0) + sign
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]


def shortages(demand: Demand, load: Load, allocatable: Mapping[str, int]) -> list[str]:
    """The resources of which there is too little, `pods` among them, in the usual order."""
    short = []
    if load.pods + 1 > allocatable.get(PODS, 0):
        short.append(PODS)
    for name in sorted(demand.amounts, key=_order):
        wanted = demand.amounts[name]
        if wanted and wanted > allocatable.get(name, 0) - load.amounts.get(name, 0):
            short.append(name)
    return short


def misfits(demand: Demand, load: Load, allocatable: Mapping[str, int]) -> list[str]:
    """Why a pod does not fit, in the scheduler's words; empty when it does."""
    if demand.ports and collides(demand.ports, load.ports):
        return [PORTS_TAKEN]
    return [shortage_text(name) for name in shortages(demand, load, allocatable)]


def shortage_text(name: str) -> str:
    """The scheduler's words for too little of something."""
    return "Too many pods" if name == PODS else f"Insufficient {name}"


def collides(wanted: Iterable[Port], taken: Mapping[Port, int]) -> bool:
    """Whether one of these host ports is in use; the address 0.0.0.0 collides with every other."""
    for address, protocol, number in wanted:
        for other, other_protocol, other_number in taken:
            same = number == other_number and protocol == other_protocol
            if same and (address == other or ANY_ADDRESS in (address, other)):
                return True
    return False


def _order(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)

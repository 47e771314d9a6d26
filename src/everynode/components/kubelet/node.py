"""Simulated node: its images, its pods and their addresses."""

from __future__ import annotations

from everynode.api.resources import parse_amounts
from everynode.clock import Clock
from everynode.components.kubelet.behaviour import (
    Behaviour,
    ImageOverrides,
    parse_clock_offset,
    parse_slow_factor,
)
from everynode.components.kubelet.images import ImageStore
from everynode.components.kubelet.pod import SimulatedPod
from everynode.components.kubelet.registration import host_address, pod_network
from everynode.components.objects import FullNode


class SimulationSettings:
    """What all nodes share; `images` changes while they run."""

    def __init__(self, clock: Clock, behaviour: Behaviour) -> None:
        self.clock = clock
        self.behaviour = behaviour
        self.images = ImageOverrides()


class SimulatedNode:
    """One node with its kubelet's state."""

    __slots__ = (
        "_addresses",
        "_last_host",
        "_pod_network",
        "_settings",
        "address",
        "allocatable",
        "api_object",
        "booting",
        "clock_offset",
        "eviction_scheduled",
        "image_store",
        "name",
        "pods",
        "slow",
        "stopped",
        "write_in_flight",
    )

    def __init__(self, api_object: FullNode, index: int, settings: SimulationSettings) -> None:
        self.name = api_object.name
        self.api_object = api_object
        self.address = _internal_address(api_object) or host_address(index)
        self.image_store = ImageStore()
        self.pods: dict[str, SimulatedPod] = {}  # by uid
        self.slow = 1.0  # everything takes this many times as long
        self.clock_offset = 0.0  # seconds by which its clock is ahead
        self.stopped = False  # whether the kubelet is stopped, or the node reboots
        self.booting = False
        self.write_in_flight = False  # a write of the node's status
        self.eviction_scheduled = False  # a timer will evict a pod if there still is pressure
        self.allocatable: dict[str, int] = {}
        self._settings = settings
        self._pod_network = _pod_network_of(api_object) or pod_network(index)
        self._addresses: dict[str, str] = {}  # pod address -> uid
        self._last_host = 0
        self.update(api_object)

    @property
    def behaviour(self) -> Behaviour:
        """How long things take."""
        return self._settings.behaviour

    @property
    def images(self) -> ImageOverrides:
        """The behaviour of particular images."""
        return self._settings.images

    def wall_time(self) -> float:
        """The time of day by the node's clock."""
        return self._settings.clock.now() + self.clock_offset

    def update(self, api_object: FullNode) -> None:
        """The API object has changed."""
        self.api_object = api_object
        self.clock_offset = parse_clock_offset(api_object.metadata.annotations.clock)
        self.slow = parse_slow_factor(api_object.metadata.annotations.slow or "1")
        self.stopped = api_object.stopped or self.booting
        self.allocatable = parse_amounts(api_object.status.allocatable)

    def allocate_address(self, uid: str, preferred: str = "") -> str:
        """An address for a pod: the preferred one if it is free; empty if there is none."""
        if preferred and preferred not in self._addresses:
            self._addresses[preferred] = uid
            return preferred
        for _ in range(253):
            self._last_host = self._last_host % 253 + 1
            address = f"{self._pod_network}{self._last_host + 1}"
            if address not in self._addresses:
                self._addresses[address] = uid
                return address
        return ""

    def release_address(self, address: str, uid: str) -> None:
        """Free the address of a pod that is gone."""
        if self._addresses.get(address) == uid:
            del self._addresses[address]


def _internal_address(node: FullNode) -> str:
    addresses = node.status.addresses
    return next((each.address for each in addresses if each.type == "InternalIP"), "")


def _pod_network_of(node: FullNode) -> str:
    """The first three bytes of the node's podCIDR, if that is a /24."""
    network, _, bits = node.spec.pod_cidr.partition("/")
    head, dot, _ = network.rpartition(".")
    return head + dot if bits == "24" else ""

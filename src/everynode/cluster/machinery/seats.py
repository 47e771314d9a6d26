"""One simulated node from the inside: its images, its pods and their addresses."""

from __future__ import annotations

from everynode.clock import Clock
from everynode.cluster.machinery.behaviour import Behaviour, ImageQuirks, parse_factor
from everynode.cluster.machinery.fit import count
from everynode.cluster.machinery.images import Shelf
from everynode.cluster.machinery.lives import PodLife
from everynode.cluster.machinery.objects import Node
from everynode.cluster.machinery.registration import host_address, pod_network


class Setting:
    """What all nodes share, and what may change while they run."""

    def __init__(self, clock: Clock, behaviour: Behaviour) -> None:
        self.clock = clock
        self.behaviour = behaviour
        self.images = ImageQuirks()


class Seat:
    """A node as its pods see it."""

    __slots__ = (
        "_network",
        "_next",
        "_setting",
        "_used",
        "address",
        "allocatable",
        "evicting",
        "lives",
        "name",
        "node",
        "reporting",
        "shelf",
        "slow",
        "stopped",
    )

    def __init__(self, node: Node, index: int, setting: Setting) -> None:
        self.name = node.name
        self.node = node
        self.address = _internal_address(node) or host_address(index)
        self.shelf = Shelf()
        self.lives: dict[str, PodLife] = {}
        self.slow = 1.0
        self.stopped = False
        self.reporting = False  # a write of the node's status is under way
        self.evicting = False  # a timer will look whether a pod must be evicted
        self.allocatable: dict[str, int] = {}
        self._setting = setting
        self._network = _network(node) or pod_network(index)
        self._used: dict[str, str] = {}  # address -> uid
        self._next = 0
        self.follow(node)

    @property
    def behaviour(self) -> Behaviour:
        """How long things take."""
        return self._setting.behaviour

    @property
    def images(self) -> ImageQuirks:
        """What is particular about images."""
        return self._setting.images

    def wall(self) -> float:
        """The time of day."""
        return self._setting.clock.now()

    def follow(self, node: Node) -> None:
        """Take over what was changed in the API."""
        self.node = node
        self.slow = parse_factor(node.metadata.annotations.slow or "1")
        self.stopped = node.stopped
        self.allocatable = count(node.status.allocatable)

    def take_address(self, uid: str, wanted: str = "") -> str:
        """An address for a pod; the one it has, if nobody else has it."""
        if wanted and wanted not in self._used:
            self._used[wanted] = uid
            return wanted
        for _ in range(253):
            self._next = self._next % 253 + 1
            address = f"{self._network}{self._next + 1}"
            if address not in self._used:
                self._used[address] = uid
                return address
        return ""

    def free_address(self, address: str, uid: str) -> None:
        """The pod is gone."""
        if self._used.get(address) == uid:
            del self._used[address]


def _internal_address(node: Node) -> str:
    addresses = node.status.addresses
    return next((each.address for each in addresses if each.type == "InternalIP"), "")


def _network(node: Node) -> str:
    """The first bytes of the node's pod network, where it is one of 256 addresses."""
    network, _, bits = node.spec.pod_cidr.partition("/")
    head, dot, _ = network.rpartition(".")
    return head + dot if bits == "24" else ""

"""Nodes and pods as far as kubelets, scheduler and collector read them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from everynode.api.objects import (
    Affinity,
    Condition,
    ContainerPort,
    ContainerStatus,
    Partial,
    ReadinessGate,
    Resources,
    Toleration,
)

PREFIX: Final = "sim.everynode.io/"
Amounts = dict[str, str | int | float]


# --- Metadata ----------------------------------------------------------------------------------


class Owner(Partial, frozen=True, omit_defaults=True):
    """Who an object belongs to, with everything it carries, so that it can be written back."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class Meta(Partial, frozen=True):
    """The metadata that the garbage collector needs of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: datetime | None = None


class Bare(Partial, frozen=True):
    """Any object, reduced to its metadata."""

    metadata: Meta


class PodAnnotations(
    msgspec.Struct, frozen=True, gc=False, rename={"behaviour": f"{PREFIX}behaviour"}
):
    """The annotations of a pod that say how it is to be simulated."""

    behaviour: str = ""


class PodMeta(Partial, frozen=True):
    """Metadata of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: PodAnnotations = PodAnnotations()
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


# --- Pods --------------------------------------------------------------------------------------


class Probe(Partial, frozen=True):
    """When a probe begins to ask."""

    initial_delay_seconds: int = 0


class Sleep(Partial, frozen=True):
    """A hook that only waits."""

    seconds: int = 0


class Hook(Partial, frozen=True):
    """What is done before a container is stopped."""

    sleep: Sleep | None = None


class Hooks(Partial, frozen=True):
    """The hooks of a container."""

    pre_stop: Hook | None = None


class ResizePolicy(Partial, frozen=True):
    """What a container needs when its resources change."""

    resource_name: str = ""
    restart_policy: str = "NotRequired"


class Container(Partial, frozen=True):
    """A container as its kubelet sees it."""

    name: str
    image: str = ""
    image_pull_policy: str = "IfNotPresent"
    resources: Resources = Resources()
    resize_policy: tuple[ResizePolicy, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""  # Always on an init container makes it a sidecar
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Hooks = Hooks()


class TimedToleration(Toleration, frozen=True):
    """A toleration that may end."""

    toleration_seconds: int | None = None


class Gate(Partial, frozen=True):
    """A reason not to schedule a pod yet."""

    name: str = ""


class PodSpec(Partial, frozen=True):
    """The part of a pod's spec that decides where it runs and how it starts and ends."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    affinity: Affinity | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[TimedToleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    scheduling_gates: tuple[Gate, ...] = ()
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    host_network: bool = False
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    resources: Resources = Resources()
    overhead: Amounts = msgspec.field(default_factory=dict)


class PodStatus(Partial, frozen=True):
    """What the API says of a pod's life."""

    phase: str = "Pending"
    reason: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    nominated_node_name: str = ""


class Pod(Partial, frozen=True):
    """A pod as far as it is simulated."""

    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def uid(self) -> str:
        """The pod's unique id."""
        return self.metadata.uid

    @property
    def terminating(self) -> bool:
        """Whether its deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Whether it will never run again."""
        return self.status.phase in ("Failed", "Succeeded")

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if it is there."""
        return next((c for c in self.status.conditions if c.type == kind), None)


# --- Nodes -------------------------------------------------------------------------------------


class NodeAnnotations(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={
        "stopped": f"{PREFIX}stopped",
        "slow": f"{PREFIX}slow",
        "pressure": f"{PREFIX}pressure",
        "not_ready": f"{PREFIX}not-ready",
    },
):
    """The annotations of a node that say how its kubelet is to behave."""

    stopped: str = ""
    slow: str = ""
    pressure: str = ""
    not_ready: str = ""


class NodeMeta(Partial, frozen=True):
    """Metadata of a node."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: NodeAnnotations = NodeAnnotations()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class FullTaint(Partial, frozen=True, omit_defaults=True):
    """A taint with everything it carries, so that it can be written back."""

    key: str
    effect: str = ""
    value: str = ""
    time_added: str = ""


class NodeSpec(Partial, frozen=True):
    """Who may run here."""

    taints: tuple[FullTaint, ...] = ()
    unschedulable: bool = False
    pod_cidr: str = msgspec.field(default="", name="podCIDR")


class Address(Partial, frozen=True):
    """One address of a node."""

    type: str
    address: str = ""


class NodeStatus(Partial, frozen=True):
    """What the kubelet says of its node."""

    conditions: tuple[Condition, ...] = ()
    allocatable: Amounts = msgspec.field(default_factory=dict)
    addresses: tuple[Address, ...] = ()


class Node(Partial, frozen=True):
    """A machine, or what plays one."""

    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.metadata.name

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped its kubelet."""
        return self.metadata.annotations.stopped == "true"

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if it is there."""
        return next((c for c in self.status.conditions if c.type == kind), None)


decode_pod: Final[Callable[[bytes], Pod]] = msgspec.json.Decoder(Pod).decode
decode_node: Final[Callable[[bytes], Node]] = msgspec.json.Decoder(Node).decode
decode_bare: Final[Callable[[bytes], Bare]] = msgspec.json.Decoder(Bare).decode

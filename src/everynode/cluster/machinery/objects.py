"""What kubelets, scheduler and collector read of nodes and pods beyond what the controller does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from everynode.api import objects
from everynode.api.decode import Shared
from everynode.api.objects import (
    Condition,
    ContainerPort,
    OwnerReference,
    Partial,
    Resources,
    Taint,
    Toleration,
)

PREFIX: Final = "sim.everynode.io/"
Amounts = dict[str, str | int | float]


# --- Metadata ----------------------------------------------------------------------------------


class Owner(OwnerReference, frozen=True, omit_defaults=True):
    """Who an object belongs to, with everything it carries, so that it can be written back."""

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
    objects.PodAnnotations, frozen=True, rename={"behaviour": f"{PREFIX}behaviour"}
):
    """The annotations of a pod, and the one that says how it is to be simulated."""

    behaviour: str = ""


class PodMeta(objects.PodMeta, frozen=True):
    """Metadata of a pod."""

    annotations: PodAnnotations = PodAnnotations()
    owner_references: tuple[Owner, ...] = ()
    generation: int = 0
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


class Container(objects.Container, frozen=True):
    """A container as its kubelet sees it."""

    image_pull_policy: str = "IfNotPresent"
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


class PodSpec(objects.PodSpec, frozen=True):
    """The part of a pod's spec that decides where it runs and how it starts and ends."""

    scheduler_name: str = "default-scheduler"
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[TimedToleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    scheduling_gates: tuple[Gate, ...] = ()
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    host_network: bool = False
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    resources: Resources = Resources()
    overhead: Amounts = msgspec.field(default_factory=dict)


class PodStatus(objects.PodStatus, frozen=True):
    """What the API says of a pod's life."""

    pod_ip: str = msgspec.field(default="", name="podIP")


class Pod(objects.Pod, frozen=True):
    """A pod as far as it is simulated."""

    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


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


class NodeMeta(objects.NodeMeta, frozen=True):
    """Metadata of a node."""

    annotations: NodeAnnotations = NodeAnnotations()


class FullTaint(Taint, frozen=True, omit_defaults=True):
    """A taint with everything it carries, so that it can be written back."""

    time_added: str = ""


class NodeSpec(objects.NodeSpec, frozen=True):
    """Who may run here."""

    taints: tuple[FullTaint, ...] = ()
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


class _Written(Partial, frozen=True):
    """A pod whose spec is still as it was written."""

    metadata: PodMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodStatus = PodStatus()


_decode_written: Final[Callable[[bytes], _Written]] = msgspec.json.Decoder(_Written).decode
_decode_spec: Final[Callable[[bytes], PodSpec]] = msgspec.json.Decoder(PodSpec).decode
_specs: Final = Shared(1024)


def decode_pod(body: bytes) -> Pod:
    """A pod; its spec is decoded once, since mostly it is the status that changes."""
    found = _decode_written(body)
    written = bytes(found.spec)
    spec = _specs.get(written)
    if spec is None:
        spec = _specs.keep(written, _decode_spec(written))
    return Pod(found.metadata, spec, found.status)


decode_node: Final[Callable[[bytes], Node]] = msgspec.json.Decoder(Node).decode
decode_bare: Final[Callable[[bytes], Bare]] = msgspec.json.Decoder(Bare).decode

"""API objects as kubelets, scheduler and controllers read them.

A class `FullX` extends `everynode.api.objects.X`, which has the fields that the DaemonSet
controller reads, by the fields that the components read in addition. Objects are decoded
partially: a field that is not listed here costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from everynode.api import objects
from everynode.api.objects import (
    Condition,
    ContainerPort,
    OwnerReference,
    Partial,
    Resources,
    Taint,
    Toleration,
)
from everynode.components.annotations import (
    BEHAVIOUR,
    BOOT,
    CLOCK,
    NOT_READY,
    PRESSURE,
    SHUTDOWN,
    SLOW,
    STOPPED,
)
from everynode.kube.watch.decode import InternTable

Amounts = dict[str, str | int | float]


# --- Metadata ----------------------------------------------------------------------------------


class FullOwnerReference(OwnerReference, frozen=True, omit_defaults=True):
    """An owner reference with all its fields, so that it can be written back."""

    block_owner_deletion: bool = False


class PartialMeta(Partial, frozen=True):
    """The metadata that the garbage collector reads of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[FullOwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: datetime | None = None


class PartialObjectMetadata(Partial, frozen=True):
    """Any object, reduced to its metadata, as Kubernetes' type of this name."""

    metadata: PartialMeta


class FullPodAnnotations(objects.PodAnnotations, frozen=True, rename={"behaviour": BEHAVIOUR}):
    """The annotations of a pod, with the one that overrides its simulated behaviour."""

    behaviour: str = ""


class FullPodMeta(objects.PodMeta, frozen=True):
    """Metadata of a pod."""

    annotations: FullPodAnnotations = FullPodAnnotations()
    owner_references: tuple[FullOwnerReference, ...] = ()
    generation: int = 0
    deletion_grace_period_seconds: int | None = None


# --- Pods --------------------------------------------------------------------------------------


class Probe(Partial, frozen=True):
    """The delay of a probe; simulated probes succeed at once after it."""

    initial_delay_seconds: int = 0


class SleepAction(Partial, frozen=True):
    """A preStop hook that waits; other hooks take no time here."""

    seconds: int = 0


class LifecycleHandler(Partial, frozen=True):
    """A preStop hook."""

    sleep: SleepAction | None = None


class Lifecycle(Partial, frozen=True):
    """The lifecycle hooks of a container."""

    pre_stop: LifecycleHandler | None = None


class ResizePolicy(Partial, frozen=True):
    """Whether a container restarts when one of its resources changes."""

    resource_name: str = ""
    restart_policy: str = "NotRequired"


class FullContainer(objects.Container, frozen=True):
    """A container as its kubelet reads it."""

    image_pull_policy: str = "IfNotPresent"
    resize_policy: tuple[ResizePolicy, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""  # Always on an init container makes it a sidecar
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()


class TimedToleration(Toleration, frozen=True):
    """A toleration with tolerationSeconds."""

    toleration_seconds: int | None = None


class SchedulingGate(Partial, frozen=True):
    """A scheduling gate: the scheduler ignores the pod while there is one."""

    name: str = ""


class FullPodSpec(objects.PodSpec, frozen=True):
    """The fields of a pod's spec that determine where it runs, how it starts and ends."""

    scheduler_name: str = "default-scheduler"
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[TimedToleration, ...] = ()
    containers: tuple[FullContainer, ...] = ()
    init_containers: tuple[FullContainer, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    host_network: bool = False
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    resources: Resources = Resources()
    overhead: Amounts = msgspec.field(default_factory=dict)


class FullPodStatus(objects.PodStatus, frozen=True):
    """The status of a pod."""

    pod_ip: str = msgspec.field(default="", name="podIP")


class FullPod(objects.Pod, frozen=True):
    """A pod as the components read it."""

    metadata: FullPodMeta
    spec: FullPodSpec = FullPodSpec()
    status: FullPodStatus = FullPodStatus()

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
        "stopped": STOPPED,
        "slow": SLOW,
        "pressure": PRESSURE,
        "not_ready": NOT_READY,
        "boot": BOOT,
        "clock": CLOCK,
        "shutdown": SHUTDOWN,
    },
):
    """The annotations of a node that control its simulated kubelet."""

    stopped: str = ""
    slow: str = ""
    pressure: str = ""
    not_ready: str = ""
    boot: str = ""
    clock: str = ""
    shutdown: str = ""


class FullNodeMeta(objects.NodeMeta, frozen=True):
    """Metadata of a node."""

    annotations: NodeAnnotations = NodeAnnotations()


class FullTaint(Taint, frozen=True, omit_defaults=True):
    """A taint with all its fields, so that it can be written back."""

    time_added: str = ""


class FullNodeSpec(objects.NodeSpec, frozen=True):
    """The spec of a node."""

    taints: tuple[FullTaint, ...] = ()
    pod_cidr: str = msgspec.field(default="", name="podCIDR")


class NodeAddress(Partial, frozen=True):
    """One address of a node."""

    type: str
    address: str = ""


class FullNodeStatus(Partial, frozen=True):
    """The status of a node."""

    conditions: tuple[Condition, ...] = ()
    allocatable: Amounts = msgspec.field(default_factory=dict)
    addresses: tuple[NodeAddress, ...] = ()


class FullNode(Partial, frozen=True):
    """A node as the components read it."""

    metadata: FullNodeMeta
    spec: FullNodeSpec = FullNodeSpec()
    status: FullNodeStatus = FullNodeStatus()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.metadata.name

    @property
    def stopped(self) -> bool:
        """Whether its annotation stops its kubelet."""
        return self.metadata.annotations.stopped == "true"

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if there is one."""
        return next((c for c in self.status.conditions if c.type == kind), None)


class _PodWithRawSpec(Partial, frozen=True):
    """A pod whose spec is not decoded yet."""

    metadata: FullPodMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: FullPodStatus = FullPodStatus()


_decode_pod_with_raw_spec: Final[Callable[[bytes], _PodWithRawSpec]] = msgspec.json.Decoder(
    _PodWithRawSpec
).decode
_decode_spec: Final[Callable[[bytes], FullPodSpec]] = msgspec.json.Decoder(FullPodSpec).decode
_specs: Final = InternTable(1024)


def decode_pod(body: bytes) -> FullPod:
    """Decode a pod. Equal specs are decoded once, as mostly only the status changes."""
    pod = _decode_pod_with_raw_spec(body)
    raw = bytes(pod.spec)
    spec = _specs.get(raw)
    if spec is None:
        spec = _specs.keep(raw, _decode_spec(raw))
    return FullPod(pod.metadata, spec, pod.status)


decode_node: Final[Callable[[bytes], FullNode]] = msgspec.json.Decoder(FullNode).decode
decode_partial_metadata: Final[Callable[[bytes], PartialObjectMetadata]] = msgspec.json.Decoder(
    PartialObjectMetadata
).decode

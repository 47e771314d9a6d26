"""Partial objects: pods, nodes and others with only the fields that Everynode reads.

They are decoded straight from JSON bytes. Unknown fields are dropped, so that a cached pod costs
two kilobytes instead of forty. Partial objects are never written back; what is written back is kept
as raw JSON (templates, revisions).
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from everynode.api import keys


class Partial(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base of all partial objects: immutable, camelCase in JSON, not garbage-collected."""


class OwnerReference(Partial, frozen=True):
    """The owner of an object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False

    @property
    def group(self) -> str:
        """The API group of the owner, empty for core kinds."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


class ObjectMeta(Partial, frozen=True):
    """Metadata common to all objects."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if any."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class Condition(Partial, frozen=True):
    """A condition of a pod, a node or a DaemonSet."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


# --- Nodes -------------------------------------------------------------------------------------


class Taint(Partial, frozen=True):
    """Keeps pods that do not tolerate it away from a node."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(Partial, frozen=True):
    """The part of a node's spec that decides which pods may run there."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeCondition(Partial, frozen=True):
    """A node condition without lastHeartbeatTime, which changes while the condition does not."""

    type: str
    status: str = "Unknown"


class NodeStatus(Partial, frozen=True):
    """The conditions that the kubelet reports."""

    conditions: tuple[NodeCondition, ...] = ()


class NodeMeta(Partial, frozen=True):
    """Metadata of a node; annotations are left out, they change with every heartbeat."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Node(Partial, frozen=True):
    """A node as far as Everynode reads it."""

    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.metadata.name

    @property
    def ready(self) -> str:
        """Status of the Ready condition: True, False or Unknown; True while it is not set."""
        for condition in self.status.conditions:
            if condition.type == "Ready":
                return condition.status
        return "True"

    @property
    def lifecycle(self) -> str:
        """The node lifecycle condition that is True, the most urgent of several; empty if none."""
        found = ""
        for condition in self.status.conditions:
            if condition.status == "True" and condition.type in keys.NODE_LIFECYCLE:
                order = keys.NODE_LIFECYCLE.index
                if not found or order(condition.type) < order(found):
                    found = condition.type
        return found


# --- Pods --------------------------------------------------------------------------------------


class PodAnnotations(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={
        "inplace_state": "apps.kruise.io/inplace-update-state",
        "inplace_state_old": "inplace-update-state",
        "failures": "everynode.io/failures",
        "replaced_sick": "everynode.io/replaced-sick",
        "pulled": "everynode.io/pulled",
    },
):
    """The annotations of a pod that we read; the others can be large and are dropped."""

    inplace_state: str = ""
    inplace_state_old: str = ""
    failures: str = ""
    pulled: str = ""
    replaced_sick: str = ""  # the target hash that came where the old pod was sick


class PodMeta(Partial, frozen=True):
    """Metadata of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: PodAnnotations = PodAnnotations()
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this pod, if any."""
        for reference in self.owner_references:  # a generator would cost twice as much
            if reference.controller:
                return reference
        return None


class NodeSelectorRequirement(Partial, frozen=True):
    """One expression of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Partial, frozen=True):
    """Expressions that must all match."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Partial, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Partial, frozen=True):
    """Which nodes a pod may run on."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Partial, frozen=True):
    """The part of a pod's affinity that concerns nodes."""

    node_affinity: NodeAffinity | None = None

    @property
    def pinned_node(self) -> str:
        """The node that the required affinity names, as the DaemonSet controller sets it."""
        if self.node_affinity is None or self.node_affinity.required is None:
            return ""
        for term in self.node_affinity.required.node_selector_terms:
            for field in term.match_fields:
                if field.key == keys.NODE_NAME_FIELD and field.operator == "In":
                    return field.values[0] if len(field.values) == 1 else ""
        return ""


class Toleration(Partial, frozen=True):
    """Lets a pod onto nodes with matching taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class ReadinessGate(Partial, frozen=True):
    """A condition that must be True before the pod is Ready."""

    condition_type: str


class Resources(Partial, frozen=True):
    """Requests and limits of a container, as written (quantities are strings or numbers)."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class ContainerPort(Partial, frozen=True):
    """A port a container listens on."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Partial, frozen=True):
    """The part of a container that an in-place update may change."""

    name: str
    image: str = ""
    resources: Resources = Resources()


class PodSpec(Partial, frozen=True):
    """The part of a pod's spec that we read.

    The affinity names the node a pod is pinned to; a cache drops it once the pod is bound.
    """

    node_name: str = ""
    affinity: Affinity | None = None
    readiness_gates: tuple[ReadinessGate, ...] = ()
    containers: tuple[Container, ...] = ()


class StateWaiting(Partial, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class StateTerminated(Partial, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    finished_at: datetime | None = None
    started_at: datetime | None = None
    container_id: str = msgspec.field(default="", name="containerID")


class StateRunning(Partial, frozen=True):
    """Since when a container runs."""

    started_at: datetime | None = None


class ContainerState(Partial, frozen=True):
    """The state of a container; at most one of the fields is set."""

    waiting: StateWaiting | None = None
    running: StateRunning | None = None
    terminated: StateTerminated | None = None


class ContainerStatus(Partial, frozen=True):
    """The state of a container that the kubelet reports."""

    name: str
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()  # of the container before the last restart
    resources: Resources | None = None


class PodStatus(Partial, frozen=True):
    """Phase, conditions and containers of a pod."""

    phase: str = "Pending"
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    start_time: datetime | None = None
    resize: str = ""


class Pod(Partial, frozen=True):
    """A pod as far as Everynode reads it."""

    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The pod's unique id."""
        return self.metadata.uid

    @property
    def hash(self) -> str:
        """The revision hash the pod is labelled with, empty if none."""
        return self.metadata.labels.get("controller-revision-hash", "")

    @property
    def terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def node(self) -> str:
        """The node that the pod is bound to, or pinned to by its affinity; empty if neither."""
        if self.spec.node_name or self.spec.affinity is None:
            return self.spec.node_name
        return self.spec.affinity.pinned_node

    @property
    def finished(self) -> bool:
        """Whether the pod has the phase Succeeded or Failed and will never run again."""
        return self.status.phase in ("Failed", "Succeeded")

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if the pod has it."""
        for condition in self.status.conditions:  # a generator would cost twice as much
            if condition.type == kind:
                return condition
        return None


# --- Other kinds -------------------------------------------------------------------------------


class ControllerRevision(Partial, frozen=True):
    """A ControllerRevision; `data` stays raw because its bytes are compared and written back."""

    metadata: ObjectMeta
    revision: int = 0
    data: msgspec.Raw = msgspec.Raw()


class LeaseSpec(Partial, frozen=True):
    """Who holds a lease, and since when."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Partial, frozen=True):
    """A Lease: the lock of leader election."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(Partial, frozen=True):
    """The object that an Event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""

"""Resources of one node as the API server shows them: the requests that read them, and a Room.

The lists are answered from the watch cache of the API server, which finds the pods of a node by an
index. They are not older than what the caller has seen. Without a version an API server older
than 1.31 reads all pods of the cluster from etcd.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from everynode.api.objects import Condition, OwnerReference, Partial
from everynode.api.resources import (
    PODS,
    Amounts,
    RequestingContainer,
    RequestingSpec,
    add_amounts,
    parse_amounts,
    pod_requests,
)
from everynode.decide.node.room import Requests, Room
from everynode.kube import resources, verbs
from everynode.kube.client import decode_page
from everynode.kube.requests import Request
from everynode.kube.verbs import ListOptions

# The kubelet evicts for a pod of this priority, where no scheduler is asked.
_CRITICAL: Final = 2_000_000_000
_NEVER: Final = "Never"
_RESIZE_PENDING: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"
# Finished pods request nothing. The scheduler counts those that terminate until they are gone.
_NOT_FINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class _Meta(Partial, frozen=True):
    uid: str = ""
    owner_references: tuple[OwnerReference, ...] = ()


class PriorSpec(RequestingSpec, frozen=True):
    """A pod's spec, as far as it says what the pod takes and what has to give way to it."""

    priority: int | None = None
    preemption_policy: str = ""


class _ContainerStatus(Partial, frozen=True):
    name: str = ""
    allocated_resources: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class _Status(Partial, frozen=True):
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()


class NodePod(Partial, frozen=True):
    """A pod on a node, as far as it takes room there."""

    metadata: _Meta = _Meta()
    spec: PriorSpec = PriorSpec()
    status: _Status = _Status()

    @property
    def priority(self) -> int:
        """The priority that admission has given it."""
        return self.spec.priority or 0

    def is_owned_by(self, uid: str) -> bool:
        """Whether the object with this uid controls the pod."""
        return any(each.controller and each.uid == uid for each in self.metadata.owner_references)


class _NodeStatus(Partial, frozen=True):
    allocatable: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class _Node(Partial, frozen=True):
    status: _NodeStatus = _NodeStatus()


class TargetPod(msgspec.Struct, frozen=True):
    """A pod of the target, as admission would make it."""

    requests: Requests
    priority: int | None = None  # None if it is not known: that of the pod before it
    preempts: bool = True


class NodeResources(msgspec.Struct, frozen=True):
    """What one node can allocate, and the pods that are bound to it and not finished."""

    allocatable: Requests
    pods: tuple[NodePod, ...]


_decode_pod: Final = msgspec.json.Decoder(NodePod).decode
_decode_node: Final = msgspec.json.Decoder(_Node).decode


def pods_request(node: str, version: int) -> Request:
    """Return the request for the pods of a node, as of this resource version or later."""
    fields = f"spec.nodeName={node},{_NOT_FINISHED}"
    return verbs.list_cached(resources.PODS, options=ListOptions(fields=fields), version=version)


def node_request(node: str, version: int) -> Request:
    """Return the request for the node itself; a list, because no other right is needed."""
    options = ListOptions(fields=f"metadata.name={node}")
    return verbs.list_cached(resources.NODES, options=options, version=version)


def decode_pods(body: bytes) -> tuple[NodePod, ...]:
    """Return the pods of a list; ValueError."""
    return tuple([_decode_pod(item) for item in decode_page(body).items])


def decode_allocatable(body: bytes) -> Requests:
    """Return what the node of a list can allocate; nothing if it is gone; ValueError."""
    nodes = [_decode_node(item) for item in decode_page(body).items]
    return parse_amounts(nodes[0].status.allocatable) if nodes else {}


def decode_target(body: bytes) -> TargetPod:
    """Return the pod that a dry run answered with; ValueError."""
    spec = _decode_pod(body).spec
    return TargetPod(pod_requests(spec), spec.priority, spec.preemption_policy != _NEVER)


def build_room(
    seen: NodeResources,
    target: TargetPod,
    owner: str,
    *,
    revision: str,
    now: float,
    attempt: int = 1,
    claimed: Iterable[Requests] = (),
    by_scheduler: bool = True,
) -> Room:
    """Return the room of a node for the target of the DaemonSet with the uid `owner`.

    `claimed` is what other pods will request that are not bound yet.
    """
    own = [pod for pod in seen.pods if pod.is_owned_by(owner)]
    others = [pod for pod in seen.pods if not pod.is_owned_by(owner)]
    priority = target.priority
    if priority is None:
        priority = max([pod.priority for pod in own], default=0)
    lower: list[NodePod] = []
    if target.preempts and (by_scheduler or priority >= _CRITICAL):
        lower = [pod for pod in others if pod.priority < priority]
    return Room(
        revision=revision,
        observed_at=now,
        attempt=attempt,
        requests=target.requests,
        allocatable=seen.allocatable,
        used=add_amounts((*map(_allowed_for, others), *claimed)),
        preemptible=add_amounts(map(_allowed_for, lower)),
        own={pod.metadata.uid: _allowed_for(pod) for pod in own},
    )


def unbound_requests(wanted: Requests, bound: Iterable[NodePod]) -> dict[str, int]:
    """Return what a pod that is not bound yet requests beyond the pods that it replaces."""
    taken = add_amounts(map(_allowed_for, bound))
    return {name: max(0, amount - taken.get(name, 0)) for name, amount in wanted.items()}


def _allowed_for(pod: NodePod) -> dict[str, int]:
    """Return what the scheduler counts for a pod that is bound, and the pod itself.

    While it is resized, that is the larger of what it asks for and what it has; what never fits
    does not count.
    """
    statuses = pod.status.container_statuses
    has = {each.name: each.allocated_resources for each in statuses if each.allocated_resources}
    spec: RequestingSpec = pod.spec
    if has:
        infeasible = any(
            each.type == _RESIZE_PENDING and each.reason == _INFEASIBLE
            for each in pod.status.conditions
        )
        containers = [_with_resize(each, has, infeasible=infeasible) for each in spec.containers]
        spec = msgspec.structs.replace(spec, containers=tuple(containers))
    return {**pod_requests(spec), PODS: 1}


def _with_resize(
    container: RequestingContainer, has: Mapping[str, Amounts], *, infeasible: bool
) -> RequestingContainer:
    if container.name not in has:
        return container
    requested = dict(container.resources.requests)
    allocated = dict(has[container.name])
    if not infeasible:
        wanted, given = parse_amounts(requested), parse_amounts(allocated)
        allocated |= {n: requested[n] for n in wanted if wanted[n] >= given.get(n, 0)}
    resources = msgspec.structs.replace(container.resources, requests=allocated)
    return msgspec.structs.replace(container, resources=resources)

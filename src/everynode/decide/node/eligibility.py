"""Eligibility: whether a node should run a pod of a template, may keep one, and why not."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from everynode.api.affinity import NodeMatcher
from everynode.api.nulls import drop_nulls
from everynode.api.objects import Affinity, ContainerPort, Node, Partial, Taint, Toleration
from everynode.api.taints import EVICTING_EFFECTS, find_untolerated_taint, with_daemon_tolerations


class Eligibility(msgspec.Struct, frozen=True, gc=False):
    """Whether a node should get a pod, and may keep one; `reason` is empty if it should get one."""

    should_run: bool
    should_continue: bool
    reason: str = ""


class _Container(Partial, frozen=True):
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class _Spec(Partial, frozen=True):
    node_name: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_network: bool = False
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()


class _Metadata(Partial, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    finalizers: tuple[str, ...] = ()


class _Template(Partial, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


# A host port: number, protocol, and host IP.
HostPort = tuple[int, str, str]
_ANY_ADDRESS = ("", "0.0.0.0", "::")


class TemplateConstraints:
    """The constraints of one template on nodes, read once for all nodes."""

    __slots__ = ("fault", "host_ports", "matcher", "node_name", "tolerations")

    def __init__(self, spec: _Spec, fault: str = "") -> None:
        self.node_name = spec.node_name
        self.matcher = NodeMatcher(spec.node_selector, spec.affinity)
        self.tolerations = with_daemon_tolerations(spec.tolerations, host_network=spec.host_network)
        self.host_ports = _host_ports(spec)
        self.fault = fault


@lru_cache(maxsize=256)
def read_constraints(template: bytes) -> TemplateConstraints:
    """Return the constraints of a template.

    With a template that cannot be read, no node gets a pod and existing pods are kept.
    """
    try:
        value = drop_nulls(msgspec.json.decode(template))
        return TemplateConstraints(msgspec.convert(value, _Template).spec)
    except (msgspec.DecodeError, RecursionError) as error:
        return TemplateConstraints(_Spec(), fault=f"the template cannot be read: {error}")


_YES = Eligibility(should_run=True, should_continue=True)


def eligibility_for(constraints: TemplateConstraints, node: Node) -> Eligibility:
    """Return whether the node should get a pod of the template and may keep one."""
    if constraints.fault:
        return Eligibility(should_run=False, should_continue=True, reason=constraints.fault)
    name = node.metadata.name
    if constraints.node_name and constraints.node_name != name:
        reason = f"the template is for node {constraints.node_name} only"
        return Eligibility(should_run=False, should_continue=False, reason=reason)
    if not constraints.matcher.matches(name, node.metadata.labels):
        reason = constraints.matcher.mismatch(name, node.metadata.labels)
        return Eligibility(should_run=False, should_continue=False, reason=reason)
    if not node.spec.taints:
        return _YES
    return _eligibility_by_taints(constraints, node.spec.taints)


def _eligibility_by_taints(
    constraints: TemplateConstraints, taints: tuple[Taint, ...]
) -> Eligibility:
    repelling = find_untolerated_taint(taints, constraints.tolerations)
    if repelling is None:
        return _YES
    evicting = find_untolerated_taint(taints, constraints.tolerations, effects=EVICTING_EFFECTS)
    reason = f"taint {_format_taint(evicting or repelling)} is not tolerated"
    return Eligibility(should_run=False, should_continue=evicting is None, reason=reason)


def withdraws_toleration(
    old: TemplateConstraints, new: TemplateConstraints, taints: tuple[Taint, ...]
) -> bool:
    """Whether the old template tolerates one of these taints and the new one does not."""
    return any(
        find_untolerated_taint((taint,), new.tolerations) is not None
        and find_untolerated_taint((taint,), old.tolerations) is None
        for taint in taints
    )


def _format_taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def host_ports_conflict(one: TemplateConstraints, other: TemplateConstraints) -> bool:
    """Whether pods of the two templates need the same host port and cannot share a node."""
    return any(_same_port(a, b) for a in one.host_ports for b in other.host_ports)


def _same_port(one: HostPort, other: HostPort) -> bool:
    if one[:2] != other[:2]:
        return False
    return one[2] == other[2] or one[2] in _ANY_ADDRESS or other[2] in _ANY_ADDRESS


def _host_ports(spec: _Spec) -> tuple[HostPort, ...]:
    """Return the host ports of a pod; with hostNetwork every container port is one.

    As in the scheduler, the ports of init containers count only for sidecars.
    """
    ports = []
    sidecars = (each for each in spec.init_containers if each.restart_policy == "Always")
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                ports.append((number, port.protocol or "TCP", port.host_ip))
    return tuple(ports)

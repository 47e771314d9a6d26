"""Whether a node should get a pod of a template, and whether it may keep one, with the reason."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from everynode.api.affinity import NodeMatcher
from everynode.api.objects import Affinity, ContainerPort, Node, Partial, Taint, Toleration
from everynode.api.taints import EVICTING, untolerated, with_daemon_tolerations


class Eligibility(msgspec.Struct, frozen=True, gc=False):
    """What a template says of a node; `reason` is empty where the node should run the pod."""

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


# A port of the node: its number, its protocol, and the address it is bound to.
HostPort = tuple[int, str, str]
_ANY_ADDRESS = ("", "0.0.0.0", "::")


class Facts:
    """What one template says about nodes, read once and asked for every node."""

    __slots__ = ("fault", "host_ports", "matcher", "node_name", "tolerations")

    def __init__(self, spec: _Spec, fault: str = "") -> None:
        self.node_name = spec.node_name
        self.matcher = NodeMatcher(spec.node_selector, spec.affinity)
        self.tolerations = with_daemon_tolerations(spec.tolerations, host_network=spec.host_network)
        self.host_ports = _host_ports(spec)
        self.fault = fault


@lru_cache(maxsize=256)
def read_facts(template: bytes) -> Facts:
    """The facts of a template; one that cannot be read wants no node and leaves pods alone."""
    try:
        value = _without_nulls(msgspec.json.decode(template))
        return Facts(msgspec.convert(value, _Template).spec)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        return Facts(_Spec(), fault=f"the template cannot be read: {error}")


_YES = Eligibility(should_run=True, should_continue=True)


def judge(facts: Facts, node: Node) -> Eligibility:
    """Whether the node should get the template's pod, and whether it may keep one."""
    if facts.fault:
        return Eligibility(should_run=False, should_continue=True, reason=facts.fault)
    name = node.metadata.name
    if facts.node_name and facts.node_name != name:
        reason = f"the template is for node {facts.node_name} only"
        return Eligibility(should_run=False, should_continue=False, reason=reason)
    if not facts.matcher.matches(name, node.metadata.labels):
        reason = facts.matcher.mismatch(name, node.metadata.labels)
        return Eligibility(should_run=False, should_continue=False, reason=reason)
    if not node.spec.taints:
        return _YES
    return _judge_taints(facts, node.spec.taints)


def _judge_taints(facts: Facts, taints: tuple[Taint, ...]) -> Eligibility:
    repelling = untolerated(taints, facts.tolerations)
    if repelling is None:
        return _YES
    evicting = untolerated(taints, facts.tolerations, effects=EVICTING)
    reason = f"taint {_written(evicting or repelling)} is not tolerated"
    return Eligibility(should_run=False, should_continue=evicting is None, reason=reason)


def _written(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def ports_clash(one: Facts, other: Facts) -> bool:
    """Whether pods of the two templates want the same port of a node, so that only one fits."""
    return any(_same_port(a, b) for a in one.host_ports for b in other.host_ports)


def _same_port(one: HostPort, other: HostPort) -> bool:
    if one[:2] != other[:2]:
        return False
    return one[2] == other[2] or one[2] in _ANY_ADDRESS or other[2] in _ANY_ADDRESS


def _host_ports(spec: _Spec) -> tuple[HostPort, ...]:
    """Ports taken on the node; in the host's network a container's port is the node's.

    Init containers that end take none, in the eyes of the scheduler.
    """
    ports = []
    sidecars = (each for each in spec.init_containers if each.restart_policy == "Always")
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                ports.append((number, port.protocol or "TCP", port.host_ip))
    return tuple(ports)


def _without_nulls(value: Any) -> Any:
    """JSON without null members, which mean the same as absent ones."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value

"""In-place resize: the resources of running containers follow the pod's spec."""

from __future__ import annotations

from collections.abc import Iterable

from everynode.api.objects import Resources
from everynode.components.kubelet.container import ContainerPhase, SimulatedContainer
from everynode.components.timers import NEVER


class Resize:
    """A resize that is in progress until `done_at`, or refused with a reason."""

    __slots__ = ("done_at", "message", "reason", "wanted")

    def __init__(
        self,
        wanted: tuple[Resources, ...],
        done_at: float = NEVER,
        *,
        reason: str = "",
        message: str = "",
    ) -> None:
        self.wanted = wanted  # of each container
        self.done_at = done_at
        self.reason = reason  # Infeasible or Deferred, empty while in progress
        self.message = message


def requested_resources(containers: Iterable[SimulatedContainer]) -> tuple[Resources, ...]:
    """The resources that the spec asks for, of each container."""
    return tuple(container.spec.resources for container in containers)


def containers_to_resize(containers: Iterable[SimulatedContainer]) -> list[SimulatedContainer]:
    """The running containers whose resources differ from the spec."""
    return [
        container
        for container in containers
        if container.state is ContainerPhase.RUNNING
        and container.resources != container.spec.resources
    ]


def apply_resize(containers: Iterable[SimulatedContainer], now: float) -> None:
    """Give the containers their new resources; restart those whose resizePolicy says so."""
    for container in containers_to_resize(containers):
        if _needs_restart(container):
            container.restart(now)
        else:
            container.resources = container.spec.resources


def _needs_restart(container: SimulatedContainer) -> bool:
    """Whether a resource changed whose resizePolicy is RestartContainer."""
    old, new = container.resources, container.spec.resources
    return any(
        _amounts(old, policy.resource_name) != _amounts(new, policy.resource_name)
        for policy in container.spec.resize_policy
        if policy.restart_policy == "RestartContainer"
    )


def _amounts(resources: Resources, name: str) -> tuple[object, object]:
    return resources.requests.get(name), resources.limits.get(name)

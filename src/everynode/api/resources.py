"""Resources: what a pod requests in total, and whether a node has room for it.

Amounts are whole numbers: cpu in thousandths, everything else in whole units, as the scheduler
counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from everynode.api.nulls import drop_nulls
from everynode.api.objects import Partial, Resources
from everynode.api.quantity import Format, Quantity, QuantityError, parse_quantity

Amounts = Mapping[str, str | int | float]

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
_STORAGE: Final = "ephemeral-storage"
_FIRST_LISTED: Final = (PODS, CPU, MEMORY, _STORAGE)
_MEASURED_IN_BYTES: Final = (MEMORY, _STORAGE, "hugepages-")
_SIDECAR: Final = "Always"  # the restartPolicy that makes a sidecar of an init container


class RequestingContainer(Partial, frozen=True):
    """A container, as far as it requests resources."""

    name: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""


class RequestingSpec(Partial, frozen=True):
    """A pod's spec, as far as it requests resources."""

    containers: tuple[RequestingContainer, ...] = ()
    init_containers: tuple[RequestingContainer, ...] = ()
    resources: Resources = Resources()  # of the pod as a whole; they take precedence
    overhead: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class _Container(Protocol):
    @property
    def resources(self) -> Resources: ...
    @property
    def restart_policy(self) -> str: ...


class _Spec(Protocol):
    @property
    def containers(self) -> Sequence[_Container]: ...
    @property
    def init_containers(self) -> Sequence[_Container]: ...
    @property
    def resources(self) -> Resources: ...
    @property
    def overhead(self) -> Amounts: ...


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """A resource of which a node has less free than a pod needs."""

    name: str
    needed: int
    free: int  # may be negative where a node is overcommitted

    def __str__(self) -> str:
        if self.name == PODS:
            return "Too many pods"
        needed, free = (format_amount(self.name, each) for each in (self.needed, self.free))
        return f"Insufficient {self.name}: {needed} needed, {free} free"


def parse_amounts(amounts: Amounts) -> dict[str, int]:
    """Parse resource quantities to whole numbers; those that are not quantities are left out."""
    parsed = {}
    for name, text in amounts.items():
        try:
            quantity = parse_quantity(text)
        except QuantityError:
            continue
        parsed[name] = quantity.milli if name == CPU else quantity.units
    return parsed


def format_amount(name: str, amount: int) -> str:
    """Return an amount as people write it: 150m, 64Mi, 3."""
    if name == CPU:
        return str(Quantity(amount * 10**6))
    in_bytes = name.startswith(_MEASURED_IN_BYTES)
    return str(Quantity(amount * 10**9, Format.BINARY if in_bytes else Format.DECIMAL))


def pod_requests(spec: _Spec) -> dict[str, int]:
    """Return what the scheduler has to find for a pod: its effective requests.

    Containers together, the peak of the init containers, sidecars, and the pod's overhead.
    """
    amounts = add_amounts(parse_amounts(each.resources.requests) for each in spec.containers)
    if spec.init_containers:
        amounts = _with_init(amounts, spec.init_containers)
    if spec.resources.requests:
        amounts = {**amounts, **parse_amounts(spec.resources.requests)}
    if spec.overhead:
        amounts = add_amounts((amounts, parse_amounts(spec.overhead)))
    return amounts


def read_spec(spec: Any) -> RequestingSpec:
    """Return the part of a decoded pod spec that requests resources; msgspec.ValidationError.

    A container that names only a limit requests as much, as the API server defaults it.
    """
    read = msgspec.convert(drop_nulls(spec), RequestingSpec)
    return msgspec.structs.replace(
        read,
        containers=tuple(map(_with_default_requests, read.containers)),
        init_containers=tuple(map(_with_default_requests, read.init_containers)),
    )


def _with_default_requests(container: RequestingContainer) -> RequestingContainer:
    given = container.resources
    if not given.limits:
        return container
    resources = Resources(requests={**given.limits, **given.requests}, limits=given.limits)
    return msgspec.structs.replace(container, resources=resources)


def add_amounts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of several amounts, resource by resource."""
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def growing_resources(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return the resources of which `after` requests more, in kube-scheduler's order."""
    more = [name for name, amount in after.items() if amount > before.get(name, 0)]
    return sorted(more, key=resource_order)


def missing_room(
    allocatable: Mapping[str, int], used: Mapping[str, int], requests: Mapping[str, int]
) -> tuple[Shortage, ...]:
    """Return what a node lacks for a pod; empty if the pod fits.

    `used` is what the other pods of the node request together. `requests` may contain `pods`.
    """
    free = {name: allocatable.get(name, 0) - used.get(name, 0) for name in requests}
    return tuple(
        Shortage(name, requests[name], free[name])
        for name in sorted(requests, key=resource_order)
        if requests[name] > max(0, free[name])
    )


def resource_order(name: str) -> tuple[int, str]:
    """Return the sort key of resources: kube-scheduler's order."""
    return (_FIRST_LISTED.index(name) if name in _FIRST_LISTED else len(_FIRST_LISTED), name)


def _with_init(main: dict[str, int], init: Sequence[_Container]) -> dict[str, int]:
    """Return the requests of a pod with init containers.

    Init containers run one after the other, so their maximum counts; a sidecar keeps running
    beside everything that starts after it, so it is added. With cpu 100m for the container, init
    containers of 300m and, after a sidecar of 50m, 200m: max(100+50, 300, 50+200) = 300m.
    """
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init:
        own = parse_amounts(container.resources.requests)
        together = add_amounts((sidecars, own))
        peak = {
            name: max(peak.get(name, 0), together.get(name, 0)) for name in {**peak, **together}
        }
        if container.restart_policy == _SIDECAR:
            sidecars = together
    total = add_amounts((main, sidecars))
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in {**total, **peak}}

"""Taints and tolerations: which taints keep a pod off a node, and those daemon pods tolerate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from everynode.api import keys
from everynode.api.objects import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
SCHEDULING_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
EVICTING_EFFECTS: Final = (NO_EXECUTE,)

# In the order in which Kubernetes appends them.
_DAEMON: Final = (
    Toleration(keys.TAINT_NOT_READY, "Exists", effect=NO_EXECUTE),
    Toleration(keys.TAINT_UNREACHABLE, "Exists", effect=NO_EXECUTE),
    Toleration(keys.TAINT_DISK_PRESSURE, "Exists", effect=NO_SCHEDULE),
    Toleration(keys.TAINT_MEMORY_PRESSURE, "Exists", effect=NO_SCHEDULE),
    Toleration(keys.TAINT_PID_PRESSURE, "Exists", effect=NO_SCHEDULE),
    Toleration(keys.TAINT_UNSCHEDULABLE, "Exists", effect=NO_SCHEDULE),
)
# A pod in the host's network does not need the pod network, and may be the one that sets it up.
_HOST_NETWORK: Final = Toleration(keys.TAINT_NETWORK_UNAVAILABLE, "Exists", effect=NO_SCHEDULE)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration alone lets a pod onto a node with that taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    # Gt and Lt never match: their feature gate in Kubernetes is off by default.
    return toleration.operator == "Exists"


def find_untolerated_taint(
    taints: Sequence[Taint],
    tolerations: Sequence[Toleration],
    *,
    effects: Sequence[str] = SCHEDULING_EFFECTS,
) -> Taint | None:
    """The first taint with one of these effects that no toleration matches, or None."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def daemon_tolerations(*, host_network: bool) -> tuple[Toleration, ...]:
    """Return the tolerations that every daemon pod gets automatically."""
    return (*_DAEMON, _HOST_NETWORK) if host_network else _DAEMON


def with_daemon_tolerations(
    tolerations: Iterable[Toleration], *, host_network: bool
) -> tuple[Toleration, ...]:
    """Return a template's tolerations, followed by the automatic ones it lacks."""
    own = tuple(tolerations)
    added = (each for each in daemon_tolerations(host_network=host_network) if each not in own)
    return (*own, *added)


def with_daemon_tolerations_json(
    tolerations: Iterable[Mapping[str, Any]] | None, *, host_network: bool
) -> list[dict[str, Any]]:
    """Return the same as JSON; a toleration equal to an automatic one is replaced by it.

    That removes its tolerationSeconds: a daemon pod tolerates the taint without a time limit.
    """
    merged = [dict(each) for each in tolerations or ()]
    for wanted in daemon_tolerations(host_network=host_network):
        written = {"key": wanted.key, "operator": wanted.operator, "effect": wanted.effect}
        same = [index for index, each in enumerate(merged) if _identity(each) == wanted]
        for index in same:
            merged[index] = dict(written)
        if not same:
            merged.append(written)
    return merged


def _identity(toleration: Mapping[str, Any]) -> Toleration:
    """Return a toleration without its tolerationSeconds, for comparison."""
    return Toleration(
        toleration.get("key") or "",
        toleration.get("operator") or "",
        toleration.get("value") or "",
        toleration.get("effect") or "",
    )

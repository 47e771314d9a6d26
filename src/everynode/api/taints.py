"""Which taints keep a pod off a node, and the tolerations every daemon pod is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from everynode.api import keys
from everynode.api.objects import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
REPELLING: Final = (NO_SCHEDULE, NO_EXECUTE)
EVICTING: Final = (NO_EXECUTE,)

# In the order in which Kubernetes appends them.
_DAEMON: Final = (
    Toleration(keys.TAINT_NOT_READY, "Exists", effect=NO_EXECUTE),
    Toleration(keys.TAINT_UNREACHABLE, "Exists", effect=NO_EXECUTE),
    Toleration(keys.TAINT_DISK_PRESSURE, "Exists", effect=NO_SCHEDULE),
    Toleration(keys.TAINT_MEMORY_PRESSURE, "Exists", effect=NO_SCHEDULE),
    Toleration(keys.TAINT_PID_PRESSURE, "Exists", effect=NO_SCHEDULE),
    Toleration(keys.TAINT_UNSCHEDULABLE, "Exists", effect=NO_SCHEDULE),
)
# A pod in the host's network does not wait for the network that it may be there to set up.
_HOST_NETWORK: Final = Toleration(keys.TAINT_NETWORK_UNAVAILABLE, "Exists", effect=NO_SCHEDULE)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration alone lets a pod onto a node with that taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    # Gt and Lt stay false: Kubernetes has them behind a gate that is off.
    return toleration.operator == "Exists"


def untolerated(
    taints: Sequence[Taint],
    tolerations: Sequence[Toleration],
    *,
    effects: Sequence[str] = REPELLING,
) -> Taint | None:
    """The first taint with one of these effects that nothing tolerates, None if there is none."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def daemon_tolerations(*, host_network: bool) -> tuple[Toleration, ...]:
    """The tolerations that every daemon pod has without asking."""
    return (*_DAEMON, _HOST_NETWORK) if host_network else _DAEMON


def with_daemon_tolerations(
    tolerations: Iterable[Toleration], *, host_network: bool
) -> tuple[Toleration, ...]:
    """A template's tolerations followed by the automatic ones it does not have yet."""
    own = tuple(tolerations)
    added = (each for each in daemon_tolerations(host_network=host_network) if each not in own)
    return (*own, *added)


def with_daemon_tolerations_json(
    tolerations: Iterable[Mapping[str, Any]] | None, *, host_network: bool
) -> list[dict[str, Any]]:
    """The same on the JSON of a pod; one of the template's that is the same is replaced.

    Replacing drops its tolerationSeconds: a daemon pod stays for as long as the taint does.
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
    """What makes two tolerations the same one, however long they last."""
    return Toleration(
        toleration.get("key") or "",
        toleration.get("operator") or "",
        toleration.get("value") or "",
        toleration.get("effect") or "",
    )

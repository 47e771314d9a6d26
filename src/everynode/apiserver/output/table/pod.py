"""Table row of a pod: ready containers, status and restarts."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from everynode.apiserver.output.table.cells import (
    NONE,
    Row,
    age_of,
    format_age,
    get_list,
    get_object,
    name_of,
)

Object = dict[str, Any]

_FINISHED_MESSAGES: Final = {
    "Succeeded": "All containers of the pod ended well.",
    "Failed": "The pod ended, and not all of its containers ended well.",
}


class _PodSummary(NamedTuple):
    """What the containers of a pod add up to."""

    status: str
    ready: int
    restarts: int
    last_restart: str  # a time, empty if there was none


def pod_row(obj: Object, now: float) -> Row:
    """A pod."""
    spec, status = get_object(obj, "spec"), get_object(obj, "status")
    summary = _summarise(spec, status)
    total = len(get_list(spec, "containers"))
    total += sum(_restartable(container) for container in get_list(spec, "initContainers"))
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts += f" ({format_age(summary.last_restart, now)} ago)"
    addresses = get_list(status, "podIPs")
    cells = [
        name_of(obj),
        f"{summary.ready}/{total}",
        _final_status(obj, summary.status),
        restarts,
        age_of(obj, now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]
    return Row(cells, _row_conditions(status.get("phase", "")))


def _row_conditions(phase: str) -> list[Object] | None:
    message = _FINISHED_MESSAGES.get(phase)
    if message is None:
        return None
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _restartable(container: Object | None) -> bool:
    return container is not None and container.get("restartPolicy") == "Always"


def _condition(status: Object, kind: str) -> str:
    listed = get_list(status, "conditions")
    return next((c.get("status", "") for c in listed if c.get("type") == kind), "")


def _summarise(spec: Object, status: Object) -> _PodSummary:
    first = _initial_status(status)
    starting, begun = _summarise_init_containers(spec, status, first)
    if begun and _condition(status, "Initialized") != "True":
        return starting
    # Restarts of finished init containers do not count; those of sidecars do.
    sidecars = [s for s in get_list(status, "initContainerStatuses") if _is_sidecar(spec, s)]
    return _summarise_containers(status, starting, sidecars)


def _initial_status(status: Object) -> str:
    reason = status.get("reason") or status.get("phase") or ""
    for condition in get_list(status, "conditions"):
        gated = condition.get("reason") == "SchedulingGated"
        if gated and condition.get("type") == "PodScheduled":
            reason = "SchedulingGated"
    return str(reason)


def _is_sidecar(spec: Object, status: Object) -> bool:
    listed = get_list(spec, "initContainers")
    return _restartable(next((c for c in listed if c.get("name") == status.get("name")), None))


def _summarise_init_containers(
    spec: Object, status: Object, reason: str
) -> tuple[_PodSummary, bool]:
    """Summarise the init containers; True if one of them is still to finish."""
    ready = restarts = 0
    last = ""
    total = len(get_list(spec, "initContainers"))
    for index, container in enumerate(get_list(status, "initContainerStatuses")):
        restarts += container.get("restartCount", 0)
        last = max(last, _last_terminated_at(container))
        state = get_object(container, "state")
        ended = state.get("terminated")
        if isinstance(ended, dict) and ended.get("exitCode", 0) == 0:
            continue
        if _is_sidecar(spec, container) and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        reason = f"Init:{_init_status(state, index, total)}"
        return _PodSummary(reason, ready, restarts, last), True
    return _PodSummary(reason, ready, restarts, last), False


def _init_status(state: Object, index: int, total: int) -> str:
    ended = state.get("terminated")
    if isinstance(ended, dict):
        return _termination_reason(ended)
    waiting = get_object(state, "waiting").get("reason", "")
    return waiting if waiting not in ("", "PodInitializing") else f"{index}/{total}"


def _termination_reason(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _last_terminated_at(container: Object) -> str:
    """Return when a container last terminated before a restart; these times sort as strings."""
    return str(get_object(container, "lastState", "terminated").get("finishedAt") or "")


def _summarise_containers(
    status: Object, starting: _PodSummary, sidecars: list[Object]
) -> _PodSummary:
    """Summarise the containers from the last to the first, so that the first one decides."""
    reason, failure = starting.status, ""
    ready, running = starting.ready, False
    restarts = sum(container.get("restartCount", 0) for container in sidecars)
    last = max((_last_terminated_at(container) for container in sidecars), default="")
    for container in reversed(get_list(status, "containerStatuses")):
        restarts += container.get("restartCount", 0)
        last = max(last, _last_terminated_at(container))
        state = get_object(container, "state")
        ended = state.get("terminated")
        if get_object(state, "waiting").get("reason"):
            reason = state["waiting"]["reason"]
        elif isinstance(ended, dict):
            reason = _termination_reason(ended)
            failure = reason if ended.get("exitCode", 0) != 0 else failure
        elif container.get("ready") and isinstance(state.get("running"), dict):
            running = True
            ready += 1
    if reason == "Completed":
        reason = _status_when_completed(status, running=running, failure=failure)
    return _PodSummary(reason, ready, restarts, last)


def _status_when_completed(status: Object, *, running: bool, failure: str) -> str:
    """Return the status of a pod one of whose containers has completed."""
    if running and _condition(status, "Ready") == "True":
        return "Running"
    return failure or ("NotReady" if running else "Completed")


def _final_status(obj: Object, reason: str) -> str:
    status = get_object(obj, "status")
    if not get_object(obj, "metadata").get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _gates(spec: Object, status: Object) -> str:
    gates = get_list(spec, "readinessGates")
    if not gates:
        return NONE
    met = sum(_condition(status, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"

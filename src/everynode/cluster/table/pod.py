"""The row of a pod: how many containers are ready, and in one word how it is."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from everynode.cluster.table.cells import NONE, Row, age_of, items, name_of, part, since

Object = dict[str, Any]

_MARKS: Final = {
    "Succeeded": "All containers of the pod ended well.",
    "Failed": "The pod ended, and not all of its containers ended well.",
}


class _Look(NamedTuple):
    """What the containers of a pod tell together."""

    status: str
    ready: int
    restarts: int
    last_restart: str  # a time, empty if there was none


def pod_row(obj: Object, now: float) -> Row:
    """A pod."""
    spec, status = part(obj, "spec"), part(obj, "status")
    look = _look(spec, status)
    total = len(items(spec, "containers"))
    total += sum(_restartable(container) for container in items(spec, "initContainers"))
    restarts = str(look.restarts)
    if look.restarts and look.last_restart:
        restarts += f" ({since(look.last_restart, now)} ago)"
    addresses = items(status, "podIPs")
    cells = [
        name_of(obj),
        f"{look.ready}/{total}",
        _final_status(obj, look.status),
        restarts,
        age_of(obj, now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]
    return Row(cells, _marks(status.get("phase", "")))


def _marks(phase: str) -> list[Object] | None:
    message = _MARKS.get(phase)
    if message is None:
        return None
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _restartable(container: Object | None) -> bool:
    return container is not None and container.get("restartPolicy") == "Always"


def _condition(status: Object, kind: str) -> str:
    listed = items(status, "conditions")
    return next((c.get("status", "") for c in listed if c.get("type") == kind), "")


def _look(spec: Object, status: Object) -> _Look:
    first = _first_word(status)
    starting, begun = _initialising(spec, status, first)
    if begun and _condition(status, "Initialized") != "True":
        return starting
    # Restarts of init containers that are done no longer count; those that keep running do.
    sidecars = [s for s in items(status, "initContainerStatuses") if _is_sidecar(spec, s)]
    return _running(status, starting, sidecars)


def _first_word(status: Object) -> str:
    word = status.get("reason") or status.get("phase") or ""
    for condition in items(status, "conditions"):
        gated = condition.get("reason") == "SchedulingGated"
        if gated and condition.get("type") == "PodScheduled":
            word = "SchedulingGated"
    return str(word)


def _is_sidecar(spec: Object, status: Object) -> bool:
    listed = items(spec, "initContainers")
    return _restartable(next((c for c in listed if c.get("name") == status.get("name")), None))


def _initialising(spec: Object, status: Object, word: str) -> tuple[_Look, bool]:
    """The look of a pod whose init containers are at work, and whether they are."""
    ready = restarts = 0
    last = ""
    total = len(items(spec, "initContainers"))
    for index, container in enumerate(items(status, "initContainerStatuses")):
        restarts += container.get("restartCount", 0)
        last = max(last, _ended(container))
        state = part(container, "state")
        ended = state.get("terminated")
        if isinstance(ended, dict) and ended.get("exitCode", 0) == 0:
            continue
        if _is_sidecar(spec, container) and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        word = f"Init:{_init_word(state, index, total)}"
        return _Look(word, ready, restarts, last), True
    return _Look(word, ready, restarts, last), False


def _init_word(state: Object, index: int, total: int) -> str:
    ended = state.get("terminated")
    if isinstance(ended, dict):
        return _end_word(ended)
    waiting = part(state, "waiting").get("reason", "")
    return waiting if waiting not in ("", "PodInitializing") else f"{index}/{total}"


def _end_word(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _ended(container: Object) -> str:
    """When a container ended the last time it was restarted; such times sort as texts."""
    return str(part(container, "lastState", "terminated").get("finishedAt") or "")


def _running(status: Object, starting: _Look, sidecars: list[Object]) -> _Look:
    """The look of a pod whose containers are at work, the first of them speaking last."""
    word, failure = starting.status, ""
    ready, running = starting.ready, False
    restarts = sum(container.get("restartCount", 0) for container in sidecars)
    last = max((_ended(container) for container in sidecars), default="")
    for container in reversed(items(status, "containerStatuses")):
        restarts += container.get("restartCount", 0)
        last = max(last, _ended(container))
        state = part(container, "state")
        ended = state.get("terminated")
        if part(state, "waiting").get("reason"):
            word = state["waiting"]["reason"]
        elif isinstance(ended, dict):
            word = _end_word(ended)
            failure = word if ended.get("exitCode", 0) != 0 else failure
        elif container.get("ready") and isinstance(state.get("running"), dict):
            running = True
            ready += 1
    if word == "Completed":
        word = _not_completed(status, running=running, failure=failure)
    return _Look(word, ready, restarts, last)


def _not_completed(status: Object, *, running: bool, failure: str) -> str:
    """The word for a pod of which one container has ended well."""
    if running and _condition(status, "Ready") == "True":
        return "Running"
    return failure or ("NotReady" if running else "Completed")


def _final_status(obj: Object, word: str) -> str:
    status = part(obj, "status")
    if not part(obj, "metadata").get("deletionTimestamp"):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _gates(spec: Object, status: Object) -> str:
    gates = items(spec, "readinessGates")
    if not gates:
        return NONE
    met = sum(_condition(status, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"

"""The status a kubelet writes for a pod."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.objects import Resources
from everynode.api.times import format_time
from everynode.cluster.machinery.containers import ContainerLife, End, Stage
from everynode.cluster.machinery.images import image_id
from everynode.cluster.machinery.lives import Course, PodLife, Told

Object = dict[str, Any]
Row = tuple[str, str, str, str]  # type, status, reason, message

OWN_CONDITIONS: Final = ("Initialized", "Ready", "ContainersReady")
_RESIZE: Final = ("PodResizePending", "PodResizeInProgress")


def pod_status(life: PodLife) -> Object:
    """The whole status, as a strategic patch of what is there."""
    phase, begun = life.phase, life.begun
    status: Object = {
        "observedGeneration": life.generation,
        "phase": phase,
        "conditions": _conditions(life, _rows(life, phase, begun=begun)),
        "hostIP": life.place.address,
        "hostIPs": [{"ip": life.place.address}],
    }
    if life.failure is not None:
        status["reason"], status["message"] = life.failure
    if life.ip and begun:
        status["podIP"] = life.ip
        status["podIPs"] = [{"ip": life.ip}]
    status["startTime"] = life.start_time
    if life.init:
        status["initContainerStatuses"] = [_container(each, life) for each in life.init]
    if life.failure is None or begun:
        status["containerStatuses"] = [_container(each, life) for each in life.containers]
    return status


# --- Conditions --------------------------------------------------------------------------------


def _conditions(life: PodLife, rows: list[Row]) -> list[Object]:
    now = format_time(life.wall())
    written: list[Object] = []
    for kind, status, reason, message in rows:
        told = life.conditions.get(kind)
        if told is None:
            told = life.conditions[kind] = Told(status, now, explained=False)
        elif told.status != status:
            told.status, told.since = status, now
        condition: Object = {
            "type": kind,
            "status": status,
            "lastTransitionTime": told.since,
            "observedGeneration": life.generation,
        }
        # A patch keeps what it does not name: a reason that no longer holds is taken away.
        if reason or told.explained:
            told.explained = True
            condition["reason"] = reason or None
            condition["message"] = message or None
        written.append(condition)
    for kind in _RESIZE:
        if kind in life.conditions and not any(row[0] == kind for row in rows):
            del life.conditions[kind]
            written.append({"$patch": "delete", "type": kind})
    return written


def _rows(life: PodLife, phase: str, *, begun: bool) -> list[Row]:
    sandbox = "True" if begun and life.course is not Course.STOPPED else "False"
    containers = _containers_ready(life, phase)
    rows = [
        ("PodReadyToStartContainers", sandbox, "", ""),
        _initialized(life, phase),
        _ready(life, containers),
        ("ContainersReady", *containers),
        ("PodScheduled", "True", "", ""),
    ]
    if life.failure is not None and life.failure[0] == "Evicted":
        rows.append(("DisruptionTarget", "True", "TerminationByKubelet", life.failure[1]))
    resize = life.resize
    if resize is not None and resize.reason:
        rows.append(("PodResizePending", "True", resize.reason, resize.message))
    elif resize is not None:
        rows.append(("PodResizeInProgress", "True", "", ""))
    return rows


def _initialized(life: PodLife, phase: str) -> Row:
    if life.initialized or phase == "Succeeded":
        return "Initialized", "True", "", ""
    missing = [each.spec.name for each in life.init if not each.over]
    text = f"containers with incomplete status: [{' '.join(missing)}]"
    return "Initialized", "False", "ContainersNotInitialized", text


def _containers_ready(life: PodLife, phase: str) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return "False", "PodCompleted", ""
    if phase == "Failed":
        return "False", "PodFailed", ""
    unready = [each.spec.name for each in life.containers if not each.ready]
    if not unready:
        return "True", "", ""
    text = f"containers with unready status: [{' '.join(unready)}]"
    return "False", "ContainersNotReady", text


def _ready(life: PodLife, containers: tuple[str, str, str]) -> Row:
    if containers[0] != "True":
        return "Ready", *containers
    unmet = []
    for gate in life.pod.spec.readiness_gates:
        condition = life.pod.condition(gate.condition_type)
        if condition is None:
            unmet.append(
                "corresponding condition of pod readiness gate "
                f'"{gate.condition_type}" does not exist.'
            )
        elif condition.status != "True":
            unmet.append(
                f'the status of pod readiness gate "{gate.condition_type}" is not "True", '
                f"but {condition.status}"
            )
    if unmet:
        return "Ready", "False", "ReadinessGatesNotReady", ", ".join(unmet)
    return "Ready", "True", "", ""


# --- Containers --------------------------------------------------------------------------------


def _container(each: ContainerLife, life: PodLife) -> Object:
    started = each.stage in (Stage.RUNNING, Stage.STOPPING)
    status: Object = {
        "name": each.spec.name,
        "state": _state(each, life),
        "lastState": _last_state(each),
        "ready": each.ready,
        "restartCount": each.restarts,
        "image": each.image,
        "imageID": image_id(each.image) if each.id else "",
        "started": started,
    }
    if each.id:
        status["containerID"] = each.id
    if started:
        if each.resources.requests:
            status["allocatedResources"] = each.resources.requests
        status["resources"] = _resources(each.resources)
    return status


def _resources(resources: Resources) -> Object:
    written: Object = {}
    if resources.requests:
        written["requests"] = resources.requests
    if resources.limits:
        written["limits"] = resources.limits
    return written


def _state(each: ContainerLife, life: PodLife) -> Object:
    if each.running:
        return {"running": {"startedAt": each.started_at}}
    if each.waiting is not None and not each.over:
        return {"waiting": {"reason": each.waiting[0], "message": each.waiting[1]}}
    if each.end is not None:
        return {"terminated": _terminated(each.end)}
    reason = "ContainerCreating" if not life.init or life.initialized else "PodInitializing"
    return {"waiting": {"reason": reason}}


def _last_state(each: ContainerLife) -> Object:
    last = each.previous if each.waiting is None or each.over else each.end or each.previous
    return {} if last is None else {"terminated": _terminated(last)}


def _terminated(end: End) -> Object:
    return {
        "exitCode": end.exit_code,
        "reason": end.reason,
        "startedAt": end.started_at,
        "finishedAt": end.finished_at,
        "containerID": end.container_id,
    }

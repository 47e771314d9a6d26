"""Pod status: what a kubelet writes for a simulated pod."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.objects import Resources
from everynode.api.times import format_time
from everynode.components.kubelet.container import ContainerPhase, SimulatedContainer, Termination
from everynode.components.kubelet.images import image_id
from everynode.components.kubelet.pod import PodState, SimulatedPod
from everynode.components.kubelet.registration import ConditionRow
from everynode.components.kubelet.reported_status import WrittenCondition

Object = dict[str, Any]

KUBELET_CONDITIONS: Final = ("Initialized", "Ready", "ContainersReady")
_RESIZE_CONDITIONS: Final = ("PodResizePending", "PodResizeInProgress")


def pod_status(pod: SimulatedPod) -> Object:
    """The whole status, as a strategic merge patch of the one in the API."""
    phase, started = pod.phase, pod.has_started
    status: Object = {
        "observedGeneration": pod.generation,
        "phase": phase,
        "conditions": _conditions(pod, _condition_rows(pod, phase, started=started)),
        "hostIP": pod.node.address,
        "hostIPs": [{"ip": pod.node.address}],
    }
    if pod.failure is not None:
        status["reason"], status["message"] = pod.failure
    if pod.ip and started:
        status["podIP"] = pod.ip
        status["podIPs"] = [{"ip": pod.ip}]
    status["startTime"] = pod.start_time
    if pod.init_containers:
        status["initContainerStatuses"] = [
            _container_status(each, pod) for each in pod.init_containers
        ]
    if pod.failure is None or started:
        status["containerStatuses"] = [_container_status(each, pod) for each in pod.containers]
    return status


# --- Conditions --------------------------------------------------------------------------------


def _conditions(pod: SimulatedPod, rows: list[ConditionRow]) -> list[Object]:
    now = format_time(pod.wall_time())
    patch: list[Object] = []
    for kind, status, reason, message in rows:
        written = pod.reported.conditions.get(kind)
        if written is None:
            written = pod.reported.conditions[kind] = WrittenCondition(
                status, now, had_reason=False
            )
        elif written.status != status:
            written.status, written.since = status, now
        condition: Object = {
            "type": kind,
            "status": status,
            "lastTransitionTime": written.since,
            "observedGeneration": pod.generation,
        }
        # A patch keeps the fields it does not name: a reason that no longer holds is set to null.
        if reason or written.had_reason:
            written.had_reason = True
            condition["reason"] = reason or None
            condition["message"] = message or None
        patch.append(condition)
    for kind in _RESIZE_CONDITIONS:
        if kind in pod.reported.conditions and not any(row[0] == kind for row in rows):
            del pod.reported.conditions[kind]
            patch.append({"$patch": "delete", "type": kind})
    return patch


def _condition_rows(pod: SimulatedPod, phase: str, *, started: bool) -> list[ConditionRow]:
    sandbox = "True" if started and pod.state is not PodState.TERMINATED else "False"
    containers = _containers_ready(pod, phase)
    rows = [
        ("PodReadyToStartContainers", sandbox, "", ""),
        _initialized_condition(pod, phase),
        _ready(pod, containers),
        ("ContainersReady", *containers),
        ("PodScheduled", "True", "", ""),
    ]
    if pod.failure is not None and pod.failure[0] == "Evicted":
        rows.append(("DisruptionTarget", "True", "TerminationByKubelet", pod.failure[1]))
    resize = pod.resize
    if resize is not None and resize.reason:
        rows.append(("PodResizePending", "True", resize.reason, resize.message))
    elif resize is not None:
        rows.append(("PodResizeInProgress", "True", "", ""))
    return rows


def _initialized_condition(pod: SimulatedPod, phase: str) -> ConditionRow:
    if pod.initialized or phase == "Succeeded":
        return "Initialized", "True", "", ""
    missing = [each.spec.name for each in pod.init_containers if not each.ended]
    text = f"containers with incomplete status: [{' '.join(missing)}]"
    return "Initialized", "False", "ContainersNotInitialized", text


def _containers_ready(pod: SimulatedPod, phase: str) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return "False", "PodCompleted", ""
    if phase == "Failed":
        return "False", "PodFailed", ""
    unready = [each.spec.name for each in pod.containers if not each.ready]
    if not unready:
        return "True", "", ""
    text = f"containers with unready status: [{' '.join(unready)}]"
    return "False", "ContainersNotReady", text


def _ready(pod: SimulatedPod, containers: tuple[str, str, str]) -> ConditionRow:
    if containers[0] != "True":
        return "Ready", *containers
    unmet = []
    for gate in pod.api_object.spec.readiness_gates:
        condition = pod.api_object.condition(gate.condition_type)
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


def _container_status(container: SimulatedContainer, pod: SimulatedPod) -> Object:
    started = container.state in (ContainerPhase.RUNNING, ContainerPhase.STOPPING)
    status: Object = {
        "name": container.spec.name,
        "state": _state(container, pod),
        "lastState": _last_state(container),
        "ready": container.ready,
        "restartCount": container.restart_count,
        "image": container.image,
        "imageID": image_id(container.image) if container.id else "",
        "started": started,
    }
    if container.id:
        status["containerID"] = container.id
    if started:
        if container.resources.requests:
            status["allocatedResources"] = container.resources.requests
        status["resources"] = _resources(container.resources)
    return status


def _resources(resources: Resources) -> Object:
    written: Object = {}
    if resources.requests:
        written["requests"] = resources.requests
    if resources.limits:
        written["limits"] = resources.limits
    return written


def _state(container: SimulatedContainer, pod: SimulatedPod) -> Object:
    if container.running:
        return {"running": {"startedAt": container.started_at}}
    if container.waiting is not None and not container.ended:
        return {"waiting": {"reason": container.waiting[0], "message": container.waiting[1]}}
    if container.termination is not None:
        return {"terminated": _terminated_state(container.termination)}
    reason = (
        "ContainerCreating" if not pod.init_containers or pod.initialized else "PodInitializing"
    )
    return {"waiting": {"reason": reason}}


def _last_state(container: SimulatedContainer) -> Object:
    last = (
        container.last_termination
        if container.waiting is None or container.ended
        else container.termination or container.last_termination
    )
    return {} if last is None else {"terminated": _terminated_state(last)}


def _terminated_state(termination: Termination) -> Object:
    return {
        "exitCode": termination.exit_code,
        "reason": termination.reason,
        "startedAt": termination.started_at,
        "finishedAt": termination.finished_at,
        "containerID": termination.container_id,
    }

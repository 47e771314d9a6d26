"""Validation of containers: names, images, ports, mounts, resize and restart policies."""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.api.validation.accessors import flag, number, section, sections, text
from everynode.api.validation.environment import check_environment
from everynode.api.validation.field_errors import (
    FieldErrors,
    Object,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    not_found,
    required,
    too_many,
    unsupported,
)
from everynode.api.validation.names import (
    dns_label,
    no_parent_path,
    port_name,
    port_number,
    relative_path,
)
from everynode.api.validation.probe import PROBES, check_lifecycle, check_probes
from everynode.api.validation.resources import check_resources
from everynode.api.validation.security import check_container_security

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY_MODES: Final = ("Disabled", "Enabled", "IfPossible")


class PodContext(msgspec.Struct, frozen=True):
    """Fields of the pod that the rules of a container depend on."""

    volumes: dict[str, Object]
    claims: list[str]
    grace: int | None
    host_users: bool


def check_containers(spec: Object, path: str, pod: PodContext) -> FieldErrors:
    """Errors in the containers of a pod, the init containers after the others."""
    containers = list(sections(spec, "containers", path))
    if not containers:
        yield required(f"{path}.containers")
    names: list[str] = []
    for here, container in containers:
        yield from _check_container(container, here, pod)
        yield from _check_unique(container, here, names)
        yield from check_lifecycle(container, here, grace=pod.grace)
        yield from check_probes(container, here)
        yield from _check_restarts(container, here)
    yield from _check_host_ports(containers)
    for here, container in sections(spec, "initContainers", path):
        yield from _check_container(container, here, pod)
        yield from _check_restarts(container, here)
        yield from _check_unique(container, here, names)
        yield from _check_host_ports([(here, container)])
        yield from _check_init(container, here, pod)


def _check_unique(container: Object, path: str, names: list[str]) -> FieldErrors:
    name = text(container, "name")
    if name and name in names:
        yield duplicate(f"{path}.name", name)
    names.append(name)


def _check_init(container: Object, path: str, pod: PodContext) -> FieldErrors:
    if container.get("restartPolicy") == "Always":
        yield from check_lifecycle(container, path, grace=pod.grace)
        yield from check_probes(container, path)
        return
    for name in ("lifecycle", *PROBES):
        if container.get(name) is not None:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{path}.{name}", detail)
    for here, policy in sections(container, "resizePolicy", path):
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid(f"{here}.restartPolicy", "RestartContainer", detail)


def _check_container(container: Object, path: str, pod: PodContext) -> FieldErrors:
    name = text(container, "name")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from invalid_each(f"{path}.name", name, dns_label(name))
    if not text(container, "image"):
        yield required(f"{path}.image")
    policy = text(container, "terminationMessagePolicy")
    if policy not in ("File", "FallbackToLogsOnError"):
        supported = ("File", "FallbackToLogsOnError")
        yield unsupported(f"{path}.terminationMessagePolicy", policy, supported)
    yield from _check_ports(container, path)
    yield from check_environment(container, path)
    yield from _check_mounts(container, path, pod.volumes)
    yield from _check_devices(container, path, pod.volumes)
    pull = text(container, "imagePullPolicy")
    if pull not in _PULL_POLICIES:
        yield unsupported(f"{path}.imagePullPolicy", pull, _PULL_POLICIES)
    resources = section(container, "resources") or {}
    yield from check_resources(resources, f"{path}.resources", claims=pod.claims)
    yield from _check_resizing(container, path)
    yield from check_container_security(container, path, host_users=pod.host_users)


# --- Ports -------------------------------------------------------------------------------------


def _check_ports(container: Object, path: str) -> FieldErrors:
    names: list[str] = []
    for here, port in sections(container, "ports", path):
        name = text(port, "name")
        if name:
            wrong = list(port_name(name))
            yield from invalid_each(f"{here}.name", name, wrong)
            if not wrong and name in names:
                yield duplicate(f"{here}.name", name)
            names.append(name)
        inside, outside = number(port, "containerPort") or 0, number(port, "hostPort") or 0
        if inside == 0:
            yield required(f"{here}.containerPort")
        else:
            yield from invalid_each(f"{here}.containerPort", inside, port_number(inside))
        if outside != 0:
            yield from invalid_each(f"{here}.hostPort", outside, port_number(outside))
        protocol = text(port, "protocol")
        if protocol not in _PROTOCOLS:
            yield unsupported(f"{here}.protocol", protocol, _PROTOCOLS)


def _check_host_ports(containers: list[tuple[str, Object]]) -> FieldErrors:
    """Errors for host ports that are used twice."""
    taken: list[str] = []
    for path, container in containers:
        for here, port in sections(container, "ports", path):
            if not number(port, "hostPort"):
                continue
            printed = f"{text(port, 'protocol')}/{text(port, 'hostIP')}/{port['hostPort']}"
            if printed in taken:
                yield duplicate(f"{here}.hostPort", printed)
            taken.append(printed)


# --- Mounts ------------------------------------------------------------------------------------


def _check_mounts(container: Object, path: str, volumes: dict[str, Object]) -> FieldErrors:
    devices = [device for _, device in sections(container, "volumeDevices", path)]
    paths: list[str] = []
    for here, mount in sections(container, "volumeMounts", path):
        name, where = text(mount, "name"), text(mount, "mountPath")
        if not name:
            yield required(f"{here}.name")
        if name not in volumes:
            yield not_found(f"{here}.name", name)
        if not where:
            yield required(f"{here}.mountPath")
        if where in paths:
            yield invalid(f"{here}.mountPath", where, "must be unique")
        paths.append(where)
        if any(text(device, "name") == name for device in devices):
            yield invalid(f"{here}.name", name, "must not already exist in volumeDevices")
        if any(text(device, "devicePath") == where for device in devices):
            detail = "must not already exist as a path in volumeDevices"
            yield invalid(f"{here}.mountPath", where, detail)
        yield from _check_mount_options(mount, here, f"{path}.volumeMounts", container)


def _check_mount_options(mount: Object, path: str, whole: str, container: Object) -> FieldErrors:
    """The API server leaves the index of the mount out of most of these paths."""
    inside, expression = text(mount, "subPath"), text(mount, "subPathExpr")
    yield from invalid_each(f"{whole}.subPath", inside, relative_path(inside))
    if expression and inside:
        detail = "subPathExpr and subPath are mutually exclusive"
        yield invalid(f"{path}.subPathExpr", expression, detail)
    yield from invalid_each(f"{whole}.subPathExpr", expression, relative_path(expression))
    propagation = mount.get("mountPropagation")
    if propagation is not None and propagation not in _PROPAGATIONS:
        yield unsupported(f"{whole}.mountPropagation", propagation, _PROPAGATIONS)
    context = section(container, "securityContext") or {}
    if propagation == "Bidirectional" and not flag(context, "privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden(f"{whole}.mountPropagation", detail)
    mode, here = mount.get("recursiveReadOnly"), f"{whole}.recursiveReadOnly"
    if mode is None or mode == "Disabled":
        return
    if mode not in _READ_ONLY_MODES:
        yield unsupported(here, mode, _READ_ONLY_MODES)
        return
    if not flag(mount, "readOnly"):
        yield forbidden(here, "may only be specified when readOnly is true")
    if propagation not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        yield forbidden(here, detail)


def _check_devices(container: Object, path: str, volumes: dict[str, Object]) -> FieldErrors:
    mounts = [mount for _, mount in sections(container, "volumeMounts", path)]
    names: list[str] = []
    paths: list[str] = []
    for here, device in sections(container, "volumeDevices", path):
        name, where = text(device, "name"), text(device, "devicePath")
        yield from _check_device_name(name, f"{here}.name", names, volumes)
        if not where:
            yield required(f"{here}.devicePath")
        if where in paths:
            yield invalid(f"{here}.devicePath", where, "must be unique")
        if list(no_parent_path(where)):
            yield invalid(f"{here}.devicePath", where, "can not contain backsteps ('..')")
        if any(text(mount, "name") == name for mount in mounts):
            yield invalid(f"{here}.name", name, "must not already exist in volumeMounts")
        if any(text(mount, "mountPath") == where for mount in mounts):
            detail = "must not already exist as a path in volumeMounts"
            yield invalid(f"{here}.devicePath", where, detail)
        names.append(name)
        paths.append(where)


def _check_device_name(
    name: str, path: str, names: list[str], volumes: dict[str, Object]
) -> FieldErrors:
    if not name:
        yield required(path)
    if name and name in names:
        yield invalid(path, name, "must be unique")
    volume = volumes.get(name)
    if volume is None:
        yield not_found(path, name)
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        detail = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        yield invalid(path, name, detail)


# --- Restarts ----------------------------------------------------------------------------------


def _check_resizing(container: Object, path: str) -> FieldErrors:
    """Errors in the resize policy; the API server names the list, not the item, in most paths."""
    seen: list[str] = []
    whole = f"{path}.resizePolicy"
    for here, policy in sections(container, "resizePolicy", path):
        name, restart = text(policy, "resourceName"), text(policy, "restartPolicy")
        if name in seen:
            yield duplicate(here, name)
        seen.append(name)
        for value, supported in (
            (name, ("cpu", "memory")),
            (restart, ("NotRequired", "RestartContainer")),
        ):
            if not value:
                yield required(whole)
            elif value not in supported:
                yield unsupported(whole, value, supported)


def _check_restarts(container: Object, path: str) -> FieldErrors:
    policy, rules = (
        container.get("restartPolicy"),
        list(sections(container, "restartPolicyRules", path)),
    )
    if policy is None:
        if rules:
            detail = "must specify restartPolicy when restart rules are used"
            yield required(f"{path}.restartPolicy", detail)
    elif policy not in _RESTART_POLICIES:
        yield unsupported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        yield too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for here, rule in rules:
        action = text(rule, "action")
        if action not in ("Restart", "RestartAllContainers"):
            supported = ("Restart", "RestartAllContainers")
            yield unsupported(f"{here}.action", action, supported)
        codes = section(rule, "exitCodes")
        if codes is None:
            yield required(f"{here}.exitCodes", "must be specified")
        elif text(codes, "operator") not in ("In", "NotIn"):
            operator = text(codes, "operator")
            yield unsupported(f"{here}.exitCodes.operator", operator, ("In", "NotIn"))

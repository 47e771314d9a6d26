"""Validation of security contexts: ids in range, profiles that fit their type."""

from __future__ import annotations

import re
from typing import Final

from everynode.api.validation.accessors import flag, number, section, sections, text, texts
from everynode.api.validation.field_errors import (
    FieldErrors,
    Object,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    required,
    unsupported,
)
from everynode.api.validation.names import relative_path, user_id

_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
_sysctl: Final = re.compile(_SYSCTL)
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def check_container_security(container: Object, path: str, *, host_users: bool) -> FieldErrors:
    """Errors in the security context of a container."""
    context = section(container, "securityContext")
    if context is None:
        return
    here = f"{path}.securityContext"
    yield from _check_ids(context, here, ("runAsUser", "runAsGroup"))
    proc = context.get("procMount")
    if proc is not None and proc not in ("Default", "Unmasked"):
        yield unsupported(f"{here}.procMount", proc, ("Default", "Unmasked"))
    if proc == "Unmasked" and host_users:
        yield invalid(f"{here}.procMount", proc, "`hostUsers` must be false to use `Unmasked`")
    yield from _check_seccomp(context, here)
    if context.get("allowPrivilegeEscalation") is False:
        yield from _check_escalation(context, here)
    yield from _check_app_armor(context, here)


def check_pod_security(spec: Object, path: str, *, is_pod: bool) -> FieldErrors:
    """Errors in the security context of a pod."""
    context = section(spec, "securityContext") or {}
    here = f"{path}.securityContext"
    yield from _check_ids(context, here, ("fsGroup", "runAsUser", "runAsGroup"))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from invalid_each(f"{here}.supplementalGroups[{index}]", group, user_id(group))
    if flag(spec, "shareProcessNamespace") and flag(spec, "hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", True, detail)
    yield from _check_sysctls(spec, context, here, is_pod=is_pod)
    for name, supported in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        policy = context.get(name)
        if policy is not None and policy not in supported:
            yield unsupported(f"{here}.{name}", policy, supported)
    yield from _check_seccomp(context, here)
    yield from _check_app_armor(context, here)
    if spec.get("hostUsers") is False:
        yield from _check_user_namespace(spec, path)


def _check_ids(context: Object, path: str, names: tuple[str, ...]) -> FieldErrors:
    for name in names:
        value = number(context, name)
        if value is not None:
            yield from invalid_each(f"{path}.{name}", value, user_id(value))


def _check_escalation(context: Object, path: str) -> FieldErrors:
    prefix = "cannot set `allowPrivilegeEscalation` to false and"
    if flag(context, "privileged"):
        yield invalid(path, context, f"{prefix} `privileged` to true")
    capabilities = section(context, "capabilities") or {}
    if "CAP_SYS_ADMIN" in texts(capabilities, "add"):
        yield invalid(path, context, f"{prefix} `capabilities.Add` CAP_SYS_ADMIN")


def _check_profile_type(profile: Object, path: str) -> FieldErrors:
    kind = text(profile, "type")
    if not kind:
        yield required(f"{path}.type", f"type is required when {path.rpartition('.')[2]} is set")
    elif kind not in _PROFILES:
        yield unsupported(f"{path}.type", kind, _PROFILES)


def _check_seccomp(context: Object, path: str) -> FieldErrors:
    profile = section(context, "seccompProfile")
    if profile is None:
        return
    here = f"{path}.seccompProfile"
    yield from _check_profile_type(profile, here)
    kind, local = text(profile, "type"), profile.get("localhostProfile")
    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            yield invalid(f"{here}.localhostProfile", profile, detail)
    elif local is None:
        detail = "must be set when seccomp type is Localhost"
        yield required(f"{here}.localhostProfile", detail)
    else:
        yield from invalid_each(f"{here}.localhostProfile", local, relative_path(local))


def _check_app_armor(context: Object, path: str) -> FieldErrors:
    profile = section(context, "appArmorProfile")
    if profile is None:
        return
    here = f"{path}.appArmorProfile"
    yield from _check_profile_type(profile, here)
    kind, local = text(profile, "type"), profile.get("localhostProfile")
    if kind != "Localhost":
        if kind in _PROFILES and local is not None:
            detail = "can only be set when AppArmor type is Localhost"
            yield invalid(f"{here}.localhostProfile", local, detail)
    elif not local:
        detail = "must be set when AppArmor type is Localhost"
        yield required(f"{here}.localhostProfile", detail)
    elif local != local.strip():
        detail = "must not be padded with whitespace"
        yield invalid(f"{here}.localhostProfile", local, detail)


def _check_sysctls(spec: Object, context: Object, path: str, *, is_pod: bool) -> FieldErrors:
    seen: list[str] = []
    for here, sysctl in sections(context, "sysctls", path):
        name = text(sysctl, "name")
        if not name:
            yield required(f"{here}.name")
        elif len(name) > 253 or not _sysctl.match(name):
            detail = f"must have at most 253 characters and match regex {_SYSCTL}"
            yield invalid(f"{here}.name", name, detail)
        elif name in seen:
            yield duplicate(f"{here}.name", name)
        seen.append(name)
        if is_pod:
            yield from _check_host_sysctl(spec, name.replace("/", "."), f"{here}.name")


def _check_host_sysctl(spec: Object, name: str, path: str) -> FieldErrors:
    if flag(spec, "hostNetwork") and name.startswith("net."):
        yield invalid(path, name, "may not be specified when 'hostNetwork' is true")
    elif flag(spec, "hostIPC") and name.startswith(_IPC_SYSCTLS):
        yield invalid(path, name, "may not be specified when 'hostIPC' is true")


def _check_user_namespace(spec: Object, path: str) -> FieldErrors:
    for name, printed in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if flag(spec, name):
            yield forbidden(f"{path}.{printed}", "when `hostUsers` is false")
    for kind in ("initContainers", "containers"):
        for here, container in sections(spec, kind, path):
            if container.get("volumeDevices"):
                yield forbidden(f"{here}.volumeDevices", "when `hostUsers` is false")

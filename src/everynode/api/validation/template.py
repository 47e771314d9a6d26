"""Validation of pods and pod templates."""

from __future__ import annotations

from typing import Final

from everynode.api.daemonset import FieldError
from everynode.api.defaults import default_pod, default_template
from everynode.api.int_or_percent import MAX_INT32
from everynode.api.selector import label_key_errors
from everynode.api.types import POD, POD_TEMPLATE
from everynode.api.validation.accessors import flag, number, pairs, section, sections, text, texts
from everynode.api.validation.container import PodContext, check_containers
from everynode.api.validation.field_errors import (
    FieldErrors,
    Object,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    not_found,
    required,
    unsupported,
)
from everynode.api.validation.field_types import check_field_types
from everynode.api.validation.metadata import check_annotations, check_labels, check_metadata
from everynode.api.validation.names import dns_label, dns_search, dns_subdomain, ip_address
from everynode.api.validation.resources import check_overhead, check_resources
from everynode.api.validation.scheduling import check_affinity, check_spreading, check_tolerations
from everynode.api.validation.security import check_pod_security
from everynode.api.validation.volume import check_volumes

_ENUMS: Final = (
    ("restartPolicy", ("Always", "OnFailure", "Never")),
    ("dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
)
_PATTERNS: Final = (
    ("serviceAccountName", dns_subdomain),
    ("nodeName", dns_subdomain),
    ("hostname", dns_label),
    ("subdomain", dns_label),
    ("priorityClassName", dns_subdomain),
    ("runtimeClassName", dns_subdomain),
)


def validate_template(template: object, path: str = "template") -> list[FieldError]:
    """All errors of a pod template, checked with the API's defaults."""
    wrong = list(check_field_types(template, POD_TEMPLATE, path))
    if wrong or not isinstance(template, dict):
        return wrong
    return list(check_template(default_template(template), path))


def validate_pod(pod: object) -> list[FieldError]:
    """All errors of a new pod, checked with the API's defaults."""
    wrong = list(check_field_types(pod, POD))
    if wrong or not isinstance(pod, dict):
        return wrong
    defaulted = default_pod(pod)
    return [*check_metadata(section(defaulted, "metadata") or {}), *_check_pod(defaulted)]


def check_template(template: Object, path: str) -> FieldErrors:
    """Errors in a pod template whose types have been checked and whose defaults are set."""
    metadata = section(template, "metadata") or {}
    # The API server leaves `metadata` out of these two paths.
    yield from check_labels(pairs(metadata, "labels"), f"{path}.labels")
    yield from check_annotations(pairs(metadata, "annotations"), f"{path}.annotations")
    spec = section(template, "spec") or {}
    yield from _check_spec(spec, f"{path}.spec", is_pod=False)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{path}.spec.ephemeralContainers", detail)


def _check_pod(pod: Object) -> FieldErrors:
    spec = section(pod, "spec") or {}
    yield from _check_spec(spec, "spec", is_pod=True)
    for kind in ("containers", "initContainers"):
        for here, container in sections(spec, kind, "spec"):
            image = text(container, "image")
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                yield invalid(f"{here}.image", image, detail)
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if text(spec, "nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", detail)


def _check_spec(spec: Object, path: str, *, is_pod: bool) -> FieldErrors:
    volumes: dict[str, Object] = {}
    yield from check_volumes(spec, path, volumes)
    surroundings = PodContext(
        volumes=volumes,
        claims=[text(claim, "name") for _, claim in sections(spec, "resourceClaims", path)],
        grace=number(spec, "terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers") is not False,
    )
    yield from check_containers(spec, path, surroundings)
    yield from _check_files(spec, path)
    yield from _check_pod_resources(spec, path, surroundings.claims)
    yield from _check_host_network(spec, path, is_pod=is_pod)
    yield from _check_enums(spec, path)
    yield from check_labels(pairs(spec, "nodeSelector"), f"{path}.nodeSelector")
    yield from check_pod_security(spec, path, is_pod=is_pod)
    yield from check_affinity(spec, path)
    yield from _check_dns(spec, path)
    yield from _check_gates(spec, path)
    yield from check_spreading(spec, path)
    yield from _check_names(spec, path)
    yield from check_tolerations(spec, path)
    yield from _check_aliases(spec, path)
    yield from _check_os(spec, path)


def _check_files(spec: Object, path: str) -> FieldErrors:
    """Variables may come from files only in emptyDir volumes."""
    volumes = {text(volume, "name"): volume for _, volume in sections(spec, "volumes", path)}
    for kind in ("initContainers", "containers"):
        for where, container in sections(spec, kind, path):
            for here, variable in sections(container, "env", where):
                source = section(variable, "valueFrom") or {}
                reference = section(source, "fileKeyRef")
                if reference is not None:
                    name, at = text(reference, "volumeName"), f"{here}.valueFrom.fileKeyRef"
                    yield from _check_file_volume(name, volumes.get(name), f"{at}.volumeName")


def _check_file_volume(name: str, volume: Object | None, path: str) -> FieldErrors:
    if volume is None:
        yield not_found(path, name)
    elif volume.get("emptyDir") is None:
        yield invalid(path, name, "referenced volume must be of type emptyDir")


def _check_pod_resources(spec: Object, path: str, claims: list[str]) -> FieldErrors:
    resources = section(spec, "resources")
    if resources is not None:
        yield from check_resources(resources, f"{path}.resources", claims=claims, of_pod=True)
    overhead = section(spec, "overhead")
    if overhead is not None:
        yield from check_overhead(overhead, f"{path}.overhead")


def _check_host_network(spec: Object, path: str, *, is_pod: bool) -> FieldErrors:
    if not flag(spec, "hostNetwork"):
        return
    for where, container in sections(spec, "containers", path):
        for here, port in sections(container, "ports", where):
            inside, outside = number(port, "containerPort") or 0, number(port, "hostPort") or 0
            # A template may omit hostPort: the pod gets the number of containerPort.
            if (is_pod or outside) and outside != inside:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{here}.hostPort", outside, detail)


def _check_enums(spec: Object, path: str) -> FieldErrors:
    for name, supported in _ENUMS:
        value = text(spec, name)
        if value not in supported:
            yield unsupported(f"{path}.{name}", value, supported)
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        yield unsupported(f"{path}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _check_names(spec: Object, path: str) -> FieldErrors:
    for name, rule in _PATTERNS:
        value = text(spec, name)
        if value:
            yield from invalid_each(f"{path}.{name}", value, rule(value))
    deadline = number(spec, "activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        detail = f"must be between 1 and {MAX_INT32}, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, detail)


def _check_dns(spec: Object, path: str) -> FieldErrors:
    here, config = f"{path}.dnsConfig", section(spec, "dnsConfig")
    if text(spec, "dnsPolicy") == "None" and config is None:
        yield required(here, "must provide `dnsConfig` when `dnsPolicy` is None")
    if config is None:
        return
    servers, searches = texts(config, "nameservers"), texts(config, "searches")
    if text(spec, "dnsPolicy") == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{here}.nameservers", detail)
        return
    if len(servers) > 3:
        yield invalid(f"{here}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        yield from invalid_each(f"{here}.nameservers[{index}]", server, ip_address(server))
    if len(searches) > 32:
        yield invalid(f"{here}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid(f"{here}.searches", searches, detail)
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        if search != ".":
            yield from invalid_each(f"{here}.searches[{index}]", name, dns_search(name))
    for where, option in sections(config, "options", here):
        if not text(option, "name"):
            yield required(where, "must not be empty")


def _check_gates(spec: Object, path: str) -> FieldErrors:
    for here, gate in sections(spec, "readinessGates", path):
        kind = text(gate, "conditionType")
        yield from invalid_each(f"{here}.conditionType", kind, label_key_errors(kind))
    seen: list[str] = []
    for here, gate in sections(spec, "schedulingGates", path):
        name = text(gate, "name")
        yield from invalid_each(here, name, label_key_errors(name))
        if name in seen:
            yield duplicate(here, name)
        seen.append(name)


def _check_aliases(spec: Object, path: str) -> FieldErrors:
    for here, alias in sections(spec, "hostAliases", path):
        address = text(alias, "ip")
        yield from invalid_each(f"{here}.ip", address, ip_address(address))
        for index, name in enumerate(texts(alias, "hostnames")):
            yield from invalid_each(f"{here}.hostnames[{index}]", name, dns_subdomain(name))


def _check_os(spec: Object, path: str) -> FieldErrors:
    os = section(spec, "os")
    if os is None:
        return
    name = text(os, "name")
    if not name:
        yield required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        yield unsupported(f"{path}.os", name, ("linux", "windows"))

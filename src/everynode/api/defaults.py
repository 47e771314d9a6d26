"""Defaults: fills in the fields that the Kubernetes API fills in where a manifest omits them.

Functions take and return plain JSON values and do not change their argument. A value of the wrong
type is left as it is: validation reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from everynode.api import keys
from everynode.api.quantity import ZERO, Quantity, QuantityError, parse_quantity

Object = dict[str, Any]

FILE_MODE = 0o644
CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")

# Annotations that API servers remove from templates and pods: init containers have a field now.
_OLD_INIT_CONTAINER_KEYS = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"(?:{_NAME}(?:\.{_NAME})*|\[[0-9a-fA-F:]+\])"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)


def default_template(template: Object) -> Object:
    """Return a copy of a pod template with all defaults of the native API."""
    defaulted: Object = _copy(template)
    _drop_old_annotations(defaulted)
    spec = _section(defaulted, "spec")
    if spec is not None:
        _default_pod_spec(spec)
    return defaulted


def default_pod(pod: Object) -> Object:
    """Return a copy of a pod with the template's defaults and those that only pods have."""
    defaulted = default_template(pod)
    spec = defaulted.get("spec")
    if not isinstance(spec, dict):
        return defaulted
    for container in _items(spec, "initContainers", "containers"):
        _request_what_is_limited(container.get("resources"))
    _default_pod_requests(spec)
    _absent(spec, enableServiceLinks=True)
    if spec.get("hostNetwork") is True:
        for container in _items(spec, "initContainers", "containers"):
            for port in _items(container, "ports"):
                if port.get("containerPort"):
                    _empty(port, hostPort=port["containerPort"])
    return defaulted


def default_daemonset(daemonset: Object) -> Object:
    """Return a copy of a DaemonSet with its defaults; the template's only for the native kind."""
    defaulted: Object = _copy(daemonset)
    spec = _section(defaulted, "spec")
    if spec is None:
        return defaulted
    if defaulted.get("apiVersion") == keys.APPS_V1:
        _default_native(spec)
    else:
        _default_advanced(spec)
    return defaulted


# --- The DaemonSet's own fields ----------------------------------------------------------------


def _default_native(spec: Object) -> None:
    _absent(spec, revisionHistoryLimit=10)
    rolling = _rolling_update(spec)
    if rolling is not None:
        _absent(rolling, maxUnavailable=1, maxSurge=0)
    template = _section(spec, "template")
    if template is not None:
        spec["template"] = default_template(template)


def _default_advanced(spec: Object) -> None:
    _absent(spec, revisionHistoryLimit=10, burstReplicas=250)
    rolling = _rolling_update(spec)
    if rolling is None:
        return
    how = rolling.get("rollingUpdateType") or rolling.get("type")
    if how == "Surging":
        _absent(rolling, maxSurge=1, maxUnavailable=0)
    elif rolling.get("maxUnavailable") is None and rolling.get("maxSurge") is None:
        # Only if neither is set: `maxSurge: 1` with a default maxUnavailable of 1 is invalid.
        _absent(rolling, maxUnavailable=1, maxSurge=0)
    if not how:
        rolling["rollingUpdateType"] = "Standard"


def _rolling_update(spec: Object) -> Object | None:
    """Return rollingUpdate, created if absent; None where the strategy has none."""
    strategy = _section(spec, "updateStrategy")
    if strategy is None:
        return None
    _empty(strategy, type="RollingUpdate")
    if strategy["type"] != "RollingUpdate":
        return None
    return _section(strategy, "rollingUpdate")


# --- The pod -----------------------------------------------------------------------------------


def _default_pod_spec(spec: Object) -> None:
    _empty(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        schedulerName="default-scheduler",
    )
    _absent(spec, securityContext={}, terminationGracePeriodSeconds=30)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in _items(spec, "volumes"):
        _default_volume(volume)
    for container in _items(spec, *CONTAINER_LISTS):
        _default_container(container)
    _write_quantities(spec.get("overhead"))
    _default_resources(spec.get("resources"))


def _default_container(container: Object) -> None:
    _empty(
        container,
        imagePullPolicy=pull_policy(container.get("image")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in _items(container, "ports"):
        _empty(port, protocol="TCP")
    for variable in _items(container, "env"):
        source = variable.get("valueFrom")
        if isinstance(source, dict):
            _default_reference(source)
            _absent(source.get("fileKeyRef"), optional=False)
    _absent(container, resources={})
    _default_resources(container["resources"])
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        _default_probe(container.get(name))
    lifecycle = container.get("lifecycle")
    if isinstance(lifecycle, dict):
        for name in ("postStart", "preStop"):
            handler = lifecycle.get(name)
            if isinstance(handler, dict):
                _empty(handler.get("httpGet"), path="/", scheme="HTTP")


def pull_policy(image: object) -> str:
    """Return the default imagePullPolicy: Always for the tag `latest` or no tag."""
    parsed = _IMAGE.fullmatch(image) if isinstance(image, str) else None
    if parsed is None:
        return "IfNotPresent"
    tag = parsed["tag"] or ("" if parsed["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_probe(probe: object) -> None:
    if not isinstance(probe, dict):
        return
    _empty(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _empty(probe.get("httpGet"), path="/", scheme="HTTP")
    _absent(probe.get("grpc"), service="")


def _default_reference(source: Object) -> None:
    """Set the defaults of a downward API reference (fieldRef or resourceFieldRef)."""
    _empty(source.get("fieldRef"), apiVersion="v1")
    resource = source.get("resourceFieldRef")
    if isinstance(resource, dict):
        _absent(resource, divisor="0")
        resource["divisor"] = write_quantity(resource["divisor"])


# --- Volumes -----------------------------------------------------------------------------------

# Defaults of volume sources: first those set where empty, then those set only where absent.
_SOURCE_EMPTY: dict[str, Object] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_SOURCE_ABSENT: dict[str, Object] = {
    "hostPath": {"type": ""},
    "secret": {"defaultMode": FILE_MODE},
    "configMap": {"defaultMode": FILE_MODE},
    "downwardAPI": {"defaultMode": FILE_MODE},
    "projected": {"defaultMode": FILE_MODE},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
}


def _default_volume(volume: Object) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for name, values in _SOURCE_EMPTY.items():
        _empty(volume.get(name), **values)
    for name, values in _SOURCE_ABSENT.items():
        _absent(volume.get(name), **values)
    memory = volume.get("emptyDir")
    if isinstance(memory, dict) and memory.get("sizeLimit") is not None:
        memory["sizeLimit"] = write_quantity(memory["sizeLimit"])
    image = volume.get("image")
    if isinstance(image, dict):
        _empty(image, pullPolicy=pull_policy(image.get("reference")))
    downward = volume.get("downwardAPI")
    if isinstance(downward, dict):
        for item in _items(downward, "items"):
            _default_reference(item)
    projected = volume.get("projected")
    if isinstance(projected, dict):
        for source in _items(projected, "sources"):
            _default_projection(source)
    ephemeral = volume.get("ephemeral")
    if isinstance(ephemeral, dict):
        _default_claim(ephemeral.get("volumeClaimTemplate"))


def _default_projection(source: Object) -> None:
    downward = source.get("downwardAPI")
    if isinstance(downward, dict):
        for item in _items(downward, "items"):
            _default_reference(item)
    _absent(source.get("serviceAccountToken"), expirationSeconds=3600)


def _default_claim(template: object) -> None:
    _absent(template, metadata={})
    spec = _section(template, "spec") if isinstance(template, dict) else None
    if spec is not None:
        _absent(spec, volumeMode="Filesystem", resources={})
        _default_resources(spec["resources"])


# --- Resources ---------------------------------------------------------------------------------


def write_quantity(value: Any, *, milli: bool = False) -> Any:
    """Return a quantity in canonical form; a value that is not a quantity is returned as it is."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        quantity = parse_quantity(value)
    except QuantityError:
        return value
    return str(quantity.at_milli() if milli else quantity)


def _default_resources(resources: object) -> None:
    if isinstance(resources, dict):
        _write_quantities(resources.get("limits"))
        _write_quantities(resources.get("requests"))


def _write_quantities(amounts: object) -> None:
    """Write the quantities of a resource list in canonical form, in thousandths at the finest."""
    if isinstance(amounts, dict):
        for name, amount in amounts.items():
            amounts[name] = write_quantity(amount, milli=True)


def _request_what_is_limited(resources: object) -> None:
    if not isinstance(resources, dict) or not isinstance(resources.get("limits"), dict):
        return
    requests = _section(resources, "requests")
    if requests is not None:
        for name, amount in resources["limits"].items():
            requests.setdefault(name, amount)


def _default_pod_requests(spec: Object) -> None:
    """Set pod-level requests where there are pod-level limits.

    A request is the sum over the containers or, where no container has one, the limit.
    """
    resources = spec.get("resources")
    if not isinstance(resources, dict) or not resources.get("limits"):
        return
    requests = _section(resources, "requests")
    if requests is None or not isinstance(resources["limits"], dict):
        return
    for name in ("cpu", "memory"):
        total = _sum_requests(spec, name)
        if name not in requests and total is not None:
            requests[name] = str(total)
    for name, amount in resources["limits"].items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            requests.setdefault(name, amount)


def _sum_requests(spec: Object, name: str) -> Quantity | None:
    """Return the highest sum of the requests of containers that run at one time, or None."""
    running = [_parse_request(c, name) for c in _items(spec, "containers")]
    found = [amount for amount in running if amount is not None]
    sidecars = peak = ZERO
    for container in _items(spec, "initContainers"):
        amount = _parse_request(container, name)
        if amount is None:
            continue
        found.append(amount)
        peak = max(peak, sidecars + amount)
        if container.get("restartPolicy") == "Always":
            sidecars += amount
    if not found:
        return None
    return max(sum((a for a in running if a is not None), sidecars), peak)


def _parse_request(container: Object, name: str) -> Quantity | None:
    resources = container.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    value = requests.get(name) if isinstance(requests, dict) else None
    try:
        return None if value is None else parse_quantity(value)
    except (QuantityError, TypeError):
        return None


# --- Plain JSON --------------------------------------------------------------------------------


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _drop_old_annotations(template: Object) -> None:
    metadata = template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        for key in _OLD_INIT_CONTAINER_KEYS:
            annotations.pop(key, None)


def _section(parent: Object, name: str) -> Object | None:
    """Return the object in that field, created if absent; None if the value has another type."""
    if parent.get(name) is None:
        parent[name] = {}
    section = parent[name]
    return section if isinstance(section, dict) else None


def _items(parent: Object, *names: str) -> Iterator[Object]:
    for name in names:
        items = parent.get(name)
        if isinstance(items, list):
            yield from (item for item in items if isinstance(item, dict))


def _empty(target: object, **values: Any) -> None:
    """Set fields that are plain values in Go, where zero and absent are the same."""
    if isinstance(target, dict):
        for name, value in values.items():
            if target.get(name) is not False and target.get(name) in (None, "", 0):
                target[name] = value


def _absent(target: object, **values: Any) -> None:
    """Set fields that are pointers in Go, where an explicit zero is kept."""
    if isinstance(target, dict):
        for name, value in values.items():
            if target.get(name) is None:
                target[name] = value

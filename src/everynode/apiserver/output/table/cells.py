"""Table cells of each resource."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from everynode.api.daemonset import LabelSelector
from everynode.api.selector import SelectorError, format_selector
from everynode.api.times import UNKNOWN_AGE, TimeError, human_duration, parse_time

Object = dict[str, Any]

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"


class Row(NamedTuple):
    """The cells of one object, and the conditions of its row."""

    cells: list[Any]
    conditions: list[Object] | None = None


# --- Parts of many rows --------------------------------------------------------------------------


def get_object(obj: Object, *path: str) -> Object:
    """Return the object at a path, empty if there is none."""
    for key in path:
        found = obj.get(key)
        if not isinstance(found, dict):
            return {}
        obj = found
    return obj


def get_list(obj: Object, key: str) -> list[Any]:
    """Return the list under a key, empty if there is none."""
    found = obj.get(key)
    return found if isinstance(found, list) else []


def name_of(obj: Object) -> str:
    """Return the name of an object."""
    return str(get_object(obj, "metadata").get("name", ""))


def format_age(time: Any, now: float) -> str:
    """Format how long ago a time was, as kubectl shows it."""
    if not time:
        return UNKNOWN_AGE
    try:
        return human_duration(now - parse_time(str(time)))
    except TimeError:
        return "<invalid>"


def age_of(obj: Object, now: float) -> str:
    """Format the age of an object."""
    return format_age(get_object(obj, "metadata").get("creationTimestamp"), now)


def labels_text(labels: Object) -> str:
    """Format labels in one line, sorted by key."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def selector_text(selector: Any, *, empty: str, invalid: str) -> str:
    """Format a label selector in one line."""
    if not isinstance(selector, dict):
        return empty
    try:
        return format_selector(msgspec.convert(selector, LabelSelector), empty=empty)
    except (SelectorError, msgspec.ValidationError):
        return invalid


def _containers(spec: Object) -> tuple[str, str]:
    listed = get_list(get_object(spec, "template", "spec"), "containers")
    names = ",".join(container.get("name", "") for container in listed)
    return names, ",".join(container.get("image", "") for container in listed)


# --- Rows ----------------------------------------------------------------------------------------


def generic_row(obj: Object, now: float) -> Row:
    """Any object: name and creation time."""
    return Row([name_of(obj), get_object(obj, "metadata").get("creationTimestamp")])


def definition_row(obj: Object, now: float) -> Row:
    """A CustomResourceDefinition."""
    spec = get_object(obj, "spec")
    names = get_object(spec, "names")
    versions = sorted(
        version["name"] + ("(storage)" if version.get("storage") else "")
        for version in get_list(spec, "versions")
        if version.get("served")
    )
    established = any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in get_list(get_object(obj, "status"), "conditions")
    )
    shown = [name_of(obj), spec.get("scope", ""), ",".join(versions)]
    created = get_object(obj, "metadata").get("creationTimestamp")
    short = ",".join(get_list(names, "shortNames"))
    return Row([*shown, created, spec.get("group", ""), names.get("kind", ""), short, established])


def aged_row(obj: Object, now: float) -> Row:
    """An object with only name and age."""
    return Row([name_of(obj), age_of(obj, now)])


def namespace_row(obj: Object, now: float) -> Row:
    """A namespace."""
    return Row([name_of(obj), get_object(obj, "status").get("phase", ""), age_of(obj, now)])


def config_map_row(obj: Object, now: float) -> Row:
    """A config map, with the number of its entries."""
    count = len(get_object(obj, "data")) + len(get_object(obj, "binaryData"))
    return Row([name_of(obj), count, age_of(obj, now)])


def secret_row(obj: Object, now: float) -> Row:
    """A secret, with the number of its entries."""
    return Row([name_of(obj), obj.get("type", ""), len(get_object(obj, "data")), age_of(obj, now)])


def lease_row(obj: Object, now: float) -> Row:
    """A lease and its holder."""
    return Row([name_of(obj), get_object(obj, "spec").get("holderIdentity", ""), age_of(obj, now)])


def priority_class_row(obj: Object, now: float) -> Row:
    """A priority class."""
    return Row(
        [
            name_of(obj),
            obj.get("value", 0),
            obj.get("globalDefault", False),
            age_of(obj, now),
            obj.get("preemptionPolicy", ""),
        ]
    )


def disruption_budget_row(obj: Object, now: float) -> Row:
    """A pod disruption budget."""
    spec = get_object(obj, "spec")
    allowed = get_object(obj, "status").get("disruptionsAllowed", 0)
    least, most = (str(spec.get(key, "N/A")) for key in ("minAvailable", "maxUnavailable"))
    return Row([name_of(obj), least, most, allowed, age_of(obj, now)])


def quota_row(obj: Object, now: float) -> Row:
    """A resource quota: used and hard amounts."""
    status = get_object(obj, "status")
    used, hard = get_object(status, "used"), get_object(status, "hard")
    shown = {key: f"{key}: {used.get(key, '0')}/{hard[key]}" for key in sorted(hard)}
    limits = ", ".join(text for key, text in shown.items() if key.startswith("limits"))
    requests = ", ".join(text for key, text in shown.items() if not key.startswith("limits"))
    return Row([name_of(obj), requests, limits, age_of(obj, now)])


def network_policy_row(obj: Object, now: float) -> Row:
    """A network policy and its pod selector."""
    selector = get_object(obj, "spec").get("podSelector")
    shown = selector_text(selector, empty=NONE, invalid="<error>")
    return Row([name_of(obj), shown, age_of(obj, now)])


def flow_schema_row(obj: Object, now: float) -> Row:
    """A flow schema, its priority level, and whether that is missing."""
    spec = get_object(obj, "spec")
    level = get_object(spec, "priorityLevelConfiguration").get("name", "")
    method = get_object(spec, "distinguisherMethod").get("type", NONE)
    conditions = get_object(obj, "status").get("conditions") or []
    dangling = [each["status"] for each in conditions if each.get("type") == "Dangling"]
    missing = dangling[0] if dangling else "?"
    precedence = spec.get("matchingPrecedence", 0)
    return Row([name_of(obj), level, precedence, method, age_of(obj, now), missing])


def binding_row(obj: Object, now: float) -> Row:
    """A role binding of either scope, with its subjects."""
    role = get_object(obj, "roleRef")
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in get_list(obj, "subjects"):
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        subjects.get(kind, []).append(name)
    listed = [", ".join(names) for names in subjects.values()]
    shown = f"{role.get('kind', '')}/{role.get('name', '')}"
    return Row([name_of(obj), shown, age_of(obj, now), *listed])


def revision_row(obj: Object, now: float) -> Row:
    """A controller revision and its controller."""
    owners = get_list(get_object(obj, "metadata"), "ownerReferences")
    owner = next((ref for ref in owners if ref.get("controller")), None)
    shown = NONE
    if owner is not None:
        group, slash, _ = owner.get("apiVersion", "").rpartition("/")
        kind = f"{owner.get('kind', '')}.{group}" if slash else owner.get("kind", "")
        shown = f"{kind.lower()}/{owner.get('name', '')}"
    return Row([name_of(obj), shown, obj.get("revision", 0), age_of(obj, now)])


def daemon_set_row(obj: Object, now: float) -> Row:
    """A native or Advanced DaemonSet."""
    spec, status = get_object(obj, "spec"), get_object(obj, "status")
    numbers = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return Row(
        [
            name_of(obj),
            *(status.get(number, 0) for number in numbers),
            labels_text(get_object(spec, "template", "spec", "nodeSelector")),
            age_of(obj, now),
            *_containers(spec),
            selector_text(spec.get("selector"), empty=NONE, invalid="<error>"),
        ]
    )


def deployment_row(obj: Object, now: float) -> Row:
    """A deployment."""
    spec, status = get_object(obj, "spec"), get_object(obj, "status")
    return Row(
        [
            name_of(obj),
            f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
            status.get("updatedReplicas", 0),
            status.get("availableReplicas", 0),
            age_of(obj, now),
            *_containers(spec),
            selector_text(spec.get("selector"), empty="", invalid="<invalid>"),
        ]
    )


def scale_row(obj: Object, now: float) -> Row:
    """The scale of a workload."""
    wanted, there = (get_object(obj, key).get("replicas", 0) for key in ("spec", "status"))
    return Row([name_of(obj), wanted, there, age_of(obj, now)])


def service_row(obj: Object, now: float) -> Row:
    """A service."""
    spec = get_object(obj, "spec")
    addresses = get_list(spec, "clusterIPs")
    return Row(
        [
            name_of(obj),
            spec.get("type", ""),
            addresses[0] if addresses else NONE,
            _external_address(spec, get_object(obj, "status")),
            ",".join(_port(port) for port in get_list(spec, "ports")) or NONE,
            age_of(obj, now),
            labels_text(get_object(spec, "selector")),
        ]
    )


def _port(port: Object) -> str:
    node_port = port.get("nodePort", 0)
    number = f"{port.get('port')}:{node_port}" if node_port else port.get("port")
    return f"{number}/{port.get('protocol', 'TCP')}"


def _external_address(spec: Object, status: Object) -> str:
    outside = get_list(spec, "externalIPs")
    kind = spec.get("type")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(outside) or NONE
    if kind == "LoadBalancer":
        ingress = get_list(get_object(status, "loadBalancer"), "ingress")
        found = {entry.get("ip") or entry.get("hostname") or "": None for entry in ingress}
        balanced = sorted(address for address in found if address)
        return ",".join([*balanced, *outside]) or "<pending>"
    return str(spec.get("externalName", "")) if kind == "ExternalName" else UNKNOWN


def node_row(obj: Object, now: float) -> Row:
    """A node."""
    status = get_object(obj, "status")
    info = get_object(status, "nodeInfo")
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return Row(
        [
            name_of(obj),
            _node_status(obj),
            ",".join(_roles(get_object(obj, "metadata", "labels"))) or NONE,
            age_of(obj, now),
            info.get("kubeletVersion", ""),
            _address(status, "InternalIP"),
            _address(status, "ExternalIP"),
            info.get("osImage") or UNKNOWN,
            kernel,
            info.get("containerRuntimeVersion") or UNKNOWN,
        ]
    )


def _node_status(obj: Object) -> str:
    conditions = get_list(get_object(obj, "status"), "conditions")
    ready = [c.get("status") for c in conditions if c.get("type") == "Ready"]
    shown = ("Ready" if ready[-1] == "True" else "NotReady") if ready else "Unknown"
    return f"{shown},SchedulingDisabled" if get_object(obj, "spec").get("unschedulable") else shown


def _roles(labels: Object) -> list[str]:
    found: dict[str, None] = {}
    for key, value in labels.items():
        role = key.removeprefix(_ROLE_PREFIX) if key.startswith(_ROLE_PREFIX) else ""
        role = value if key == _ROLE_LABEL else role
        if role:
            found[role] = None
    return sorted(found)


def _address(status: Object, kind: str) -> str:
    listed = get_list(status, "addresses")
    return next((a.get("address", "") for a in listed if a.get("type") == kind), NONE)

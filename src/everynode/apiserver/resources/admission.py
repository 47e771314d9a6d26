"""Pod admission: service account, priority, default tolerations and topology labels."""

from __future__ import annotations

from typing import Any, Final

from everynode.api import keys
from everynode.apiserver.errors import ResourceInfo, StatusError, forbidden
from everynode.apiserver.resources.strategy import StrategyContext

Object = dict[str, Any]

PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_TOLERATION_SECONDS: Final = 300  # as the admission plugin DefaultTolerationSeconds
_LOST_NODE_TAINTS: Final = (keys.TAINT_NOT_READY, keys.TAINT_UNREACHABLE)
_TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class _Pods:
    group = ""
    kind = "Pod"
    plural = "pods"


POD_RESOURCE: Final[ResourceInfo] = _Pods()


def admit_create(pod: Object, context: StrategyContext) -> None:
    """Set the service account, priority and default tolerations of a new pod."""
    _set_service_account(pod, context)
    _set_priority(pod, context)
    add_default_tolerations(pod)
    node = pod["spec"].get("nodeName")
    if node:
        add_topology_labels(pod, node, context)


def add_topology_labels(pod: Object, node: str, context: StrategyContext) -> None:
    """Copy the zone and region labels of the node to a pod that is bound to it."""
    there = context.labels("nodes", "", node)
    place = {key: there[key] for key in _TOPOLOGY_LABELS if key in there}
    if place:
        meta = pod["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), **place}


def admit_update(pod: Object, old: Object) -> None:
    """Restore what admission set on create, if an update omits it."""
    spec, before = pod["spec"], old["spec"]
    for key in ("priority", "preemptionPolicy", "serviceAccountName", "serviceAccount"):
        if key in before:
            spec.setdefault(key, before[key])
    add_default_tolerations(pod)


def add_default_tolerations(pod: Object) -> None:
    """Tolerate not-ready and unreachable nodes for five minutes, unless the pod says otherwise."""
    spec = pod["spec"]
    tolerations = spec.get("tolerations") or []
    missing = [key for key in _LOST_NODE_TAINTS if not any(_tolerates(t, key) for t in tolerations)]
    if missing:
        spec["tolerations"] = [
            *tolerations,
            *(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_SECONDS,
                }
                for key in missing
            ),
        ]


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in (
        "",
        "NoExecute",
    )


def _set_service_account(pod: Object, context: StrategyContext) -> None:
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    name = spec.get("serviceAccountName") or "default"
    if not context.exists("serviceaccounts", namespace, name):
        where = f"error looking up service account {namespace}/{name}"
        raise _forbidden(pod, f'{where}: serviceaccount "{name}" not found')
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _set_priority(pod: Object, context: StrategyContext) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    chosen = context.find(PRIORITY_CLASSES, "", name) if name else _default_class(context)
    if name and chosen is None:
        raise _forbidden(pod, f"no PriorityClass with name {name} was found")
    value = chosen.get("value", 0) if chosen else 0
    policy = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("priority", value) != value:
        raise _forbidden(
            pod,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name",
        )
    if spec.get("preemptionPolicy", policy) != policy:
        raise _forbidden(
            pod,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name",
        )
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _default_class(context: StrategyContext) -> Object | None:
    found = context.all(PRIORITY_CLASSES, containing=b'"globalDefault":true')
    classes = [each for each in found if each.get("globalDefault")]
    return min(classes, key=lambda c: c.get("value", 0), default=None)


def _forbidden(pod: Object, why: str) -> StatusError:
    meta = pod["metadata"]
    return forbidden(POD_RESOURCE, meta.get("name") or meta.get("generateName", ""), why)

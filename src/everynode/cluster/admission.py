"""What is added to a pod, or held against it, because of other objects of the cluster."""

from __future__ import annotations

from typing import Any, Final

from everynode.api import keys
from everynode.cluster.errors import Named, Refusal, forbidden
from everynode.cluster.rules import World

Object = dict[str, Any]

PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_PATIENCE: Final = 300  # seconds a pod stays on a node that went away, unless it says otherwise
_LOST: Final = (keys.TAINT_NOT_READY, keys.TAINT_UNREACHABLE)
_PLACE: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class _Pods:
    group = ""
    kind = "Pod"
    plural = "pods"


PODS: Final[Named] = _Pods()


def admit_new(pod: Object, world: World) -> None:
    """Give a new pod its service account, its priority and its patience with lost nodes."""
    _set_service_account(pod, world)
    _set_priority(pod, world)
    tolerate_lost_nodes(pod)
    node = pod["spec"].get("nodeName")
    if node:
        label_with_place(pod, node, world)


def label_with_place(pod: Object, node: str, world: World) -> None:
    """A pod carries the zone and the region of its node, from the moment it has one."""
    there = world.labels("nodes", "", node)
    place = {key: there[key] for key in _PLACE if key in there}
    if place:
        meta = pod["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), **place}


def admit_changed(pod: Object, old: Object) -> None:
    """Keep what admission gave to the pod when it was new."""
    spec, before = pod["spec"], old["spec"]
    for key in ("priority", "preemptionPolicy", "serviceAccountName", "serviceAccount"):
        if key in before:
            spec.setdefault(key, before[key])
    tolerate_lost_nodes(pod)


def tolerate_lost_nodes(pod: Object) -> None:
    """Without a word on lost nodes, a pod stays for five minutes."""
    spec = pod["spec"]
    tolerations = spec.get("tolerations") or []
    missing = [key for key in _LOST if not any(_covers(t, key) for t in tolerations)]
    if missing:
        spec["tolerations"] = [
            *tolerations,
            *(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _PATIENCE,
                }
                for key in missing
            ),
        ]


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in (
        "",
        "NoExecute",
    )


def _set_service_account(pod: Object, world: World) -> None:
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    name = spec.get("serviceAccountName") or "default"
    if not world.exists("serviceaccounts", namespace, name):
        where = f"error looking up service account {namespace}/{name}"
        raise _refusal(pod, f'{where}: serviceaccount "{name}" not found')
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _set_priority(pod: Object, world: World) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    chosen = world.find(PRIORITY_CLASSES, "", name) if name else _default_class(world)
    if name and chosen is None:
        raise _refusal(pod, f"no PriorityClass with name {name} was found")
    value = chosen.get("value", 0) if chosen else 0
    policy = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("priority", value) != value:
        raise _refusal(
            pod,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name",
        )
    if spec.get("preemptionPolicy", policy) != policy:
        raise _refusal(
            pod,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name",
        )
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _default_class(world: World) -> Object | None:
    found = world.all(PRIORITY_CLASSES, saying=b'"globalDefault":true')
    classes = [each for each in found if each.get("globalDefault")]
    return min(classes, key=lambda c: c.get("value", 0), default=None)


def _refusal(pod: Object, why: str) -> Refusal:
    meta = pod["metadata"]
    return forbidden(PODS, meta.get("name") or meta.get("generateName", ""), why)

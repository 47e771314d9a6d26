"""Pod bodies: builds a daemon pod from the template of a revision, pinned to one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour, RollingUpdateType, UpdateStrategyType
from everynode.api.taints import with_daemon_tolerations_json
from everynode.decide.pods.name import pod_name
from everynode.decide.revisions.ownership import reference_to
from everynode.decide.revisions.target import Revision, template_generation

Object = dict[str, Any]

# The schedulerName of pods whose nodeName we set; no scheduler has this name.
OWN_SCHEDULER: Final = "kubernetes.io/daemonset-controller"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class PreparedPod(msgspec.Struct, frozen=True):
    """The parts that all pods of one revision share. Never changed: bodies refer to them."""

    metadata: Object  # labels, annotations, finalizers, owner
    spec: Object
    affinity: Object  # without the required node affinity
    preferred: Object  # of the node affinity


def build_pod(
    ds: DaemonSet,
    revision: Revision,
    node: str,
    *,
    replaced: Sequence[str] = (),
    name_holders: Sequence[str] = (),
    failures: str | None = None,
    replaced_sick: bool = False,
    by_scheduler: bool = True,
) -> Object:
    """Return the body of the DaemonSet's next pod on a node.

    Bodies of one revision share objects, so callers must not change them.
    """
    ready = _prepare(ds, revision)
    metadata = dict(ready.metadata)
    metadata["name"] = pod_name(ds.name, ds.uid, node, revision.hash, replaced, name_holders)
    notes = {} if failures is None else {keys.FAILURES: failures}
    if replaced_sick:
        notes[keys.REPLACED_SICK] = revision.hash
    if notes:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **notes}
    spec = dict(ready.spec)
    spec["affinity"] = pin_to_node(node, affinity=ready.affinity, preferred=ready.preferred)
    if not by_scheduler:
        spec |= bound_to_node(node)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pin_to_node(node: str, *, affinity: Mapping[str, Any], preferred: Mapping[str, Any]) -> Object:
    """Return an affinity that requires this node and keeps the given other terms."""
    field = {"key": keys.NODE_NAME_FIELD, "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {**affinity, "nodeAffinity": {**preferred, _REQUIRED: required}}


def bound_to_node(node: str) -> Object:
    """Return the fields of a pod's spec that bind it to the node without a scheduler."""
    return {"schedulerName": OWN_SCHEDULER, "nodeName": node}


def _prepare(ds: DaemonSet, revision: Revision) -> PreparedPod:
    native = ds.flavour is Flavour.NATIVE
    made_at = revision.target_generation
    labelled = native and made_at is not None and template_generation(ds) is not None
    return _prepare_template(
        revision.template,
        labels=(revision.hash, str(made_at) if labelled else ""),
        owner=(ds.flavour, ds.namespace, ds.name, ds.uid),
        gates=() if native else _gates(ds),
    )


def _gates(ds: DaemonSet) -> tuple[str, ...]:
    """Return the readiness gates that the DaemonSet uses; each costs a write for every new pod."""
    strategy, hook = ds.strategy, ds.pre_delete
    in_place = (
        strategy.type is UpdateStrategyType.ROLLING
        and strategy.rolling is RollingUpdateType.IN_PLACE
    )
    used = (
        (keys.KRUISE_POD_READY, hook is not None and hook.mark_not_ready),
        (keys.INPLACE_UPDATE_READY, in_place),
    )
    return tuple(kind for kind, is_used in used if is_used)


@lru_cache(maxsize=128)
def _prepare_template(
    template: bytes,
    *,
    labels: tuple[str, str],
    owner: tuple[Flavour, str, str, str],
    gates: tuple[str, ...],
) -> PreparedPod:
    hash, generation = labels
    flavour, namespace, ds_name, ds_uid = owner
    decoded: Object = msgspec.json.decode(template, type=dict[str, Any])
    given = as_object(decoded.get("metadata"))
    labelled = {**as_object(given.get("labels")), keys.REVISION_HASH: hash}
    if generation:
        labelled[keys.POD_TEMPLATE_GENERATION] = generation
    metadata: Object = {
        "name": "",
        "namespace": namespace,
        "labels": labelled,
        "ownerReferences": [reference_to(flavour, name=ds_name, uid=ds_uid)],
    }
    for name in ("annotations", "finalizers"):
        if given.get(name):
            metadata[name] = given[name]
    annotated = metadata.get("annotations", {})
    if flavour is not Flavour.NATIVE and isinstance(annotated, dict):
        metadata["annotations"] = {keys.AUTOSCALER_DAEMON_POD: "true", **annotated}
    spec = as_object(decoded.get("spec"))
    if is_list(spec.get("tolerations")):
        spec["tolerations"] = with_daemon_tolerations_json(
            spec.get("tolerations"), host_network=spec.get("hostNetwork") is True
        )
    if gates and is_list(spec.get("readinessGates")):
        spec["readinessGates"] = _with_gates(spec.get("readinessGates"), gates)
    affinity = as_object(spec.get("affinity"))
    preferred = as_object(affinity.pop("nodeAffinity", None))
    preferred.pop(_REQUIRED, None)
    return PreparedPod(metadata, spec, affinity, preferred)


def as_object(value: object) -> Object:
    """Return a copy of a JSON object; empty for any other value."""
    return dict(value) if isinstance(value, dict) else {}


def is_list(value: object) -> bool:
    """Whether the value is a list of objects or absent; the API server refuses anything else."""
    return value is None or (
        isinstance(value, list) and all(isinstance(item, dict) for item in value)
    )


def _with_gates(given: Sequence[Object] | None, wanted: Sequence[str]) -> list[Object]:
    gates = list(given or ())
    there = [gate.get("conditionType") for gate in gates]
    return gates + [{"conditionType": kind} for kind in wanted if kind not in there]

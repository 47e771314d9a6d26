"""What a new daemon pod looks like: a revision's template, made at home on one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.affinity import NODE_NAME_FIELD
from everynode.api.daemonset import DaemonSet, Flavour, RollingType, UpdateType
from everynode.api.taints import with_daemon_tolerations_json
from everynode.decide.claim import reference_to
from everynode.decide.name import pod_name
from everynode.decide.revisions import Revision, template_generation

Object = dict[str, Any]

# The name under which pods go that we bind ourselves; no scheduler answers to it.
OWN_SCHEDULER: Final = "kubernetes.io/daemonset-controller"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Prepared(msgspec.Struct, frozen=True):
    """What all pods of one revision share. Nobody changes it: it becomes part of every body."""

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
    strangers: Sequence[str] = (),
    failures: int | str | None = None,
    by_scheduler: bool = True,
) -> Object:
    """The body of the DaemonSet's next pod on a node.

    Pods of one revision share the parts in which they do not differ: read it, do not change it.
    """
    ready = _prepare(ds, revision)
    metadata = dict(ready.metadata)
    metadata["name"] = pod_name(ds.name, ds.uid, node, revision.hash, replaced, strangers)
    if failures is not None:
        noted = metadata.get("annotations") or {}
        metadata["annotations"] = {**noted, keys.FAILURES: str(failures)}
    spec = dict(ready.spec)
    spec["affinity"] = pin(node, affinity=ready.affinity, preferred=ready.preferred)
    if not by_scheduler:
        spec["schedulerName"] = OWN_SCHEDULER
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pin(node: str, *, affinity: Mapping[str, Any], preferred: Mapping[str, Any]) -> Object:
    """An affinity for this node and no other, with the rest of what was asked for."""
    field = {"key": NODE_NAME_FIELD, "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {**affinity, "nodeAffinity": {**preferred, _REQUIRED: required}}


def _prepare(ds: DaemonSet, revision: Revision) -> Prepared:
    native = ds.flavour is Flavour.NATIVE
    made_at = revision.target_generation
    labelled = native and made_at is not None and template_generation(ds) is not None
    in_place = (
        ds.strategy.type is UpdateType.ROLLING and ds.strategy.rolling is RollingType.IN_PLACE
    )
    gates = () if native else (keys.KRUISE_POD_READY,)
    return _prepare_template(
        revision.template,
        labels=(revision.hash, str(made_at) if labelled else ""),
        owner=(ds.flavour, ds.namespace, ds.name, ds.uid),
        gates=(*gates, keys.INPLACE_UPDATE_READY) if in_place and not native else gates,
    )


@lru_cache(maxsize=128)
def _prepare_template(
    template: bytes,
    *,
    labels: tuple[str, str],
    owner: tuple[Flavour, str, str, str],
    gates: tuple[str, ...],
) -> Prepared:
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
    return Prepared(metadata, spec, affinity, preferred)


def as_object(value: object) -> Object:
    """A copy of an object; what is none has no fields."""
    return dict(value) if isinstance(value, dict) else {}


def is_list(value: object) -> bool:
    """Whether a list of objects can be added to; anything else the API server is to refuse."""
    return value is None or (
        isinstance(value, list) and all(isinstance(item, dict) for item in value)
    )


def _with_gates(given: Sequence[Object] | None, wanted: Sequence[str]) -> list[Object]:
    gates = list(given or ())
    there = [gate.get("conditionType") for gate in gates]
    return gates + [{"conditionType": kind} for kind in wanted if kind not in there]

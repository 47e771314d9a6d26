"""Ownership of pods and revisions: owned, to be adopted, to be released, or ignored."""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Any

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour, LabelSelector, LabelSelectorRequirement
from everynode.api.objects import ControllerRevision, ObjectMeta, OwnerReference, Pod, PodMeta
from everynode.api.selector import (
    LabelMatcher,
    SelectorError,
    compile_selector,
    label_value_errors,
)
from everynode.decide.actions import Cause, PatchPod, PatchRevision
from everynode.decide.inplace.state import read_state
from everynode.decide.pods.patch import patch_pod


class Claim(enum.Enum):
    """What a DaemonSet does with a pod or a revision."""

    OWN = "own"
    ADOPT = "adopt"
    RELEASE = "release"
    IGNORE = "ignore"


def claim(ds: DaemonSet, pod: Pod) -> Claim:
    """Return what the DaemonSet does with a pod."""
    found = _claim(ds, pod.metadata)
    # A pull pod is never a daemon pod, whatever its labels.
    pulls = found is Claim.ADOPT and keys.PULL_POD_OWNER in pod.metadata.labels
    return Claim.IGNORE if pulls else found


def claim_revision(ds: DaemonSet, revision: ControllerRevision) -> Claim:
    """Return what the DaemonSet does with a revision."""
    return _claim(ds, revision.metadata)


def _claim(ds: DaemonSet, meta: PodMeta | ObjectMeta) -> Claim:
    if meta.namespace != ds.namespace:
        return Claim.IGNORE
    deleting = ds.metadata.deletion_timestamp is not None
    controller = meta.controller
    if controller is not None and not is_owner(ds, controller):
        return Claim.IGNORE
    matcher = _matcher(ds.selector)
    if controller is not None:
        # With an invalid selector nothing is released.
        released = matcher is not None and not matcher.matches(meta.labels)
        return Claim.RELEASE if released and not deleting else Claim.OWN
    if deleting or meta.deletion_timestamp is not None:
        return Claim.IGNORE
    # An empty selector would adopt every orphan in the namespace.
    if matcher is None or matcher.everything or not matcher.matches(meta.labels):
        return Claim.IGNORE
    return Claim.ADOPT


def is_owner(ds: DaemonSet, reference: OwnerReference) -> bool:
    """Whether the reference is to this DaemonSet, in any version of its API group."""
    group = keys.NATIVE_GROUP if ds.flavour is Flavour.NATIVE else keys.KRUISE_GROUP
    return (reference.uid, reference.kind, reference.group) == (ds.uid, keys.KIND, group)


def owner_reference(ds: DaemonSet) -> dict[str, Any]:
    """Return the controller reference for objects that the DaemonSet creates."""
    return reference_to(ds.flavour, name=ds.name, uid=ds.uid)


def reference_to(flavour: Flavour, *, name: str, uid: str) -> dict[str, Any]:
    """Return the controller reference to a DaemonSet of that kind."""
    return {
        "apiVersion": keys.APPS_V1 if flavour is Flavour.NATIVE else keys.V1BETA1,
        "kind": keys.KIND,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopt_patch(ds: DaemonSet, pod: Pod) -> PatchPod:
    """Return the patch that adopts an orphan.

    The DaemonSet must have been read from the API server, not the cache, before the first adoption.
    """
    return patch_pod(pod, Cause.ADOPT, metadata={"ownerReferences": [owner_reference(ds)]})


def release_patch(ds: DaemonSet, pod: Pod) -> PatchPod:
    """Return the patch that releases a pod whose labels no longer match; it keeps running."""
    gone = {"$patch": "delete", "uid": ds.uid}
    return patch_pod(pod, Cause.RELEASE, metadata={"ownerReferences": [gone]})


def restore_hash_patch(pod: Pod, made_of: str = "") -> PatchPod:
    """Return the patch that restores the revision hash label of an own pod."""
    labels = {keys.REVISION_HASH: recover_hash(pod, made_of)}
    return patch_pod(pod, Cause.RELABEL, metadata={"labels": labels})


def recover_hash(pod: Pod, made_of: str = "") -> str:
    """Return the revision hash that a pod has lost; empty if it is not known.

    `made_of` is the hash of the revision the pod was created from, if known. The record of an
    in-place update takes precedence: it is always written together with the label.
    """
    state = read_state(pod)
    recorded = state.revision if state is not None else ""
    # Any client can write the record. The API server would refuse an invalid label value.
    return made_of if label_value_errors(recorded) else recorded or made_of


def adopt_revision_patch(ds: DaemonSet, revision: ControllerRevision) -> PatchRevision:
    """Return the patch that adopts an orphaned revision."""
    meta = revision.metadata
    guarded = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = {"metadata": {"ownerReferences": [owner_reference(ds)], **guarded}}
    return PatchRevision(meta.name, meta.uid, body, merge="strategic")


def _matcher(selector: LabelSelector) -> LabelMatcher | None:
    return _compile(tuple(sorted(selector.match_labels.items())), selector.match_expressions)


@lru_cache(maxsize=256)
def _compile(
    labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...]
) -> LabelMatcher | None:
    try:
        return compile_selector(LabelSelector(dict(labels), expressions))
    except SelectorError:
        return None

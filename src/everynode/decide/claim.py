"""Whose a pod or a revision is: owned, to be adopted, to be released, or none of our business."""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Any

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour, LabelSelector, Requirement
from everynode.api.objects import ControllerRevision, ObjectMeta, OwnerReference, Pod, PodMeta
from everynode.api.selector import (
    Matcher,
    SelectorError,
    compile_selector,
    label_value_faults,
)
from everynode.decide.actions import Because, PatchPod, PatchRevision
from everynode.decide.inplace_state import read_state
from everynode.decide.patch import patch_pod


class Claim(enum.Enum):
    """What a DaemonSet does about a pod."""

    OWN = "own"
    ADOPT = "adopt"
    RELEASE = "release"
    IGNORE = "ignore"


def claim(ds: DaemonSet, pod: Pod) -> Claim:
    """What the DaemonSet does about a pod of its namespace."""
    found = _claim(ds, pod.metadata)
    # A puller is nobody's daemon pod, whatever its labels.
    pulls = found is Claim.ADOPT and keys.PULLER in pod.metadata.labels
    return Claim.IGNORE if pulls else found


def claim_revision(ds: DaemonSet, revision: ControllerRevision) -> Claim:
    """What the DaemonSet does about a revision of its namespace."""
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
        # Without a selector that can be understood nothing is known of its labels: it stays.
        released = matcher is not None and not matcher.matches(meta.labels)
        return Claim.RELEASE if released and not deleting else Claim.OWN
    if deleting or meta.deletion_timestamp is not None:
        return Claim.IGNORE
    # A selector without a requirement would adopt every orphan of the namespace.
    if matcher is None or matcher.everything or not matcher.matches(meta.labels):
        return Claim.IGNORE
    return Claim.ADOPT


def is_owner(ds: DaemonSet, reference: OwnerReference) -> bool:
    """Whether the reference means this DaemonSet, in whatever version of the API."""
    group = keys.NATIVE_GROUP if ds.flavour is Flavour.NATIVE else keys.KRUISE_GROUP
    return (reference.uid, reference.kind, reference.group) == (ds.uid, keys.KIND, group)


def owner_reference(ds: DaemonSet) -> dict[str, Any]:
    """The controller reference of everything the DaemonSet makes."""
    return reference_to(ds.flavour, name=ds.name, uid=ds.uid)


def reference_to(flavour: Flavour, *, name: str, uid: str) -> dict[str, Any]:
    """The controller reference to a DaemonSet of that kind."""
    return {
        "apiVersion": keys.APPS_V1 if flavour is Flavour.NATIVE else keys.V1BETA1,
        "kind": keys.KIND,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopt_patch(ds: DaemonSet, pod: Pod) -> PatchPod:
    """Make an orphan ours; the DaemonSet must have been read live before the first adoption."""
    return patch_pod(pod, Because.ADOPT, metadata={"ownerReferences": [owner_reference(ds)]})


def release_patch(ds: DaemonSet, pod: Pod) -> PatchPod:
    """Let a pod go whose labels no longer match; it runs on, nobody's."""
    gone = {"$patch": "delete", "uid": ds.uid}
    return patch_pod(pod, Because.RELEASE, metadata={"ownerReferences": [gone]})


def show_patch(pod: Pod, made_of: str = "") -> PatchPod:
    """Give a pod of ours back the label by which we see it."""
    labels = {keys.REVISION_HASH: lost_hash(pod, made_of)}
    return patch_pod(pod, Because.RELABEL, metadata={"labels": labels})


def lost_hash(pod: Pod, made_of: str = "") -> str:
    """The hash that a pod without one must have had; empty if nothing tells.

    `made_of` is the revision it was created from, where that is known. An in-place update has
    taken it to another since, which its record names: both are always written together.
    """
    state = read_state(pod)
    recorded = state.revision if state is not None else ""
    # Anybody can write a record; what is no label would be refused for ever.
    return made_of if label_value_faults(recorded) else recorded or made_of


def adopt_revision_patch(ds: DaemonSet, revision: ControllerRevision) -> PatchRevision:
    """Make an orphaned revision ours."""
    meta = revision.metadata
    guarded = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = {"metadata": {"ownerReferences": [owner_reference(ds)], **guarded}}
    return PatchRevision(meta.name, meta.uid, body, merge="strategic")


def _matcher(selector: LabelSelector) -> Matcher | None:
    return _compile(tuple(sorted(selector.match_labels.items())), selector.match_expressions)


@lru_cache(maxsize=256)
def _compile(
    labels: tuple[tuple[str, str], ...], expressions: tuple[Requirement, ...]
) -> Matcher | None:
    try:
        return compile_selector(LabelSelector(dict(labels), expressions))
    except SelectorError:
        return None

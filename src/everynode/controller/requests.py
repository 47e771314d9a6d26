"""Requests: turns decided actions into API requests; each carries its precondition.

Of the response to a write only the uid and the resourceVersion are read (`WriteResponse`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.api.keys import FIELD_MANAGER
from everynode.api.selector import SelectorError, format_selector
from everynode.decide.actions import (
    CreatePod,
    CreateRevision,
    DeletePod,
    DeleteRevision,
    PatchPod,
    PatchRevision,
    PodAction,
    RevisionAction,
)
from everynode.kube import verbs
from everynode.kube.requests import MERGE_PATCH, METADATA, STRATEGIC_PATCH, Request
from everynode.kube.resources import PODS, REVISIONS
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import parse_resource_version

_PATCHES: Final = {"strategic": STRATEGIC_PATCH, "merge": MERGE_PATCH}


class _WrittenMeta(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class WriteResponse(msgspec.Struct):
    """The object that a write returned, as far as it is read."""

    metadata: _WrittenMeta = msgspec.field(default_factory=_WrittenMeta)

    @property
    def version(self) -> int:
        """The resourceVersion as a number, 0 if it is not a number."""
        return parse_resource_version(self.metadata.resource_version)


decode_write_response: Final = msgspec.json.Decoder(WriteResponse).decode


def pod_request(action: PodAction, namespace: str) -> Request:
    """Return the request that carries out an action on a pod.

    The response holds the pod's metadata only: the watch delivers the pod itself.
    """
    match action:
        case CreatePod():
            return verbs.create(
                PODS, action.body, namespace=namespace, manager=FIELD_MANAGER, accept=METADATA
            )
        case DeletePod():
            return verbs.delete(
                PODS,
                action.name,
                namespace=namespace,
                uid=action.uid,
                version=action.resource_version,
                accept=METADATA,
            )
        case PatchPod():
            return verbs.patch(
                PODS,
                action.name,
                action.body,
                kind=_PATCHES[action.merge],
                namespace=namespace,
                subresource=action.subresource,
                manager=FIELD_MANAGER,
                accept=METADATA,
            )


def revision_request(action: RevisionAction, namespace: str) -> Request:
    """Return the request that carries out an action on a revision."""
    match action:
        case CreateRevision():
            return verbs.create(REVISIONS, action.body, namespace=namespace, manager=FIELD_MANAGER)
        case PatchRevision():
            return verbs.patch(
                REVISIONS,
                action.name,
                action.body,
                kind=_PATCHES[action.merge],
                namespace=namespace,
                manager=FIELD_MANAGER,
            )
        case DeleteRevision():
            return verbs.delete(
                REVISIONS,
                action.name,
                namespace=namespace,
                uid=action.uid,
                version=action.resource_version,
            )


def selected_by(ds: DaemonSet) -> ListOptions | None:
    """Return the list options for a selector; None where the selector is empty or invalid."""
    try:
        labels = format_selector(ds.selector)
    except SelectorError:
        return None
    return ListOptions(namespace=ds.namespace, labels=labels) if labels else None

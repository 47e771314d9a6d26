"""Stored objects: a DaemonSet and what belongs to it as whole objects, to be played elsewhere.

A snapshot holds what a decision reads. A cluster that goes on from here needs more: the whole spec
and status of each pod, and what a node can allocate. What neither needs is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.api.keys import NODE_LIFECYCLE, READY, REVISION_HASH
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.controller.requests import selected_by
from everynode.inspect.node_usage import Usage
from everynode.inspect.snapshot import controls, list_all
from everynode.kube.client import Client
from everynode.kube.permissions import missing_permissions
from everynode.kube.resources import NODES, PODS, REVISIONS, Resource
from everynode.kube.verbs import EVERYTHING, ListOptions
from everynode.kube.watch.decode import Decoder

Object = dict[str, Any]

_NODE_METADATA: Final = ("name", "uid", "labels", "creationTimestamp")
_NODE_SPEC: Final = ("taints", "unschedulable")
_NODE_STATUS: Final = ("allocatable", "capacity", "addresses")
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
_NODE_CONDITIONS: Final = frozenset((READY, *NODE_LIFECYCLE, *_PRESSURES))
_decode: Final = msgspec.json.Decoder(Object).decode
_decode_node: Final = Decoder(Node).one
_decode_pod: Final = Decoder(Pod).one
_decode_revision: Final = Decoder(ControllerRevision).one


class StoredObjects(msgspec.Struct, frozen=True, kw_only=True):
    """One DaemonSet and what belongs to it, each as JSON."""

    ds: bytes | None  # None: it does not exist yet
    nodes: tuple[bytes, ...] | None  # None: the reader may not list them
    pods: tuple[bytes, ...] = ()  # own pods only
    revisions: tuple[bytes, ...] = ()
    now: float  # when they were read
    used: Usage | None = None  # what pods of others request; None: not read
    missing: tuple[str, ...] = ()  # permissions that the reader lacks


async def read_stored_objects(
    client: Client, ds: DaemonSet | None, raw: bytes | None, now: float
) -> StoredObjects:
    """Return a DaemonSet with its pods, revisions and the nodes.

    Without the right to list nodes the rest is returned; raises UserError where a right is missing
    to list pods or revisions, KubeError where something else is wrong.
    """
    nodes = await list_all(client, NODES, _slim_node, EVERYTHING)
    missing = (nodes,) if isinstance(nodes, str) else ()
    pods: tuple[bytes, ...] = ()
    revisions: tuple[bytes, ...] = ()
    options = selected_by(ds) if ds is not None else None
    if ds is not None and options is not None:
        labelled = ListOptions(namespace=ds.namespace, labels=f"{options.labels},{REVISION_HASH}")
        pods = await _list_owned(client, PODS, ds, _decode_pod, labelled)
        revisions = await _list_owned(client, REVISIONS, ds, _decode_revision, options)
    return StoredObjects(
        ds=raw,
        nodes=None if isinstance(nodes, str) else nodes,
        pods=pods,
        revisions=revisions,
        now=now,
        missing=missing,
    )


async def _list_owned(
    client: Client,
    resource: Resource,
    ds: DaemonSet,
    decode: Callable[[bytes], Pod | ControllerRevision],
    options: ListOptions,
) -> tuple[bytes, ...]:
    """Return the pods or revisions that the DaemonSet controls; raises UserError."""

    def keep(body: bytes) -> bytes:
        return _whole(resource, body) if controls(ds, decode(body)) else b""

    found = await list_all(client, resource, keep, options)
    if isinstance(found, str):
        raise missing_permissions([found])
    return tuple(each for each in found if each)


def _whole(resource: Resource, body: bytes) -> bytes:
    """Return an item of a list with its kind, and without the record of who wrote what."""
    item = _decode(body)
    item["metadata"].pop("managedFields", None)
    return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind, **item})


def _slim_node(body: bytes) -> bytes:
    """Return what decisions, a scheduler and a kubelet read of a node."""
    _decode_node(body)  # an object that no decision can read is left out
    whole = _decode(body)
    status = whole.get("status") or {}
    conditions = [
        each for each in status.get("conditions") or () if each.get("type") in _NODE_CONDITIONS
    ]
    slim = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _pick(whole["metadata"], _NODE_METADATA),
        "spec": _pick(whole.get("spec") or {}, _NODE_SPEC),
        "status": {**_pick(status, _NODE_STATUS), "conditions": conditions},
    }
    return msgspec.json.encode(slim)


def _pick(value: Object, names: tuple[str, ...]) -> Object:
    return {name: value[name] for name in names if name in value}

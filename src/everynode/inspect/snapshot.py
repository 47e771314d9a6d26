"""Snapshot: what a reader may see of one DaemonSet, its pods, its revisions and the nodes.

Every list is filtered by the server and read page by page. Where the reader lacks a right, the
snapshot names it and holds the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.api.decode import require_identity
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.controller.requests import selected_by
from everynode.decide.node.room import Room
from everynode.decide.revisions.ownership import is_owner
from everynode.kube.client import Client
from everynode.kube.errors import Forbidden, Gone
from everynode.kube.permissions import missing_permission
from everynode.kube.resources import NODES, PODS, REVISIONS, Resource
from everynode.kube.verbs import EVERYTHING, ListOptions
from everynode.kube.watch.decode import Decoder

T = TypeVar("T")
Owned = TypeVar("Owned", Pod, ControllerRevision)
_LIST_ATTEMPTS: Final = 3  # a page token expires while a large list is read slowly


class Snapshot(msgspec.Struct, frozen=True):
    """One DaemonSet and what belongs to it; None where the reader may not list it."""

    ds: DaemonSet
    nodes: tuple[Node, ...] | None
    pods: tuple[Pod, ...] | None  # own pods only
    revisions: tuple[ControllerRevision, ...] | None
    missing: tuple[str, ...] = ()  # permissions, as a role would grant them
    # What was read of nodes that have no room for a pod of the target, where that was asked for.
    rooms: Mapping[str, Room] = msgspec.field(default_factory=dict)


class SnapshotReader:
    """Reads snapshots of several DaemonSets; the nodes are read once for all of them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pod = require_identity(Decoder(Pod).one)
        self._revision = require_identity(Decoder(ControllerRevision).one)
        self._nodes: asyncio.Task[tuple[Node, ...] | str] | None = None

    async def read(self, ds: DaemonSet) -> Snapshot:
        """Return the snapshot of a DaemonSet; raises KubeError for anything but a missing right."""
        if self._nodes is None:
            self._nodes = asyncio.create_task(
                list_all(self._client, NODES, Decoder(Node).one, EVERYTHING)
            )
        options = selected_by(ds)
        if options is None:  # the selector is empty or invalid: the DaemonSet can own nothing
            return Snapshot(ds, _objects_or_none(await self._nodes), (), ())
        labelled = ListOptions(namespace=ds.namespace, labels=f"{options.labels},{REVISION_HASH}")
        nodes, pods, revisions = await asyncio.gather(
            self._nodes,
            list_all(self._client, PODS, self._pod, labelled),
            list_all(self._client, REVISIONS, self._revision, options),
        )
        return Snapshot(
            ds,
            _objects_or_none(nodes),
            None if isinstance(pods, str) else owned_by(ds, pods),
            None if isinstance(revisions, str) else owned_by(ds, revisions),
            tuple([each for each in (nodes, pods, revisions) if isinstance(each, str)]),
        )

    async def read_history(self, ds: DaemonSet, *, with_pods: bool) -> Snapshot:
        """Return the revisions of a DaemonSet, and its pods if they are to be counted."""
        options = selected_by(ds)
        if options is None:
            return Snapshot(ds, None, (), ())
        labelled = ListOptions(namespace=ds.namespace, labels=f"{options.labels},{REVISION_HASH}")
        revisions = await list_all(self._client, REVISIONS, self._revision, options)
        pods = await list_all(self._client, PODS, self._pod, labelled) if with_pods else ()
        return Snapshot(
            ds,
            None,
            None if isinstance(pods, str) else owned_by(ds, pods),
            None if isinstance(revisions, str) else owned_by(ds, revisions),
            tuple([each for each in (revisions, pods) if isinstance(each, str)]),
        )


async def list_all(
    client: Client, resource: Resource, decode: Callable[[bytes], T], options: ListOptions
) -> tuple[T, ...] | str:
    """Return the objects, or the permission that is missing; raises other KubeErrors."""
    for attempt in range(_LIST_ATTEMPTS):
        try:
            return tuple(await client.read_all(resource, decode, options=options))
        except Forbidden as error:
            return missing_permission(error)
        except Gone:
            if attempt == _LIST_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _objects_or_none(answer: tuple[T, ...] | str) -> tuple[T, ...] | None:
    return None if isinstance(answer, str) else answer


def owned_by(ds: DaemonSet, items: Iterable[Owned]) -> tuple[Owned, ...]:
    """Return the pods or revisions that the DaemonSet controls."""
    return tuple([item for item in items if controls(ds, item)])


def controls(ds: DaemonSet, item: Pod | ControllerRevision) -> bool:
    """Whether the DaemonSet controls a pod or revision."""
    controller = item.metadata.controller
    return (
        controller is not None
        and item.metadata.namespace == ds.namespace
        and is_owner(ds, controller)
    )

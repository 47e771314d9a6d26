"""Garbage collector: deletes objects whose owners are gone.

An object is deleted in the background when all its owners are gone. An owner that is deleted in the
foreground stays until its blocking dependents are gone; one that is deleted with policy Orphan is
first removed from the owner references of its dependents.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from everynode.api.keys import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from everynode.clock import Clock
from everynode.components.controllers.owner_graph import GraphObject, OwnerGraph
from everynode.components.discovery import ServerResources, discover
from everynode.components.guard import log_errors
from everynode.components.informers import SharedInformers
from everynode.components.objects import (
    FullNode,
    FullOwnerReference,
    FullPod,
    PartialObjectMetadata,
    decode_partial_metadata,
)
from everynode.components.request_queue import RequestResult, send_request
from everynode.components.timers import Timers
from everynode.components.worker_pool import WorkerPool
from everynode.kube import verbs
from everynode.kube.errors import Conflict, Gone, KubeError, NotFound
from everynode.kube.requests import Request
from everynode.kube.resources import CRDS, NODES, PODS, Resource
from everynode.kube.transport import Transport
from everynode.kube.watch.cache import NONE_UNREADABLE
from everynode.kube.watch.watcher import Watcher

_LOG: Final = logging.getLogger(__name__)
_WORKERS: Final = 16  # objects processed at a time
_RETRY: Final = 1.0
_RETRY_CONFLICT: Final = 0.1
_MAX_ABSENT_OWNERS: Final = 10_000  # entries of the cache of absent owners
# Events have neither owners nor dependents, and there are many of them.
_IGNORED: Final = (("", "events"), ("events.k8s.io", "events"))


_OwnerLookup = tuple[str, str, str, str, str]  # uid, apiVersion, kind, name, namespace


class _WatchConsumer:
    """Passes the watch events of one resource to the collector."""

    def __init__(self, collector: GarbageCollector, resource: Resource) -> None:
        self._collector = collector
        self._resource = resource
        self._known: dict[str, None] = {}

    def replace(
        self,
        objects: Iterable[PartialObjectMetadata],
        version: str,
        unread: Mapping[str, str] = NONE_UNREADABLE,
    ) -> None:
        """A list has arrived; objects that cannot be decoded keep their dependents."""
        before, self._known = self._known, {}
        for item in objects:
            self.upsert(item)
        unreadable = frozenset(unread.values())
        for uid in before:
            if uid in unreadable:
                self._known[uid] = None
            elif uid not in self._known:
                log_errors(self._collector.object_deleted)(uid)

    def upsert(self, item: PartialObjectMetadata) -> None:
        """An object is new or has changed."""
        self._known[item.metadata.uid] = None
        log_errors(self._collector.object_changed)(self._resource, item)

    def delete(self, item: PartialObjectMetadata) -> None:
        """An object is gone."""
        self._known.pop(item.metadata.uid, None)
        log_errors(self._collector.object_deleted)(item.metadata.uid)

    def bookmark(self, version: str) -> None:
        """Bookmarks are not needed here."""


class GarbageCollector:
    """Keeps the graph of owners, and deletes objects whose owners are all gone."""

    def __init__(
        self, transport: Transport, clock: Clock, *, informers: SharedInformers, timers: Timers
    ) -> None:
        self.graph = OwnerGraph()
        self._transport = transport
        self._clock = clock
        self._timers = timers
        self._resources = ServerResources([])
        # Owners that are gone: those whose deletion was watched by uid; those that were looked up
        # by the whole reference, as a wrong name or kind in it proves nothing about the uid.
        self._absent_owners: OrderedDict[str | _OwnerLookup, None] = OrderedDict()
        # Objects with an owner of a kind that the server does not have (yet).
        self._unknown_owner_kinds: dict[str, None] = {}
        self._queued: dict[str, None] = {}
        self._pool: WorkerPool[str] = WorkerPool(self._process, max_workers=_WORKERS)
        self._resources_changed = asyncio.Event()
        self._informers = informers
        self._watchers: list[Watcher[PartialObjectMetadata]] = []
        self._watching: dict[Resource, asyncio.Task[None]] = {}
        informers.pods.subscribe(self._on_pod)
        informers.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            while not await self._watch_all_resources(group):
                await self._clock.sleep(_RETRY)
            # No owner counts as gone before all resources were listed once.
            await self._informers.wait_for_sync()
            for watcher in list(self._watchers):
                await watcher.settled()
            group.create_task(self._pool.run())
            self._watchers.clear()
            while True:
                await self._resources_changed.wait()
                self._resources_changed.clear()
                if not await self._watch_all_resources(group):
                    self._timers.call_later(_RETRY, self._resources_changed.set)

    # --- What there is ---------------------------------------------------------------------------

    async def _watch_all_resources(self, group: asyncio.TaskGroup) -> bool:
        """Watch exactly the resources that the server has now; False if discovery failed."""
        try:
            self._resources = await discover(self._transport)
        except KubeError as error:
            _LOG.warning("%s, trying again", error)
            return False
        wanted = [
            resource
            for resource in self._resources.all
            if (resource.group, resource.plural) not in _IGNORED and resource not in (PODS, NODES)
        ]
        for resource in [each for each in self._watching if each not in wanted]:
            self._watching.pop(resource).cancel()
        for resource in wanted:
            if resource not in self._watching:
                watcher = Watcher(
                    self._transport,
                    self._clock,
                    resource=resource,
                    decode=decode_partial_metadata,
                    consumer=_WatchConsumer(self, resource),
                )
                self._watchers.append(watcher)
                self._watching[resource] = group.create_task(watcher.run())
        unresolved, self._unknown_owner_kinds = self._unknown_owner_kinds, {}
        for uid in unresolved:
            self._enqueue(uid)
        return True

    def object_changed(self, resource: Resource, item: PartialObjectMetadata | FullPod) -> None:
        """An object is new or has changed."""
        meta = item.metadata
        known = self.graph.objects.get(meta.uid)
        if known is not None and known.is_unchanged(meta) and resource != CRDS:
            known.version = meta.resource_version  # nothing that matters here has changed
            return
        new = GraphObject(
            resource,
            meta.namespace,
            meta.name,
            meta.uid,
            meta.resource_version,
            owners=meta.owner_references,
            finalizers=meta.finalizers,
            deleting=meta.deletion_timestamp is not None,
        )
        self.graph.put(new)
        changed = known is None or known.owners != new.owners
        unknown = any(self._owner_in_graph(new, owner) is None for owner in new.owners)
        if (changed and unknown) or new.orphans_dependents or new.awaits_dependents:
            self._enqueue(new.uid)
        if resource == CRDS and (known is None or known.version != new.version):
            self._resources_changed.set()

    def object_deleted(self, uid: str) -> None:
        """An object is gone."""
        item = self.graph.remove(uid)
        self._unknown_owner_kinds.pop(uid, None)
        self._note_absent(uid)
        for dependent in self.graph.dependents_of(uid):
            self._enqueue(dependent.uid)
        if item is None:
            return
        for owner in item.owners:
            found = self.graph.objects.get(owner.uid)
            if found is not None and found.awaits_dependents:
                self._enqueue(owner.uid)
        if item.resource == CRDS:
            self._resources_changed.set()

    def _on_pod(self, before: FullPod | None, after: FullPod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self.object_deleted(before.uid)
        if after is not None:
            self.object_changed(PODS, after)

    def _on_node(self, before: FullNode | None, after: FullNode | None) -> None:
        """Nodes own leases and little else, and have no owners."""
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self.object_deleted(before.metadata.uid)
        if after is not None and after.metadata.uid not in self.graph.objects:
            meta = after.metadata
            self.graph.put(GraphObject(NODES, "", meta.name, meta.uid, meta.resource_version))

    def _note_absent(self, who: str | _OwnerLookup) -> None:
        self._absent_owners[who] = None
        if len(self._absent_owners) > _MAX_ABSENT_OWNERS:
            self._absent_owners.popitem(last=False)

    # --- What to do about it ---------------------------------------------------------------------

    def _enqueue(self, uid: str) -> None:
        if uid not in self._queued:
            self._queued[uid] = None
            self._pool.put(uid)

    async def _process(self, uid: str) -> None:
        del self._queued[uid]
        item = self.graph.objects.get(uid)
        if item is None:
            return
        try:
            await self._handle(item)
        except NotFound:
            pass  # it is gone: the watch will show it
        except Conflict:
            self._timers.call_later(_RETRY_CONFLICT, partial(self._enqueue, uid))
        except KubeError as error:
            _LOG.warning("%s, trying again", error)
            self._timers.call_later(_RETRY, partial(self._enqueue, uid))

    async def _handle(self, item: GraphObject) -> None:
        if item.orphans_dependents:
            await self._orphan_dependents(item)
        elif item.awaits_dependents:
            await self._await_dependents(item)
        if item.owners and not item.deleting:
            await self._delete_if_unowned(item)

    async def _delete_if_unowned(self, item: GraphObject) -> None:
        """Delete an object if all its owners are gone or wait for its deletion.

        As in Kubernetes an owner is solid (it exists), dangling (it is gone), or waits for its
        dependents; if there are solid ones, only the references to the others are removed.
        """
        solid, dangling = [], []
        waited_for = False
        for owner in item.owners:
            found = await self._find_owner(item, owner)
            if found is None:
                dangling.append(owner)
            elif found.awaits_dependents:
                waited_for = True
                dangling.append(owner)
            else:
                solid.append(owner)
        if not dangling:
            return
        if solid:
            await self._set_owners(item, solid)
            return
        policy = _propagation_policy(item)
        if waited_for and not policy and self.graph.has_dependents(item.uid):
            policy = "Foreground"
        await self._send(
            verbs.delete(
                item.resource,
                item.name,
                namespace=item.namespace,
                uid=item.uid,
                version=item.version,
                propagation=policy or "Background",
            )
        )

    async def _find_owner(self, item: GraphObject, owner: FullOwnerReference) -> GraphObject | None:
        """The owner, if it exists; one that is not in the graph is read from the server."""
        known = self._owner_in_graph(item, owner)
        if known is not None:
            return known
        lookup = (owner.uid, owner.api_version, owner.kind, owner.name, item.namespace)
        gone = owner.uid in self._absent_owners and owner.uid not in self.graph.objects
        if gone or lookup in self._absent_owners:
            return None
        resource = self._resources.for_kind(owner.api_version, owner.kind)
        if resource is None or not _is_path_segment(owner.name):
            # Its CRD may be created later: count the owner as existing.
            self._unknown_owner_kinds[item.uid] = None
            return _unverified_owner(owner)
        namespace = item.namespace if resource.namespaced else ""
        if resource.namespaced and not namespace:
            # Invalid: a cluster-scoped object cannot have a namespaced owner.
            return _unverified_owner(owner)
        result = await send_request(
            self._transport, verbs.get(resource, owner.name, namespace=namespace)
        )
        if isinstance(result, KubeError) and not isinstance(result, NotFound):
            raise result
        live = None if isinstance(result, KubeError) else decode_partial_metadata(result.body)
        if live is None or live.metadata.uid != owner.uid:
            self._note_absent(lookup)
            return None
        meta = live.metadata
        return GraphObject(
            resource,
            meta.namespace,
            meta.name,
            meta.uid,
            meta.resource_version,
            finalizers=meta.finalizers,
            deleting=meta.deletion_timestamp is not None,
        )

    def _owner_in_graph(self, item: GraphObject, owner: FullOwnerReference) -> GraphObject | None:
        """The owner that a reference names, if the graph has it.

        The uid alone does not make an owner: kind, name and namespace must match too.
        """
        known = self.graph.objects.get(owner.uid)
        if known is None or known.name != owner.name or known.resource.kind != owner.kind:
            return None
        if known.namespace not in ("", item.namespace):
            return None
        group, slash, _ = owner.api_version.partition("/")
        return known if known.resource.group == (group if slash else "") else None

    async def _orphan_dependents(self, owner: GraphObject) -> None:
        for dependent in self.graph.dependents_of(owner.uid):
            left = [each for each in dependent.owners if each.uid != owner.uid]
            try:
                await self._set_owners(dependent, left)
            except NotFound:
                continue
        await self._drop_finalizer(owner, ORPHAN_DEPENDENTS)

    async def _await_dependents(self, owner: GraphObject) -> None:
        blocking = self.graph.blocking_dependents(owner.uid)
        for dependent in blocking:
            if not dependent.deleting:
                self._enqueue(dependent.uid)
        if not blocking:
            await self._drop_finalizer(owner, FOREGROUND_DELETION)

    async def _set_owners(self, item: GraphObject, owners: list[FullOwnerReference]) -> None:
        meta: dict[str, object] = {"uid": item.uid, "resourceVersion": item.version}
        meta["ownerReferences"] = msgspec.to_builtins(owners) or None
        await self._patch(item, meta)

    async def _drop_finalizer(self, item: GraphObject, finalizer: str) -> None:
        left = [each for each in item.finalizers if each != finalizer]
        meta: dict[str, object] = {"uid": item.uid, "resourceVersion": item.version}
        meta["finalizers"] = left or None
        await self._patch(item, meta)

    async def _patch(self, item: GraphObject, meta: dict[str, object]) -> None:
        body = {"metadata": meta}
        request = verbs.patch(item.resource, item.name, body, namespace=item.namespace)
        await self._send(request)

    async def _send(self, request: Request) -> None:
        result: RequestResult = await send_request(self._transport, request)
        if isinstance(result, Gone):
            raise NotFound(result.message)
        if isinstance(result, KubeError):
            raise result


def _propagation_policy(item: GraphObject) -> str:
    """The propagation policy that an object's finalizers ask for, or empty."""
    if ORPHAN_DEPENDENTS in item.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_DELETION in item.finalizers else ""


def _is_path_segment(name: str) -> bool:
    """Whether a name can be a segment of a URL path, and would not change the path."""
    return name not in ("", ".", "..") and not any(mark in name for mark in "/%?#")


def _unverified_owner(owner: FullOwnerReference) -> GraphObject:
    """An owner that counts as existing, although it could not be looked up."""
    return GraphObject(PODS, "", owner.name, owner.uid, "")

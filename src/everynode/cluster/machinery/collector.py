"""The garbage collector: what belongs to something that is gone goes too.

An object goes in the background when all its owners are gone. An owner deleted in the foreground
stays until what blocks it is gone; one deleted with orphans lets go of what it owns first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec

from everynode.clock import Clock
from everynode.cluster.machinery.crew import Crew
from everynode.cluster.machinery.graph import FOREGROUND, ORPHAN, Graph, Thing
from everynode.cluster.machinery.kinds import Kinds, discover
from everynode.cluster.machinery.objects import Bare, Node, Owner, Pod, decode_bare
from everynode.cluster.machinery.shared import Shared
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import Answer, ask
from everynode.kube import verbs
from everynode.kube.errors import Conflict, Gone, KubeError, NotFound
from everynode.kube.requests import Request
from everynode.kube.resources import CRDS, NODES, PODS, Resource
from everynode.kube.transport import Transport
from everynode.kube.watch import Watcher

_LOG: Final = logging.getLogger(__name__)
_AT_ONCE: Final = 16  # things looked at
_RETRY: Final = 1.0
_SOON: Final = 0.1
_ABSENT: Final = 10_000  # owners known to be gone that are remembered
# Nobody owns or is owned by events, and there are many of them.
_IGNORED: Final = (("", "events"), ("events.k8s.io", "events"))


class _Feed:
    """Takes in what the watch of one kind tells."""

    def __init__(self, collector: Collector, resource: Resource) -> None:
        self._collector = collector
        self._resource = resource
        self._known: dict[str, None] = {}

    def replace(self, objects: Iterable[Bare], version: str) -> None:
        """These are all there are."""
        before, self._known = self._known, {}
        for item in objects:
            self.upsert(item)
        for uid in before:
            if uid not in self._known:
                self._collector.lose(uid)

    def upsert(self, item: Bare) -> None:
        """One is new or has changed."""
        self._known[item.metadata.uid] = None
        self._collector.see(self._resource, item)

    def delete(self, item: Bare) -> None:
        """One is gone."""
        self._known.pop(item.metadata.uid, None)
        self._collector.lose(item.metadata.uid)

    def bookmark(self, version: str) -> None:
        """Nothing has happened."""


class Collector:
    """Keeps the graph of owners, and removes what nobody owns any more."""

    def __init__(
        self, transport: Transport, clock: Clock, *, shared: Shared, timers: Timers
    ) -> None:
        self.graph = Graph()
        self._transport = transport
        self._clock = clock
        self._timers = timers
        self._kinds = Kinds([])
        self._absent: OrderedDict[str, None] = OrderedDict()
        self._puzzling: dict[str, None] = {}  # things whose owner is of a kind nobody knows
        self._queued: dict[str, None] = {}
        self._crew: Crew[str] = Crew(self._look, most=_AT_ONCE)
        self._kinds_changed = asyncio.Event()
        self._shared = shared
        self._watchers: list[Watcher[Bare]] = []
        self._watching: dict[Resource, asyncio.Task[None]] = {}
        shared.pods.subscribe(self._on_pod)
        shared.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        """Collect until cancelled."""
        async with asyncio.TaskGroup() as group:
            while not await self._watch_all(group):
                await self._clock.sleep(_RETRY)
            # Nobody is taken for gone before everything there is was seen once.
            await self._shared.settled()
            for watcher in list(self._watchers):
                await watcher.settled()
            group.create_task(self._crew.run())
            self._watchers.clear()
            while True:
                await self._kinds_changed.wait()
                self._kinds_changed.clear()
                if not await self._watch_all(group):
                    self._timers.after(_RETRY, self._kinds_changed.set)

    # --- What there is ---------------------------------------------------------------------------

    async def _watch_all(self, group: asyncio.TaskGroup) -> bool:
        """Watch every kind the server has now, and no other; whether it said which."""
        try:
            self._kinds = await discover(self._transport)
        except KubeError as error:
            _LOG.warning("%s, trying again", error)
            return False
        wanted = [
            resource
            for resource in self._kinds.all
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
                    decode=decode_bare,
                    consumer=_Feed(self, resource),
                )
                self._watchers.append(watcher)
                self._watching[resource] = group.create_task(watcher.run())
        puzzling, self._puzzling = self._puzzling, {}
        for uid in puzzling:
            self._look_at(uid)
        return True

    def see(self, resource: Resource, item: Bare | Pod) -> None:
        """An object is new or has changed."""
        meta = item.metadata
        known = self.graph.things.get(meta.uid)
        if known is not None and known.is_like(meta) and resource != CRDS:
            known.version = meta.resource_version  # all else would come to the same
            return
        thing = Thing(
            resource,
            meta.namespace,
            meta.name,
            meta.uid,
            meta.resource_version,
            owners=meta.owner_references,
            finalizers=meta.finalizers,
            deleting=meta.deletion_timestamp is not None,
        )
        self.graph.put(thing)
        changed = known is None or known.owners != thing.owners
        strange = any(owner.uid not in self.graph.things for owner in thing.owners)
        if (changed and strange) or thing.lets_go or thing.awaits_dependents:
            self._look_at(thing.uid)
        if resource == CRDS and (known is None or known.version != thing.version):
            self._kinds_changed.set()

    def lose(self, uid: str) -> None:
        """An object is gone."""
        thing = self.graph.remove(uid)
        self._puzzling.pop(uid, None)
        self._note_absent(uid)
        for owned in self.graph.owned_by(uid):
            self._look_at(owned.uid)
        if thing is None:
            return
        for owner in thing.owners:
            above = self.graph.things.get(owner.uid)
            if above is not None and above.awaits_dependents:
                self._look_at(owner.uid)
        if thing.resource == CRDS:
            self._kinds_changed.set()

    def _on_pod(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self.lose(before.uid)
        if after is not None:
            self.see(PODS, after)

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        """Nodes own leases and little else; nobody owns them."""
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self.lose(before.metadata.uid)
        if after is not None and after.metadata.uid not in self.graph.things:
            meta = after.metadata
            self.graph.put(Thing(NODES, "", meta.name, meta.uid, meta.resource_version))

    def _note_absent(self, uid: str) -> None:
        self._absent[uid] = None
        if len(self._absent) > _ABSENT:
            self._absent.popitem(last=False)

    # --- What to do about it ---------------------------------------------------------------------

    def _look_at(self, uid: str) -> None:
        if uid not in self._queued:
            self._queued[uid] = None
            self._crew.put(uid)

    async def _look(self, uid: str) -> None:
        del self._queued[uid]
        thing = self.graph.things.get(uid)
        if thing is None:
            return
        try:
            await self._handle(thing)
        except NotFound:
            pass  # the watch will tell
        except Conflict:
            self._timers.after(_SOON, partial(self._look_at, uid))
        except KubeError as error:
            _LOG.warning("%s, trying again", error)
            self._timers.after(_RETRY, partial(self._look_at, uid))

    async def _handle(self, thing: Thing) -> None:
        if thing.lets_go:
            await self._orphan(thing)
        elif thing.awaits_dependents:
            await self._await_dependents(thing)
        if thing.owners and not thing.deleting:
            await self._judge(thing)

    async def _judge(self, thing: Thing) -> None:
        """Remove a thing none of whose owners wants it any more."""
        solid, loose = [], []
        waited_for = False
        for owner in thing.owners:
            above = await self._owner(thing, owner)
            if above is None:
                loose.append(owner)
            elif above.awaits_dependents:
                waited_for = True
                loose.append(owner)
            else:
                solid.append(owner)
        if not loose:
            return
        if solid:
            await self._set_owners(thing, solid)
            return
        policy = _policy(thing)
        if waited_for and not policy and self.graph.owns_any(thing.uid):
            policy = "Foreground"
        await self._send(
            verbs.delete(
                thing.resource,
                thing.name,
                namespace=thing.namespace,
                uid=thing.uid,
                version=thing.version,
                propagation=policy or "Background",
            )
        )

    async def _owner(self, thing: Thing, owner: Owner) -> Thing | None:
        """The owner, if it is there; what the graph does not know is looked up."""
        known = self.graph.things.get(owner.uid)
        if known is not None:
            return known
        if owner.uid in self._absent:
            return None
        resource = self._kinds.of(owner.api_version, owner.kind)
        if resource is None:
            # Perhaps a kind whose definition comes later: nothing is removed on suspicion.
            self._puzzling[thing.uid] = None
            return _stand_in(owner)
        namespace = thing.namespace if resource.namespaced else ""
        if resource.namespaced and not namespace:
            return _stand_in(owner)  # cannot be, so it cannot be looked up either
        answer = await ask(self._transport, verbs.get(resource, owner.name, namespace=namespace))
        if isinstance(answer, KubeError) and not isinstance(answer, NotFound):
            raise answer
        live = None if isinstance(answer, KubeError) else decode_bare(answer.body)
        if live is None or live.metadata.uid != owner.uid:
            self._note_absent(owner.uid)
            return None
        return _stand_in(owner)

    async def _orphan(self, owner: Thing) -> None:
        for owned in self.graph.owned_by(owner.uid):
            left = [each for each in owned.owners if each.uid != owner.uid]
            try:
                await self._set_owners(owned, left)
            except NotFound:
                continue
        await self._drop_finalizer(owner, ORPHAN)

    async def _await_dependents(self, owner: Thing) -> None:
        blocking = self.graph.blocking(owner.uid)
        for owned in blocking:
            if not owned.deleting:
                self._look_at(owned.uid)
        if not blocking:
            await self._drop_finalizer(owner, FOREGROUND)

    async def _set_owners(self, thing: Thing, owners: list[Owner]) -> None:
        meta: dict[str, object] = {"uid": thing.uid, "resourceVersion": thing.version}
        meta["ownerReferences"] = msgspec.to_builtins(owners) or None
        await self._patch(thing, meta)

    async def _drop_finalizer(self, thing: Thing, finalizer: str) -> None:
        left = [each for each in thing.finalizers if each != finalizer]
        meta: dict[str, object] = {"uid": thing.uid, "resourceVersion": thing.version}
        meta["finalizers"] = left or None
        await self._patch(thing, meta)

    async def _patch(self, thing: Thing, meta: dict[str, object]) -> None:
        body = {"metadata": meta}
        request = verbs.patch(thing.resource, thing.name, body, namespace=thing.namespace)
        await self._send(request)

    async def _send(self, request: Request) -> None:
        answer: Answer = await ask(self._transport, request)
        if isinstance(answer, Gone):
            raise NotFound(answer.message)
        if isinstance(answer, KubeError):
            raise answer


def _policy(thing: Thing) -> str:
    """How an object wants what it owns to be treated, if it says."""
    if ORPHAN in thing.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in thing.finalizers else ""


def _stand_in(owner: Owner) -> Thing:
    """An owner that is there, though the graph does not know it."""
    return Thing(PODS, "", owner.name, owner.uid, "")

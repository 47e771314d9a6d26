"""LiveSnapshot: a snapshot that watches keep up to date, so that nothing is listed again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from everynode.api.daemonset import DaemonSet
from everynode.api.decode import require_identity
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.informers import resource_of
from everynode.controller.requests import selected_by
from everynode.inspect.snapshot import Snapshot, owned_by
from everynode.kube.resources import NODES, PODS, REVISIONS, Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import NullObserver, Watcher


class LiveView(Protocol):
    """A snapshot of one DaemonSet that is kept up to date."""

    changed: asyncio.Event  # set by every change

    @property
    def troubles(self) -> Mapping[str, str]:
        """Problems of the watches, by resource."""
        ...

    @property
    def begun(self) -> bool:
        """Whether every watch has delivered its list or has a problem."""
        ...

    def current(self) -> Snapshot | None:
        """Return the snapshot as of now; None if the DaemonSet does not exist any more."""
        ...

    async def run(self) -> None:
        """Keep it up to date until cancelled."""
        ...


class LiveSnapshot(NullObserver):
    """One DaemonSet, its pods, its revisions and the nodes, as the watches last saw them."""

    def __init__(self, transport: Transport, clock: Clock, ds: DaemonSet) -> None:
        self.changed = asyncio.Event()  # set by every change and by every new problem of a watch
        self.troubles: dict[str, str] = {}  # by resource; problems of the watches
        self._ds = ds
        self._sets: Cache[DaemonSet] = Cache()
        self._nodes: Cache[Node] = Cache(quiet=True)
        self._pods: Cache[Pod] = Cache()
        self._revisions: Cache[ControllerRevision] = Cache()
        for cache in (self._sets, self._nodes, self._pods, self._revisions):
            cache.subscribe(lambda *_: self.changed.set())
        self._watchers = self._watches(transport, clock)

    def _watches(self, transport: Transport, clock: Clock) -> list[Watcher[Any]]:
        ds = self._ds
        watch = partial(Watcher, transport, clock, observer=self)
        selected = selected_by(ds)
        itself = ListOptions(namespace=ds.namespace, fields=f"metadata.name={ds.name}")
        watchers: list[Watcher[Any]] = [
            watch(
                resource=resource_of(ds.flavour),
                decode=require_identity(partial(decode_daemonset, flavour=ds.flavour)),
                consumer=self._sets,
                options=itself,
            ),
            watch(resource=NODES, decode=Decoder(Node).one, consumer=self._nodes),
        ]
        if selected is None:
            return watchers
        labelled = ListOptions(namespace=ds.namespace, labels=f"{selected.labels},{REVISION_HASH}")
        return [
            *watchers,
            watch(
                resource=PODS,
                decode=require_identity(Decoder(Pod).one),
                consumer=self._pods,
                options=labelled,
            ),
            watch(
                resource=REVISIONS,
                decode=require_identity(Decoder(ControllerRevision).one),
                consumer=self._revisions,
                options=selected,
            ),
        ]

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watcher in self._watchers:
                group.create_task(watcher.run())

    @property
    def begun(self) -> bool:
        """Whether every watch has delivered its list or has a problem."""
        return all(
            each.synced or each.resource.full_name in self.troubles for each in self._watchers
        )

    def current(self) -> Snapshot | None:
        """Return the snapshot as of now; None if the DaemonSet does not exist any more."""
        ds = self._sets.get(f"{self._ds.namespace}/{self._ds.name}")
        if ds is None and self._sets.synced:
            return None
        ds = ds or self._ds
        missing = [f"watch {each.resource.full_name}" for each in self._watchers if not each.synced]
        return Snapshot(
            ds,
            tuple(self._nodes.all().values()) if self._nodes.synced else None,
            owned_by(ds, self._pods.all().values()) if self._pods.synced else None,
            owned_by(ds, self._revisions.all().values()) if self._revisions.synced else None,
            tuple(missing),
        )

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """Note the problem of a watch; an empty message ends it."""
        if message:
            self.troubles[resource.full_name] = message
        else:
            self.troubles.pop(resource.full_name, None)
        self.changed.set()

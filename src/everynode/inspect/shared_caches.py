"""SharedCaches: live snapshots from what a controller in this process watches anyway.

Nothing is listed, watched or stored a second time. The controller watches whether it leads or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.controller.informers import Informers, resource_of
from everynode.controller.requests import selected_by
from everynode.controller.state import owner_key
from everynode.inspect.snapshot import Snapshot, owned_by
from everynode.kube.resources import NODES, PODS, REVISIONS
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.watcher import Watcher


class SharedCaches:
    """The caches of a controller, and the watches that it keeps them up to date with."""

    def __init__(self, informers: Informers, watchers: Sequence[Watcher[Any]]) -> None:
        self._informers = informers
        self._watchers = watchers

    def follow(self, ds: DaemonSet) -> SharedSnapshot:
        """Return a live snapshot of one DaemonSet."""
        wanted = (NODES, PODS, REVISIONS, resource_of(ds.flavour))
        used = [each for each in self._watchers if each.resource in wanted]
        return SharedSnapshot(self._informers, used, ds)

    def sets(self, flavour: Flavour) -> tuple[Cache[DaemonSet], Watcher[Any]]:
        """Return the DaemonSets of a kind, and their watch."""
        resource = resource_of(flavour)
        [watcher] = [each for each in self._watchers if each.resource == resource]
        return self._informers.daemonsets[flavour], watcher


class SharedSnapshot:
    """One DaemonSet, its pods, its revisions and the nodes, as a controller has seen them."""

    def __init__(
        self, informers: Informers, watchers: Sequence[Watcher[Any]], ds: DaemonSet
    ) -> None:
        self.changed = asyncio.Event()
        self._informers = informers
        self._watchers = watchers
        self._ds = ds
        self._owner = owner_key(ds.namespace, ds.uid)

    async def run(self) -> None:
        """Take in what changes until cancelled."""
        with self._subscribed():
            self.changed.set()  # by what came before
            await asyncio.Event().wait()

    @contextmanager
    def _subscribed(self) -> Iterator[None]:
        informers = self._informers
        sets = informers.daemonsets[self._ds.flavour]
        sets.subscribe(self._set_changed)
        informers.nodes.subscribe(self._node_changed)
        informers.pods.subscribe(self._owned_changed)
        informers.revisions.subscribe(self._owned_changed)
        try:
            yield
        finally:
            sets.unsubscribe(self._set_changed)
            informers.nodes.unsubscribe(self._node_changed)
            informers.pods.unsubscribe(self._owned_changed)
            informers.revisions.unsubscribe(self._owned_changed)

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        self.changed.set()

    def _set_changed(self, before: DaemonSet | None, after: DaemonSet | None) -> None:
        if any(each is not None and each.uid == self._ds.uid for each in (before, after)):
            self.changed.set()

    def _owned_changed(
        self, before: Pod | ControllerRevision | None, after: Pod | ControllerRevision | None
    ) -> None:
        for each in (before, after):
            controller = each.metadata.controller if each is not None else None
            if controller is not None and controller.uid == self._ds.uid:
                self.changed.set()

    @property
    def troubles(self) -> Mapping[str, str]:
        """Problems of the watches, by resource."""
        return {each.resource.full_name: each.trouble for each in self._watchers if each.trouble}

    @property
    def begun(self) -> bool:
        """Whether every watch has delivered its list or has a problem."""
        return all(each.synced or each.trouble for each in self._watchers)

    def current(self) -> Snapshot | None:
        """Return the snapshot as of now; None if the DaemonSet does not exist any more."""
        informers = self._informers
        sets = informers.daemonsets[self._ds.flavour]
        ds = sets.get(f"{self._ds.namespace}/{self._ds.name}")
        if ds is None and sets.synced:
            return None
        ds = ds or self._ds
        missing = {each.resource.full_name for each in self._watchers if not each.synced}
        owns = selected_by(ds) is not None
        pods = informers.pods.by("owner", self._owner).values() if owns else ()
        revisions = informers.revisions.by("owner", self._owner).values() if owns else ()
        return Snapshot(
            ds,
            tuple(informers.nodes.all().values()) if informers.nodes.synced else None,
            owned_by(ds, pods) if informers.pods.synced else None,
            owned_by(ds, revisions) if informers.revisions.synced else None,
            tuple(f"watch {name}" for name in sorted(missing)),
        )

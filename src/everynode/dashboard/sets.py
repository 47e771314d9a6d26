"""SetList: all DaemonSets that may be seen, by one watch per kind and namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import require_identity
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.informers import resource_of
from everynode.dashboard.model import Object, set_summary
from everynode.dashboard.summary import help_with, name_trouble
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.watcher import NullObserver, Watcher

_LOOK_AGAIN: Final = 0.05  # seconds
_TROUBLE_PAUSE: Final = 5.0  # seconds until a problem of a watch shows
BOTH_KINDS: Final = (Flavour.ADVANCED, Flavour.NATIVE)


class SetList(NullObserver):
    """The DaemonSets of some namespaces, or of all of them, as the watches last saw them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._caches: list[Cache[DaemonSet]] = []
        self._watchers: list[Watcher[Any]] = []
        self._own: list[Watcher[Any]] = []  # the watches that no other runs

    def share(self, cache: Cache[DaemonSet], watcher: Watcher[Any]) -> None:
        """Show what is in a cache that another keeps up to date by this watch."""
        cache.subscribe(lambda *_: self._notify())
        self._caches.append(cache)
        self._watchers.append(watcher)

    def watch(self, transport: Transport, namespace: str, flavour: Flavour) -> None:
        """Show a kind of a namespace, of all if it is empty, by a watch of our own."""
        cache: Cache[DaemonSet] = Cache(quiet=True)
        watcher = Watcher(
            transport,
            self._clock,
            resource=resource_of(flavour),
            decode=require_identity(partial(decode_daemonset, flavour=flavour)),
            consumer=cache,
            options=ListOptions(namespace=namespace),
            observer=self,
        )
        self.share(cache, watcher)
        self._own.append(watcher)

    async def run(self) -> None:
        """Watch until cancelled, from the first request for the list on."""
        await self._wanted.wait()
        async with asyncio.TaskGroup() as group:
            for watcher in self._own:
                group.create_task(watcher.run())

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """A watch has another problem, or none any more."""
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @property
    def begun(self) -> bool:
        """Whether every watch has delivered its list or has a problem."""
        return all(each.synced or each.missing or each.trouble for each in self._watchers)

    async def ready(self, seconds: float) -> None:
        """Wait until the list is known, at most so long."""
        self._wanted.set()
        ends = self._clock.monotonic() + seconds
        while not self.begun and self._clock.monotonic() < ends:
            with suppress(TimeoutError):  # a list without objects changes nothing
                async with asyncio.timeout(_LOOK_AGAIN):
                    await self._changed.wait()

    async def change(self, known: asyncio.Event) -> None:
        """Wait for the change after `known`; a problem of a shared watch is not a change."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_TROUBLE_PAUSE):
                await known.wait()

    def changed(self) -> asyncio.Event:
        """Return what the next change sets."""
        return self._changed

    def all(self) -> list[DaemonSet]:
        """Return the sets by namespace and name."""
        found = [ds for cache in self._caches for ds in cache.all().values()]
        return sorted(found, key=lambda ds: (ds.namespace, ds.name, ds.flavour.value))

    def document(self, sets: Sequence[DaemonSet]) -> Object:
        """Return sets as they are sent, without the fields that the server adds."""
        # A kind that is not installed is not a problem.
        troubles = {
            name_trouble(each.resource.full_name, each.trouble)
            for each in self._watchers
            if each.trouble and not each.missing
        }
        return {
            "troubles": [{"message": each, "help": help_with(each)} for each in sorted(troubles)],
            "sets": [set_summary(ds) for ds in sets],
        }

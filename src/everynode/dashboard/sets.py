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
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.watcher import NullObserver, Watcher

_LOOK_AGAIN: Final = 0.05  # seconds
BOTH_KINDS: Final = (Flavour.ADVANCED, Flavour.NATIVE)


class SetList(NullObserver):
    """The DaemonSets of some namespaces, or of all of them, as the watches last saw them."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        namespaces: Sequence[str] = (),
        flavours: Sequence[Flavour] = BOTH_KINDS,
    ) -> None:
        self._clock = clock
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._troubles: dict[str, str] = {}
        self._caches: list[Cache[DaemonSet]] = []
        self._watchers: list[Watcher[Any]] = []
        for namespace in namespaces or ("",):
            for flavour in flavours:
                cache: Cache[DaemonSet] = Cache(quiet=True)
                cache.subscribe(lambda *_: self._tell())
                self._caches.append(cache)
                self._watchers.append(
                    Watcher(
                        transport,
                        clock,
                        resource=resource_of(flavour),
                        decode=require_identity(partial(decode_daemonset, flavour=flavour)),
                        consumer=cache,
                        options=ListOptions(namespace=namespace),
                        observer=self,
                    )
                )

    async def run(self) -> None:
        """Watch until cancelled, from the first request for the list on."""
        await self._wanted.wait()
        async with asyncio.TaskGroup() as group:
            for watcher in self._watchers:
                group.create_task(watcher.run())

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """Note the problem of a watch; a kind that is not installed is none."""
        if message and not missing:
            self._troubles[resource.full_name] = message
        else:
            self._troubles.pop(resource.full_name, None)
        self._tell()

    def _tell(self) -> None:
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
            with suppress(TimeoutError):  # a list without objects is no change
                async with asyncio.timeout(_LOOK_AGAIN):
                    await self._changed.wait()

    def changed(self) -> asyncio.Event:
        """Return what the next change sets."""
        return self._changed

    def all(self) -> list[DaemonSet]:
        """Return the sets by namespace and name."""
        found = [ds for cache in self._caches for ds in cache.all().values()]
        return sorted(found, key=lambda ds: (ds.namespace, ds.name, ds.flavour.value))

    def document(self, sets: Sequence[DaemonSet]) -> Object:
        """Return sets as they are sent, without the fields that the server adds."""
        return {
            "missing": [f"watch {name}: {why}" for name, why in sorted(self._troubles.items())],
            "sets": [set_summary(ds) for ds in sets],
        }
